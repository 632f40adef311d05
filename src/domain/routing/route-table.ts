import { BoundedMap } from '../../kit/bounded.js'
import type { NodeId } from '../../kit/ids.js'

/** How long a route is remembered after it was last found, in milliseconds. */
export const ROUTE_TTL_MS = 300_000
/** Targets for which a route is remembered. */
export const MAX_ROUTES = 1024

/** A way to a node without a link of its own. */
export interface Route {
  readonly via: NodeId
  /** Nodes that lie between; at least 1. */
  readonly hops: number
}

interface KeptRoute extends Route {
  readonly expiresAt: number
}

/**
 * The known routes, one for each target. Bounded: the least recently confirmed one goes. No clock inside: every call
 * gets the time in milliseconds.
 */
export class RouteTable {
  // In the order of confirmation.
  readonly #routes = new BoundedMap<NodeId, KeptRoute>(MAX_ROUTES)

  /** Notes a route that was found; it takes the place of another one. */
  set(target: NodeId, { via, hops }: Route, now: number): void {
    this.#routes.setNewest(target, { via, hops, expiresAt: now + ROUTE_TTL_MS })
  }

  /** The route to a node; null when none is known. */
  get(target: NodeId, now: number): Route | null {
    const route = this.#routes.get(target)
    if (route === undefined || route.expiresAt > now) return route ?? null
    this.#routes.delete(target)
    return null
  }

  /** Forgets the route to a node, where it leads through this neighbour. */
  drop(target: NodeId, via: NodeId): void {
    if (this.#routes.get(target)?.via === via) this.#routes.delete(target)
  }

  /** Forgets every route through or to a node. */
  dropNode(node: NodeId): void {
    this.#routes.delete(node)
    for (const [target, { via }] of this.#routes) if (via === node) this.#routes.delete(target)
  }

  /** How many are kept (expired ones count until they are asked for). */
  get size(): number {
    return this.#routes.size
  }
}
