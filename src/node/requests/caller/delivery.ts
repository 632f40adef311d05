import { backoffMs } from '../../../kit/backoff.js'
import type { Clock } from '../../../kit/clock.js'
import { PATIENCE } from './request-codec.js'

/** The copies of one request that went to its peer, and how many of them the peer said it did not do. */
export class DeliveryAttempts {
  #sent: number
  #denied = 0

  /** `sent`: by the processes before. */
  constructor(sent: number) {
    this.#sent = sent
  }

  /** May its peer have one of them? */
  get isOut(): boolean {
    return this.#denied < this.#sent
  }

  /** One more is about to be sent: an agent of this node answers before it is. */
  sending(): void {
    this.#sent++
  }

  /** It was not sent. */
  notSent(): void {
    this.#sent--
  }

  /** Was all but one denied, so that none is under way once that is as well? */
  get isLast(): boolean {
    return this.#denied + 1 >= this.#sent
  }

  /** The peer did not do one of them. True: nor any other. */
  denied(): boolean {
    return ++this.#denied >= this.#sent
  }
}

/** When the peer of a request last said that it has it, and for how long it may say nothing. */
export class LivenessTimer {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** null: its peer never said so. */
  #at: number | null = null
  /** Times that it was asked again since its peer last said so. */
  #repeats = 0

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** Its peer says that it has it. */
  onHeartbeat(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats = 0
  }

  /** Is its peer expected to name it? */
  get isExpected(): boolean {
    return this.#at !== null
  }

  /** Its peer is there again, and has as long as before. */
  isBack(): void {
    if (this.#at !== null) this.#at = this.#clock.monotonic()
  }

  /** It is not with its peer. */
  forget(): void {
    this.#at = null
  }

  /** Did its peer have it, and says nothing of it for too long? */
  get isLost(): boolean {
    if (this.#at === null) return false
    const patience = { baseMs: this.#leaseMs, maxMs: Math.max(this.#leaseMs, PATIENCE.maxMs) }
    return this.#clock.monotonic() - this.#at > backoffMs(patience, this.#repeats)
  }

  /** It is asked again: the peer gets more time with each. */
  askedAgain(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats++
  }
}
