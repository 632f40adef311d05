import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { RateTable } from '../../../kit/rate.js'

/** Streams of keys that are no members here yet, at most. */
export const MAX_STRANGERS = 8
/** Streams that one key may open to this node. */
const OPENS_PER_KEY = { perSecond: 5, burst: 5 }
/** Streams that all keys together may open that are no members here yet. */
const OPENS_IN_ALL = { perSecond: 50, burst: 50 }

/** A fresh stream. */
export interface FreshStream {
  readonly peer: NodeId
  /** Did the peer open it? */
  readonly isInbound: boolean
  /** Is its key a member's by this node's view? The key is proven, so it needs no place among the strangers. */
  readonly isMember: boolean
  /** Streams of strangers that stand at the gate. */
  readonly strangers: number
}

/**
 * Bounds the cost of strangers before the gate has judged them: their number at the gate, and the rate of their
 * streams.
 */
export class ConnectionLimits {
  readonly #perKey: RateTable
  readonly #inAll: RateTable

  constructor(clock: Clock) {
    this.#perKey = new RateTable(OPENS_PER_KEY, clock)
    this.#inAll = new RateTable(OPENS_IN_ALL, clock)
  }

  /** Why the stream is cut at once; null when it may stand at the gate. */
  refuses({ peer, isInbound, isMember, strangers }: FreshStream): 'rate' | 'full' | null {
    // Members are not held up by a flood of strangers. The common limit first: it bounds the table of keys.
    if (isInbound && !isMember && !this.#inAll.take('')) return 'rate'
    if (isInbound && !this.#perKey.take(peer)) return 'rate'
    return !isMember && strangers >= MAX_STRANGERS ? 'full' : null
  }
}
