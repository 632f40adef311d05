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
 * One that any of them calls a guest is none of them; of two at odds, the nearer one counts. No machine counts by its
 * own word, and none by an invite through which a stranger admitted it. Revoked members never count.
 */
export function ownMachines({ view, self, acceptsInviter }: TrustQuestion): ReadonlySet<NodeId> {
  const accepted = acceptsInviter ? inviterOf(view, self) : null
  const rated = ratings(view, accepted === null ? null : { by: self, node: accepted })
  const guests = new Set<NodeId>()
  reachable(rated, self, guests)
  // A machine further away may call one a guest that the first pass has passed already.
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

/** How one member regards another. `via`: the member that must be an own machine as well for it to count. */
interface Rating {
  readonly trust: Trust
  readonly via: NodeId
}

type Ratings = ReadonlyMap<NodeId, ReadonlyMap<NodeId, Rating>>

/** How each active member regards others: by its invites, and above these by its entries. */
function ratings(
  view: TrustQuestion['view'],
  accepted: { readonly by: NodeId; readonly node: NodeId } | null
): Ratings {
  const rated = new Map<NodeId, Map<NodeId, Rating>>()
  const rate = (by: NodeId, node: NodeId, { trust, via = by }: { trust: Trust; via?: NodeId }): void => {
    if (!isActive(view, by) || !isActive(view, node)) return
    const of = rated.get(by) ?? new Map<NodeId, Rating>()
    rated.set(by, of.set(node, { trust, via }))
  }
  for (const { terms, by, admitted, admitters = {} } of view.invites.values())
    if (terms.trust === 'mine')
      for (const node of admitted) rate(by, node, { trust: 'mine', via: admitters[node] ?? by })
  if (accepted !== null) rate(accepted.by, accepted.node, { trust: 'mine' })
  for (const [by, { of }] of view.trust) for (const [node, { trust }] of Object.entries(of)) rate(by, node, { trust })
  return rated
}

/** The machines reached from `self`, nearest first. Adds the members that these call guests, which are not reached. */
function reachable(rated: Ratings, self: NodeId, guests: Set<NodeId>): Set<NodeId> {
  const found = new Set<NodeId>([self])
  const waiting = new Map<NodeId, NodeId[]>()
  for (let layer = [self]; layer.length > 0; ) {
    for (const one of layer)
      for (const [node, { trust }] of rated.get(one) ?? []) if (trust === 'guest') guests.add(node)
    const next: NodeId[] = []
    const reach = (node: NodeId): void => {
      if (found.has(node) || guests.has(node)) return
      found.add(node)
      next.push(node)
    }
    for (const one of layer) {
      waiting.get(one)?.forEach(reach)
      for (const [node, { trust, via }] of rated.get(one) ?? []) {
        if (trust !== 'mine') continue
        if (found.has(via)) reach(node)
        else if (waiting.get(via)?.push(node) === undefined) waiting.set(via, [node])
      }
    }
    layer = next
  }
  return found
}

function isActive({ members }: Pick<MembershipView, 'members'>, node: NodeId): boolean {
  return members.get(node)?.revoked === null
}
