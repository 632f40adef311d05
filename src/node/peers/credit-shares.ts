import type { Clock, Timer } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { RateTable, TokenBucket } from '../../kit/rate.js'

/** Tokens of a member per second while others use the node: 5,000 small messages, or 32 MiB. */
const PER_MEMBER = { perSecond: 5000, burst: 2048 }
/** The same of all members together. */
const IN_ALL = { perSecond: 10_000, burst: 2048 }

/** A link that requests credit for its peer. */
export interface CreditAsker {
  readonly peer: NodeId
  /** Tokens that it would get now: 0 to 2,048. */
  tokens(): number
  /** Called in its turn. */
  give(): void
}

/**
 * The order of credit while several members use the node. A link requests one window at a time and gets it in turn: a
 * heavy sender waits behind each lighter one, and the others get its unused share.
 */
export class CreditShares {
  readonly #clock: Clock
  readonly #members: RateTable
  readonly #all: TokenBucket
  #waiting: readonly CreditAsker[] = []
  #timer: Timer | null = null

  constructor(clock: Clock) {
    this.#clock = clock
    this.#members = new RateTable(PER_MEMBER, clock)
    this.#all = new TokenBucket(IN_ALL, clock)
  }

  /** Requests credit, which is given now or later. A link requests again only after it got it. */
  ask(asker: CreditAsker): void {
    this.#waiting = [...this.#waiting, asker]
    this.#serve()
  }

  #serve(): void {
    this.#clock.clear(this.#timer)
    this.#timer = null
    const served: CreditAsker[] = []
    const later: CreditAsker[] = []
    let waitMs = Number.POSITIVE_INFINITY
    let isSpent = false
    for (const one of this.#waiting) {
      const tokens = one.tokens()
      const [ownMs, allMs] = [this.#members.waitMs(one.peer, tokens), this.#all.waitMs(tokens)]
      // A link that waits for the common share keeps its place: else smaller requests would always overtake it.
      isSpent ||= ownMs === 0 && allMs > 0
      const isServed = ownMs === 0 && !isSpent && this.#members.take(one.peer, tokens) && this.#all.take(tokens)
      if (!isServed) waitMs = Math.min(waitMs, Math.max(ownMs, allMs))
      const list = isServed ? served : later
      list.push(one)
    }
    this.#waiting = later
    if (later.length > 0) this.#timer = this.#clock.after(Math.max(1, waitMs), () => this.#serve())
    for (const one of served) one.give()
  }
}
