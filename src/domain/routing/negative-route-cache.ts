import { BoundedMap } from '../../kit/bounded.js'
import type { NodeId } from '../../kit/ids.js'

/** How long it is remembered that a neighbour has no way to a node, in milliseconds. */
const NEGATIVE_ROUTE_MS = 5000
/** Nodes to which one neighbour has no way that are remembered. */
const MAX_NEGATIVE_ROUTES = 256

/** A neighbour, the target, and whether the neighbour was to ask its own neighbours as well. */
export interface AskedFor {
  readonly neighbour: NodeId
  readonly target: NodeId
  readonly isFurther: boolean
}

/**
 * Neighbours that recently had no route to a node, so that they are not asked again for any caller. Each answers for
 * itself alone: no one can hide the route of another, and a new neighbour is asked. Bounded for each neighbour; the
 * oldest entry goes. No clock inside: every call gets the time in milliseconds.
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

  /** Is it known to have none? A neighbour without a route through its neighbours has no direct one. */
  has({ neighbour, target, isFurther }: AskedFor, now: number): boolean {
    const of = this.#ofNeighbour.get(neighbour)
    const isKnown = (further: boolean): boolean => (of?.get(keyOf({ target, isFurther: further })) ?? now) > now
    return isKnown(true) || (!isFurther && isKnown(false))
  }

  /** Drops the entries of a neighbour whose link ended or opened again. */
  drop(neighbour: NodeId): void {
    this.#ofNeighbour.delete(neighbour)
  }
}

function keyOf({ target, isFurther }: Omit<AskedFor, 'neighbour'>): string {
  return isFurther ? `${target} further` : target
}
