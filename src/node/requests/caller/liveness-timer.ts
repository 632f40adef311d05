import type { Clock } from '../../../kit/clock.js'
import { PATIENCE } from './request-codec.js'

/** When the peer of a request last said that it has it, and for how long it may say nothing. */
export class LivenessTimer {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** null: its peer never said so. */
  #at: number | null = null
  #patienceMs: number

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#patienceMs = leaseMs
  }

  /** Its peer says that it has it. */
  onHeartbeat(): void {
    this.#at = this.#clock.monotonic()
    this.#patienceMs = this.#leaseMs
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
    return this.#at !== null && this.#clock.monotonic() - this.#at > this.#patienceMs
  }

  /** It is asked again: the peer gets more time with each. */
  askedAgain(): void {
    this.#at = this.#clock.monotonic()
    this.#patienceMs = Math.min(PATIENCE.maxMs, this.#patienceMs * 2)
  }
}
