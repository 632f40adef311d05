import type { NodeId } from '../../kit/ids.js'
import type { MembershipView, Trust } from './types.js'

/** The members that a node regards as machines of the same person, by the log. */
export interface TrustQuestion {
  readonly view: Pick<MembershipView, 'members' | 'invites' | 'trust'>
  readonly self: NodeId
  /** Did this node join by a code that named both machines as one person's? Its inviter counts before any entry. */
  readonly acceptsInviter: boolean
}

/**
 * The other machines of the person of `self`: those that it regards as `mine`, those that these regard so, and so on.
 * One that any of them calls a guest is none of them, and no machine counts by its word. Revoked members never count.
 */
export function ownMachines({ view, self, acceptsInviter }: TrustQuestion): ReadonlySet<NodeId> {
  const accepted = acceptsInviter ? inviterOf(view, self) : null
  const rated = ratings(view, accepted === null ? null : { by: self, node: accepted })
  const all = reachable(rated, self, new Set())
  const guests = new Set<NodeId>()
  for (const one of all) for (const [node, trust] of rated.get(one) ?? []) if (trust === 'guest') guests.add(node)
  guests.delete(self)
  const own = reachable(rated, self, guests)
  own.delete(self)
  return own
}

/** The member by whose invite a node joined; null for the owner and for unknown ones. */
export function inviterOf(
  { members, invites }: Pick<MembershipView, 'members' | 'invites'>,
  node: NodeId
): NodeId | null {
  const inviteId = members.get(node)?.certificate.body.inviteId
  return inviteId === undefined ? null : (invites.get(inviteId)?.by ?? null)
}

/** How each active member regards others: by its invites, and above these by its entries. */
function ratings(
  view: TrustQuestion['view'],
  accepted: { readonly by: NodeId; readonly node: NodeId } | null
): Map<NodeId, Map<NodeId, Trust>> {
  const rated = new Map<NodeId, Map<NodeId, Trust>>()
  const rate = (by: NodeId, node: NodeId, trust: Trust): void => {
    if (!isActive(view, by) || !isActive(view, node)) return
    const of = rated.get(by) ?? new Map<NodeId, Trust>()
    rated.set(by, of.set(node, trust))
  }
  for (const { terms, by, admitted } of view.invites.values())
    if (terms.trust === 'mine') for (const node of admitted) rate(by, node, 'mine')
  if (accepted !== null) rate(accepted.by, accepted.node, 'mine')
  for (const [by, { of }] of view.trust) for (const [node, trust] of Object.entries(of)) rate(by, node, trust)
  return rated
}

function reachable(
  rated: ReadonlyMap<NodeId, ReadonlyMap<NodeId, Trust>>,
  self: NodeId,
  without: ReadonlySet<NodeId>
): Set<NodeId> {
  const found = new Set<NodeId>([self])
  // A loop over a set also visits the members that it adds.
  for (const one of found)
    for (const [node, trust] of rated.get(one) ?? []) if (trust === 'mine' && !without.has(node)) found.add(node)
  return found
}

function isActive({ members }: Pick<MembershipView, 'members'>, node: NodeId): boolean {
  return members.get(node)?.revoked === null
}
