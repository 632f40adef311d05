import type { Clock } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import { RateTable, TokenBucket } from '../kit/rate.js'

/** Messages and bytes of one node that are carried, and as many replies to it. */
const PER_ORIGIN = { perSecond: 50, burst: 500 }
const BYTES_PER_ORIGIN = { perSecond: 4 * 1024 * 1024, burst: 18 * 1024 * 1024 }
/** Messages of all nodes that are carried: fewer than a neighbour takes, and than may wait for it. */
const IN_ALL = { perSecond: 400, burst: 800 }
/** Bytes of them: half of what goes to a neighbour, so that this node's own find their way. */
const BYTES_IN_ALL = { perSecond: 16 * 1024 * 1024, burst: 36 * 1024 * 1024 }
/** What others cannot take from a node that has little carried: messages up to this size, so often, from a reserve for all. */
const ASSURED_BYTES = 64 * 1024
const ASSURED = { perSecond: 0.2, burst: 5 }
const RESERVE = { perSecond: 80, burst: 400 }

/** A message that is to be carried. */
export interface Load {
  /** The node that it counts for. */
  readonly node: NodeId
  /** Does it answer what that node asked? */
  readonly isReply: boolean
  readonly bytes: number
}

/** How much is carried: for each node, and for all so that nobody is left out. */
export class CarryRates {
  readonly #messages: RateTable
  readonly #bytes: RateTable
  readonly #inAll: TokenBucket
  readonly #bytesInAll: TokenBucket
  readonly #assured: RateTable
  readonly #reserve: TokenBucket

  constructor(clock: Clock) {
    this.#messages = new RateTable(PER_ORIGIN, clock)
    this.#bytes = new RateTable(BYTES_PER_ORIGIN, clock)
    this.#inAll = new TokenBucket(IN_ALL, clock)
    this.#bytesInAll = new TokenBucket(BYTES_IN_ALL, clock)
    this.#assured = new RateTable(ASSURED, clock)
    this.#reserve = new TokenBucket(RESERVE, clock)
  }

  /** May it be carried now? Then it counts. */
  take({ node, isReply, bytes }: Load): boolean {
    const key = isReply ? `${node} reply` : node
    if (!this.#messages.take(key) || !this.#bytes.take(key, bytes)) return false
    if (this.#inAll.take() && this.#bytesInAll.take(bytes)) return true
    return bytes <= ASSURED_BYTES && this.#assured.take(key) && this.#reserve.take()
  }
}
