import { type Backoff, backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'

/** Wait after the first failed try; it doubles with each. */
const FIRST_WAIT_MS = 250

/** Milliseconds that a result lasts at least: a peer, such as one of another mesh, may end each stream at once. */
const LASTING_MS = 10_000

/** Tries again and again, with longer waits while tries fail, until it is stopped. */
export class Redial {
  readonly #clock: Clock
  readonly #attempt: (signal: AbortSignal) => Promise<boolean>
  readonly #waits: Backoff
  readonly #abort = new AbortController()
  #failed = 0
  #timer: Timer | null = null
  #isTrying = false

  /**
   * `attempt`: one try, which must not reject; true when it worked, once its result is over. It begins at once.
   * `maxMs`: the longest wait between two.
   */
  constructor(clock: Clock, attempt: (signal: AbortSignal) => Promise<boolean>, maxMs = 30_000) {
    this.#clock = clock
    this.#waits = { baseMs: FIRST_WAIT_MS, maxMs }
    this.#attempt = attempt
    this.now()
  }

  /** Forgets the failed tries, and tries now unless a try is under way. */
  now(): void {
    this.#failed = 0
    this.#clock.clear(this.#timer)
    if (!this.#isTrying && !this.#abort.signal.aborted) void this.#try()
  }

  /** Ends a try under way. */
  stop(): void {
    this.#abort.abort()
    this.#clock.clear(this.#timer)
  }

  async #try(): Promise<void> {
    this.#isTrying = true
    const { signal } = this.#abort
    const since = this.#clock.monotonic()
    const isLasting = (await this.#attempt(signal)) && this.#clock.monotonic() - since >= LASTING_MS
    this.#failed = isLasting ? 0 : this.#failed + 1
    this.#isTrying = false
    if (signal.aborted) return
    this.#timer = this.#clock.after(backoffMs(this.#waits, this.#failed - 1), () => void this.#try())
  }
}
