import type { NodeId } from '../../kit/ids.js'
import type { BusyShareDeps } from '../peers/busy-share.js'

/** Bytes of a member's documents that are asked for a second, and at once after a pause. */
const SHARE = { perSecond: 4_194_304, burst: 1_048_576 } as const

/** What {@link FetchShare} needs. */
export interface FetchShareDeps extends Omit<BusyShareDeps, 'limit'> {
  readonly self: NodeId
}

/**
 * How fast documents that nobody uses here are fetched. What a member wrote takes processor and disk of a node that did not ask for it, and
 * messages wait behind it on the links: while others are served, it comes no faster than a share, and one stream after the other.
 */
export class FetchShare {
  readonly #deps: FetchShareDeps
  /** When the bytes that came of each writer will have had their time. */
  readonly #paidAt = new Map<NodeId, number>()

  constructor(deps: FetchShareDeps) {
    this.#deps = deps
  }

  /**
   * Counts the bytes that came of a stream. `writers`: the members that announced it; the one with most of its share left pays, so that
   * nobody slows down a stream of another by announcing it. Gives the milliseconds after which more of the stream may be requested.
   */
  fetched(writers: readonly NodeId[], bytes: number): number {
    const { clock, self, isAlone } = this.#deps
    const free = writers.find((writer) => writer === self || isAlone(writer))
    if (free !== undefined || writers.length === 0) {
      if (free !== undefined) this.#paidAt.delete(free)
      return 0
    }
    const now = clock.monotonic()
    const paidAtOf = (writer: NodeId): number => Math.max(this.#paidAt.get(writer) ?? Number.NEGATIVE_INFINITY, now - timeOf(SHARE.burst))
    const payer = writers.reduce((one, other) => (paidAtOf(other) < paidAtOf(one) ? other : one))
    const paidAt = paidAtOf(payer) + timeOf(bytes)
    this.#paidAt.set(payer, paidAt)
    return Math.max(0, Math.ceil(paidAt - now))
  }
}

function timeOf(bytes: number): number {
  return (bytes / SHARE.perSecond) * 1000
}
