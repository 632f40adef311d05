import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { type RateLimit, RateTable } from '../../kit/rate.js'

/** What {@link BusyShare} needs. */
export interface BusyShareDeps {
  readonly clock: Clock
  readonly limit: RateLimit
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

/**
 * The share of each member in something whose cost is known only afterwards. A member that took more than its share waits until the
 * rest has come back, while others are served; alone it waits for nothing.
 */
export class BusyShare {
  readonly #deps: BusyShareDeps
  readonly #shares: RateTable
  /** Costs beyond the share that have not come back yet. */
  readonly #owed = new Map<NodeId, number>()

  constructor(deps: BusyShareDeps) {
    this.#deps = deps
    this.#shares = new RateTable(deps.limit, deps.clock)
  }

  /** May the member take something now? */
  isWithin(peer: NodeId): boolean {
    const owed = this.#owed.get(peer)
    if (owed === undefined) return true
    if (!this.#deps.isAlone(peer) && !this.#shares.take(peer, owed)) return false
    this.#owed.delete(peer)
    return true
  }

  /** After how many milliseconds it may, when others are served; 0 when it may now. */
  waitMs(peer: NodeId): number {
    return this.#shares.waitMs(peer, this.#owed.get(peer) ?? 0)
  }

  /** It took something. A single cost counts for no more than the share holds at once. */
  charge(peer: NodeId, cost: number): void {
    const counted = Math.min(this.#deps.limit.burst, cost)
    if (!this.#shares.take(peer, counted)) this.#owed.set(peer, counted)
  }
}
