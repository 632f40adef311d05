import { lengthOf, memberOf } from '../membership/fold/document.js'
import type { DocumentRecord, MembershipView } from '../membership/types.js'
import { accessOf } from './access.js'
import type { StreamKey } from './client-ids.js'

/**
 * How many blocks of a stream count, by what the log says alone, so that it is the same on every node: all (infinitely many)
 * while a member whose stream it is may write; else as many as there were for whoever signed the access list in force, and at
 * least those that the snapshot in force holds. A member that was put out is judged by its last certificate: what it wrote
 * stays until a list leaves it out.
 */
export function countedBlocks(view: MembershipView, document: DocumentRecord, stream: StreamKey): number {
  const { access, creator, streams, snapshot } = document
  const guarded = { owner: view.mesh?.owner ?? '', creator, access: access?.access ?? null }
  const mayWrite = streams.some(({ nodeKey, coreKey }) => {
    const member = coreKey === stream ? view.members.get(nodeKey) : undefined
    return member !== undefined && accessOf(guarded, memberOf(member.certificate.body)).mayWrite
  })
  if (mayWrite) return Number.POSITIVE_INFINITY
  return Math.max(lengthOf(access?.lengths ?? {}, stream), lengthOf(snapshot?.lengths ?? {}, stream))
}
