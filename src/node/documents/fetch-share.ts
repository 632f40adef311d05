import type { NodeId } from '../../kit/ids.js'
import type { BusyShareDeps } from '../peers/busy-share.js'

/** Bytes of a member's documents that are requested per second, and at once after a pause. */
const SHARE = { perSecond: 2_097_152, burst: 1_048_576 } as const

/** Dependencies of {@link FetchShare}. */
export interface FetchShareDeps extends Omit<BusyShareDeps, 'limit'> {
  readonly self: NodeId
}

/**
 * How fast unused documents are fetched. Such blocks cost processor and disk of a node that did not ask for them, and
 * delay messages on the links. While the node serves others, they come no faster than a share, one stream after the
 * other.
 */
export class FetchShare {
  readonly #deps: FetchShareDeps
  /** Monotonic time at which the received bytes of each writer are paid for. */
  readonly #paidAt = new Map<NodeId, number>()

  constructor(deps: FetchShareDeps) {
    this.#deps = deps
  }

  /**
   * Counts the received bytes of a stream. `writers`: the members that announced it. The one with most of its share
   * left pays, so that nobody slows down a stream of another by announcing it. Returns the milliseconds after which
   * more of the stream may be requested.
   */
  fetched(writers: readonly NodeId[], bytes: number): number {
    const { clock, self, isAlone } = this.#deps
    const free = writers.find((writer) => writer === self || isAlone(writer))
    if (free !== undefined || writers.length === 0) {
      if (free !== undefined) this.#paidAt.delete(free)
      return 0
    }
    const now = clock.monotonic()
    const paidAtOf = (writer: NodeId): number =>
      Math.max(this.#paidAt.get(writer) ?? Number.NEGATIVE_INFINITY, now - timeOf(SHARE.burst))
    const payer = writers.reduce((one, other) => (paidAtOf(other) < paidAtOf(one) ? other : one))
    const paidAt = paidAtOf(payer) + timeOf(bytes)
    this.#paidAt.set(payer, paidAt)
    return Math.max(0, Math.ceil(paidAt - now))
  }
}

function timeOf(bytes: number): number {
  return (bytes / SHARE.perSecond) * 1000
}
