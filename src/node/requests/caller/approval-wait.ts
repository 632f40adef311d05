import type { Clock } from '../../../kit/clock.js'
import { MAX_APPROVAL_WAIT_MS } from '../../../domain/task/payloads.js'

/**
 * The time that a request waited for a person at its peer, by the reports of the peer: at most
 * {@link MAX_APPROVAL_WAIT_MS} in all. A report counts for `leaseMs`, then the wait counts as over.
 */
export class ApprovalWait {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** Milliseconds of earlier waits. */
  #beforeMs = 0
  /** Monotonic milliseconds of the first and the last report of the present wait; null: it does not wait. */
  #now: { readonly since: number; readonly reportedAt: number } | null = null

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** Does it wait, by the last report? */
  get isWaiting(): boolean {
    return this.#now !== null
  }

  /** Its milliseconds so far. */
  get ms(): number {
    return Math.min(MAX_APPROVAL_WAIT_MS, this.#beforeMs + this.#presentMs)
  }

  /** Milliseconds that it may still wait. */
  get leftMs(): number {
    return MAX_APPROVAL_WAIT_MS - this.ms
  }

  /** Milliseconds until the present wait counts as over without a further report; 0 without one. */
  get graceMs(): number {
    if (this.#now === null || this.leftMs === 0) return 0
    return Math.max(0, Math.min(this.leftMs, this.#now.reportedAt + this.#leaseMs - this.#clock.monotonic()))
  }

  /** Its peer reports that it waits. */
  reported(): void {
    const now = this.#clock.monotonic()
    // Time after a report has run out is none of waiting.
    if (this.#now !== null && this.graceMs === 0) this.over()
    this.#now = { since: this.#now?.since ?? now, reportedAt: now }
  }

  /** Its peer reports that it waits no longer. */
  over(): void {
    this.#beforeMs += this.#presentMs
    this.#now = null
  }

  get #presentMs(): number {
    if (this.#now === null) return 0
    const { since, reportedAt } = this.#now
    return Math.min(this.#clock.monotonic(), reportedAt + this.#leaseMs) - since
  }
}
