import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { type RateLimit, RateTable } from '../../kit/rate.js'

/** Dependencies of {@link BusyShare}. */
export interface BusyShareDeps {
  readonly clock: Clock
  readonly limit: RateLimit
  /** True when only this member used the node in the last second. */
  isAlone(peer: NodeId): boolean
}

/**
 * The share of each member in a resource with costs known only afterwards. A member over its share waits until it has
 * recovered, while others are served; alone, it waits for nothing.
 */
export class BusyShare {
  readonly #deps: BusyShareDeps
  readonly #shares: RateTable
  /** Costs beyond the share that are not recovered yet. */
  readonly #owed = new Map<NodeId, number>()

  constructor(deps: BusyShareDeps) {
    this.#deps = deps
    this.#shares = new RateTable(deps.limit, deps.clock)
  }

  /** True when the member may use the resource now. */
  isWithin(peer: NodeId): boolean {
    const owed = this.#owed.get(peer)
    if (owed === undefined) return true
    if (!this.#deps.isAlone(peer) && !this.#shares.take(peer, owed)) return false
    this.#owed.delete(peer)
    return true
  }

  /** Milliseconds until the member may use it while others are served; 0 for now. */
  waitMs(peer: NodeId): number {
    return this.#shares.waitMs(peer, this.#owed.get(peer) ?? 0)
  }

  /** Charges a cost, capped at the burst of the share. */
  charge(peer: NodeId, cost: number): void {
    const counted = Math.min(this.#deps.limit.burst, cost)
    if (!this.#shares.take(peer, counted)) this.#owed.set(peer, counted)
  }
}
