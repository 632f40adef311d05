import { canonicalJson } from '../../kit/json.js'
import type { Replica } from './replica.js'
import { isPartOf, isSameDocument } from './same-document.js'

/** Do two replicas hold the same, of the same blocks? Walks over all of both. */
export function isSameReplica(one: Replica, other: Replica): boolean {
  return canonicalJson(begun(one)) === canonicalJson(begun(other)) && isSameDocument(one.doc, other.doc)
}

/**
 * Is a replica contained in another, with equal state of streams of equal length? Further content of the other is
 * ignored.
 */
export function isPartOfReplica(part: Replica, whole: Replica): boolean {
  const known = new Map(begun(whole))
  return (
    begun(part).every(
      ([key, past]) => known.get(key)?.length !== past.length || canonicalJson(known.get(key)) === canonicalJson(past)
    ) && isPartOf(part.doc, whole.doc)
  )
}

function begun(replica: Replica): (readonly [string, ReturnType<Replica['pasts']>[number]['past']])[] {
  return replica.pasts().flatMap(({ key, past }) => (past.length > 0 ? [[key, past] as const] : []))
}
