import type { NodeId } from '../../kit/ids.js'
import { CONFLICT_SANDBOX, effectiveParty, type CertifiedPower, type EffectiveParty } from './effective.js'

/** Ends and way of a message, as it came to a node. */
export interface MessagePath {
  readonly origin: NodeId
  readonly target: NodeId
  /** The nodes it passed, in order. */
  readonly hops: readonly NodeId[]
  /** The peer whose stream brought it. */
  readonly peer: NodeId
  /** The reading node. */
  readonly self: NodeId
}

/** Why no honest node sends a message by that way; null when one may. */
export function pathFault({ origin, target, hops, peer, self }: MessagePath): string | null {
  if (origin === target) return 'a message within one node goes by no other'
  if (origin === self) return 'a message of this node came back'
  if ((hops.at(-1) ?? origin) !== peer) return 'the last node on the way is not the one that sent it'
  if (new Set(hops).size !== hops.length) return 'it passed a node twice'
  return hops.includes(origin) || hops.includes(target) || hops.includes(self)
    ? 'it passed its sender, its recipient or this node before'
    : null
}

/** A party after its message has passed nodes: no more powerful than any of them. */
export function weakened<P extends EffectiveParty>(party: P, hops: readonly CertifiedPower[]): P {
  if (hops.length === 0) return party
  const certificate = { maxTier: party.tier, sandboxId: party.sandboxId }
  return { ...party, ...effectiveParty({ certificate, card: null, hops }) }
}

/** A neighbour that says it has a way. */
export interface RouteOffer {
  readonly via: NodeId
  /** Nodes between it and the target; 0 for a link of its own. */
  readonly further: number
  /** Of its certificate. */
  readonly power: CertifiedPower
  /** It offered one before, and did not forward the message. */
  readonly isDoubted?: boolean
}

/**
 * The best route for messages of `own`; null of none. A message has at most the power of each relay, so the neighbour
 * that weakens it least comes first. Then come trusted ones, then the shortest route, then the order of keys.
 */
export function chooseRoute(own: CertifiedPower, offers: readonly RouteOffer[]): RouteOffer | null {
  const sender = { tier: own.maxTier, sandboxId: own.sandboxId ?? null }
  const rank = ({ power, further, isDoubted = false }: RouteOffer): readonly number[] => {
    const { tier, sandboxId } = weakened(sender, [power])
    return [
      sandboxId === CONFLICT_SANDBOX ? 2 : sandboxId === sender.sandboxId ? 0 : 1,
      tier,
      isDoubted ? 1 : 0,
      further
    ]
  }
  const ranked = offers.map((offer) => ({ offer, rank: rank(offer) }))
  ranked.sort((a, b) => compare(a.rank, b.rank) || (a.offer.via < b.offer.via ? -1 : 1))
  return ranked[0]?.offer ?? null
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, one] of a.entries()) if (one !== b[index]) return one - (b[index] ?? 0)
  return 0
}
