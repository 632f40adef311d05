import type { Clock } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'

/** Bytes of a member's documents that are asked for a second, and at once after a pause. */
const SHARE = { perSecond: 4_194_304, burst: 1_048_576 } as const

/** What {@link FetchShare} needs. */
export interface FetchShareParts {
  readonly clock: Clock
  readonly self: NodeId
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

/**
 * How fast documents that nobody uses here are fetched. What a member wrote takes processor and disk of a node that did not ask for it, and
 * messages wait behind it on the links: while others are served, it comes no faster than a share, and one stream after the other.
 */
export class FetchShare {
  readonly #parts: FetchShareParts
  /** When the bytes that came of each writer will have had their time. */
  readonly #paidAt = new Map<NodeId, number>()

  constructor(parts: FetchShareParts) {
    this.#parts = parts
  }

  /** So many bytes came that a member wrote; after how many milliseconds more of the same stream is to be asked for, 0: at once. */
  fetched(writer: NodeId, bytes: number): number {
    const { clock, self, isAlone } = this.#parts
    if (writer === self || isAlone(writer)) {
      this.#paidAt.delete(writer)
      return 0
    }
    const now = clock.monotonic()
    const paidAt = Math.max(this.#paidAt.get(writer) ?? Number.NEGATIVE_INFINITY, now - timeOf(SHARE.burst)) + timeOf(bytes)
    this.#paidAt.set(writer, paidAt)
    return Math.max(0, Math.ceil(paidAt - now))
  }
}

function timeOf(bytes: number): number {
  return (bytes / SHARE.perSecond) * 1000
}
