import type { ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { changeFault } from './grant.js'
import type { Certificate, MembershipView } from './types.js'
import { isAdmin, isRevoked } from './view.js'

/** Milliseconds after its admission in which a member may lose it to another by the same invite. */
const FRESH_MS = 600_000

/** A node's knowledge of itself and its mesh when a peer refuses it. */
export interface OwnStanding {
  readonly view: MembershipView
  readonly owner: NodeId
  /** The own certificate; null before it has come. */
  readonly own: Certificate | null
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * May a peer end this node's membership by a refusal: could it do so by the log, or did it issue the admission that
 * failed?
 */
export function mayPutOut(
  { peer, code }: { readonly peer: NodeId; readonly code: ErrorCode },
  { view, owner, own, now }: OwnStanding
): boolean {
  // A revoked member decides nothing any more, not even about members that it admitted.
  if (isRevoked(view, peer)) return false
  const isLostInvite = code.startsWith('INVITE_')
  if (code !== 'REVOKED' && !isLostInvite) return false
  // Before the own certificate has come no rights are known here, and there is nothing to lose yet.
  if (own === null) return isLostInvite || peer === owner
  // An invite can only be lost while the admission is fresh and the admins' logs may still disagree.
  if (isLostInvite && now - own.issuedAt >= FRESH_MS) return false
  if (peer === owner || (isLostInvite && peer === own.issuer)) return true
  return !own.mayInvite && (peer === own.issuer || mayRevoke(view, peer, { own, owner }))
}

function mayRevoke(
  view: MembershipView,
  peer: NodeId,
  { own, owner }: { readonly own: Certificate; readonly owner: NodeId }
): boolean {
  const author = view.members.get(peer)?.certificate.body
  return author !== undefined && isAdmin(view, peer) && changeFault(author, own, { owner }) === null
}
