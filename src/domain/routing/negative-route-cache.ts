import { BoundedMap } from '../../kit/bounded.js'
import type { NodeId } from '../../kit/ids.js'

/** How long it is remembered that a neighbour has no way to a node, in milliseconds. */
const NEGATIVE_ROUTE_MS = 5000
/** Nodes to which one neighbour has no way that are remembered. */
const MAX_NEGATIVE_ROUTES = 256

/** Who was asked for a way to which node, and whether it was to ask its own neighbours as well. */
export interface AskedFor {
  readonly neighbour: NodeId
  readonly target: NodeId
  readonly isFurther: boolean
}

/**
 * Which neighbours had no way to a node a moment ago, so that they are not asked again, whoever wants to know. It is the word of
 * each for itself alone: nobody can hide the way of another, and a neighbour that comes is asked. Bounded for each neighbour;
 * the oldest goes. No clock inside: every call is told the time in milliseconds.
 */
export class NegativeRouteCache {
  readonly #ttlMs: number
  readonly #ofNeighbour = new Map<NodeId, BoundedMap<string, number>>()

  /** How long each is remembered, in milliseconds. Default 5,000. */
  constructor(ttlMs: number = NEGATIVE_ROUTE_MS) {
    this.#ttlMs = ttlMs
  }

  /** The neighbour has no way. */
  add(asked: AskedFor, now: number): void {
    const of = this.#ofNeighbour.get(asked.neighbour) ?? new BoundedMap<string, number>(MAX_NEGATIVE_ROUTES)
    this.#ofNeighbour.set(asked.neighbour, of)
    of.setNewest(keyOf(asked), now + this.#ttlMs)
  }

  /** Need it not be asked? Who has no way even through its neighbours has none of its own. */
  has({ neighbour, target, isFurther }: AskedFor, now: number): boolean {
    const of = this.#ofNeighbour.get(neighbour)
    const isKnown = (further: boolean): boolean => (of?.get(keyOf({ target, isFurther: further })) ?? now) > now
    return isKnown(true) || (!isFurther && isKnown(false))
  }

  /** Forgets what a neighbour said: it is gone, or here anew. */
  drop(neighbour: NodeId): void {
    this.#ofNeighbour.delete(neighbour)
  }
}

function keyOf({ target, isFurther }: Omit<AskedFor, 'neighbour'>): string {
  return isFurther ? `${target} further` : target
}
