import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { RateTable, TokenBucket } from '../../kit/rate.js'

/** Messages outside of lanes: fewer than a table of replays remembers. */
const MESSAGES = { perSecond: 50, burst: 500 }
/** Frames of lanes, and control messages: a window of them passes at once. */
const LANE_FRAMES = { perSecond: 500, burst: 1000 }
/** Bytes of either. */
const BYTES = { perSecond: 4 * 1024 * 1024, burst: 18 * 1024 * 1024 }
/** Frames of all nodes that are relayed: fewer than a neighbour takes. */
const IN_ALL = { perSecond: 1000, burst: 2000 }
/** Bytes of them: half of what goes to a neighbour, so that this node's own find their way. */
const BYTES_IN_ALL = { perSecond: 16 * 1024 * 1024, burst: 36 * 1024 * 1024 }
/** What others cannot take from a node that has little relayed: frames up to this size, so often, from a reserve for all. */
const ASSURED_BYTES = 64 * 1024
const ASSURED = { perSecond: 0.2, burst: 5 }
const RESERVE = { perSecond: 80, burst: 400 }

/** A frame that is to be relayed. */
export interface Load {
  readonly origin: NodeId
  readonly target: NodeId
  /** Does it open something? */
  readonly isOpening: boolean
  /** Is it of a lane, or a control message? It is sent again when it is lost. */
  readonly isOfLane: boolean
  readonly bytes: number
}

/**
 * How much is relayed: for each node, and for all so that nobody is left out. Messages that open something count for their origin;
 * all else for its origin and its target together, so that who has a node answer much does not use up its answers to others.
 */
export class RelayLimits {
  readonly #messages: RateTable
  readonly #lanes: RateTable
  readonly #bytes: RateTable
  readonly #inAll: TokenBucket
  readonly #bytesInAll: TokenBucket
  readonly #assured: RateTable
  readonly #reserve: TokenBucket

  constructor(clock: Clock) {
    this.#messages = new RateTable(MESSAGES, clock)
    this.#lanes = new RateTable(LANE_FRAMES, clock)
    this.#bytes = new RateTable(BYTES, clock)
    this.#inAll = new TokenBucket(IN_ALL, clock)
    this.#bytesInAll = new TokenBucket(BYTES_IN_ALL, clock)
    this.#assured = new RateTable(ASSURED, clock)
    this.#reserve = new TokenBucket(RESERVE, clock)
  }

  /** May it be relayed now? Then it counts. */
  take({ origin, target, isOpening, isOfLane, bytes }: Load): boolean {
    const key = isOpening ? origin : `${origin} ${target}`
    const rate = isOfLane ? this.#lanes : this.#messages
    if (!rate.take(key) || !this.#bytes.take(key, bytes)) return false
    if (this.#inAll.take() && this.#bytesInAll.take(bytes)) return true
    return bytes <= ASSURED_BYTES && this.#assured.take(key) && this.#reserve.take()
  }
}
