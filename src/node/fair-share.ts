import type { NodeId } from '../kit/ids.js'

/** A bound over what all peers hold together. */
export interface Bound<Holding> {
  readonly most: number
  /** How much one peer holds, in the unit of the bound. */
  measure(holding: Holding): number
  /** Drops the oldest of what the peer holds, so that its measure falls. */
  drop(holding: Holding, peer: NodeId): void
}

/** While peers hold too much together, the one that holds most loses its oldest: none can push out what others hold. */
export function trimFairly<Holding>(byPeer: ReadonlyMap<NodeId, Holding>, bound: Bound<Holding>): void {
  const { most, measure, drop } = bound
  let total = 0
  for (const holding of byPeer.values()) total += measure(holding)
  while (total > most) {
    const greedy = greediest(byPeer, measure)
    if (greedy === null) return
    const [peer, holding] = greedy
    const before = measure(holding)
    drop(holding, peer)
    total -= before - measure(holding)
  }
}

function greediest<Holding>(byPeer: ReadonlyMap<NodeId, Holding>, measure: (holding: Holding) => number): [NodeId, Holding] | null {
  let greedy: [NodeId, Holding] | null = null
  for (const one of byPeer) if (greedy === null || measure(one[1]) > measure(greedy[1])) greedy = one
  return greedy
}
