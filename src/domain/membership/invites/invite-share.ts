import type { NodeId } from '../../../kit/ids.js'
import { canonicalJson } from '../../../kit/json.js'
import type { InviteTerms, MembershipView } from '../types.js'

/**
 * Invites that one member may bring into the log in its life, in any state: the view keeps them for good. The owner has
 * no bound.
 */
export const MAX_INVITES_OF_MEMBER = 1024
/** Bytes that these may take, with the places for those whom they admit. */
export const MAX_INVITE_BYTES_OF_MEMBER = 1_048_576
/** Charge of one use of an invite, in bytes: the key of the admitted node. */
const USE_BYTES = 64

/** The invites of one member. */
export interface InviteIndexRecord {
  readonly count: number
  readonly bytes: number
}

/** The index with one more invite; null: the share of its author has no room for it. */
export function withInvite(index: InviteIndexRecord, terms: InviteTerms): InviteIndexRecord | null {
  const [count, bytes] = [index.count + 1, index.bytes + bytesOf(terms)]
  return count > MAX_INVITES_OF_MEMBER || bytes > MAX_INVITE_BYTES_OF_MEMBER ? null : { count, bytes }
}

/** Has the share of a member room for an invite? Of a log that is older than this bound the fold counts fewer. */
export function mayInviteMore(
  { invites, mesh }: Pick<MembershipView, 'invites' | 'mesh'>,
  by: NodeId,
  terms: InviteTerms
): boolean {
  const own = [...invites.values()].filter((one) => one.by === by)
  const index = { count: own.length, bytes: own.reduce((sum, one) => sum + bytesOf(one.terms), 0) }
  return by === mesh?.owner || withInvite(index, terms) !== null
}

function bytesOf(terms: InviteTerms): number {
  return canonicalJson(terms).length + terms.uses * USE_BYTES
}
