import { backoffMs } from '../../../kit/backoff.js'
import type { Clock } from '../../../kit/clock.js'
import { PATIENCE } from './request-codec.js'

/** Counts the copies of one request sent to its peer, and the copies that the peer denied. */
export class DeliveryAttempts {
  #sent: number
  #denied = 0

  /** `sent`: copies sent by earlier processes. */
  constructor(sent: number) {
    this.#sent = sent
  }

  /** May its peer have a copy? */
  get isOut(): boolean {
    return this.#denied < this.#sent
  }

  /** Counts a copy before it is sent: an agent of this node answers during the send. */
  sending(): void {
    this.#sent++
  }

  /** The copy was not sent. */
  notSent(): void {
    this.#sent--
  }

  /** Are all copies but one denied, so that none is under way once that one is? */
  get isLast(): boolean {
    return this.#denied + 1 >= this.#sent
  }

  /** The peer denied a copy. True: all copies are denied. */
  denied(): boolean {
    return ++this.#denied >= this.#sent
  }
}

/** When the peer of a request last reported it, and how long it may be silent. */
export class LivenessTimer {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** null: its peer never reported it. */
  #at: number | null = null
  /** Repeats since its peer last reported it. */
  #repeats = 0

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** Its peer reports it. */
  onHeartbeat(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats = 0
  }

  /** Is its peer expected to report it? */
  get isExpected(): boolean {
    return this.#at !== null
  }

  /** Its peer is reachable again; its lease time starts anew. */
  isBack(): void {
    if (this.#at !== null) this.#at = this.#clock.monotonic()
  }

  /** It is not with its peer. */
  forget(): void {
    this.#at = null
  }

  /** Did its peer report it, and is silent for too long? */
  get isLost(): boolean {
    if (this.#at === null) return false
    const patience = { baseMs: this.#leaseMs, maxMs: Math.max(this.#leaseMs, PATIENCE.maxMs) }
    return this.#clock.monotonic() - this.#at > backoffMs(patience, this.#repeats)
  }

  /** It is sent again; each repeat gives the peer more time. */
  askedAgain(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats++
  }
}
