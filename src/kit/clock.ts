/** A running timer; give it back to {@link Clock.clear}. */
export type Timer = { readonly __timer: unique symbol } | object

/** Time as a part: domain and node never read a clock or set a timer themselves. */
export interface Clock {
  /** Wall clock, unix milliseconds. */
  now(): number
  /** Monotonic milliseconds (fractions allowed), for durations. */
  monotonic(): number
  /** Calls `run` once after `delayMs`; does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer
  /** Calls `run` every `periodMs`; does not keep the process alive. */
  every(periodMs: number, run: () => void): Timer
  /** Stops a timer; a spent or cleared one is ignored. */
  clear(timer: Timer | null): void
}

/** Wall-clock times for frequent events, for which reading both clocks each time would cost too much. */
export class Stamps {
  readonly #clock: Pick<Clock, 'now'>
  #readAt = Number.NEGATIVE_INFINITY
  #now = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /**
   * Unix milliseconds of `monotonic`, which was read just now. The wall clock is read again once a millisecond has
   * passed.
   */
  of(monotonic: number): number {
    if (monotonic - this.#readAt < 1) return this.#now
    this.#readAt = monotonic
    return (this.#now = this.#clock.now())
  }
}

/** Clocks of two machines that differ by more are reported, in milliseconds. */
export const MAX_SKEW_MS = 120_000

/** A wall clock that gained more than this since the last look, in milliseconds, may be wrong. */
const JUMP_MS = 60_000
/** It counts when it has stayed so for this long, in milliseconds. */
const STAYED_MS = 600_000

/**
 * The wall clock for irreversible expiry. A jump forward counts only after ten minutes; until then its time continues
 * as before. A jump back counts at once.
 */
export class ExpiryClock {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  #wall: number
  #monotonic: number
  /** Monotonic milliseconds since when it has been ahead; null: it is not. */
  #aheadSince: number | null = null

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock
    this.#wall = clock.now()
    this.#monotonic = clock.monotonic()
  }

  /** Unix milliseconds. */
  now(): number {
    const [wall, monotonic] = [this.#clock.now(), this.#clock.monotonic()]
    const expected = Math.floor(this.#wall + monotonic - this.#monotonic)
    if (wall - expected > JUMP_MS) {
      this.#aheadSince ??= monotonic
      if (monotonic - this.#aheadSince < STAYED_MS) return expected
    }
    this.#aheadSince = null
    this.#wall = wall
    this.#monotonic = monotonic
    return wall
  }
}

/** Runs a function soon after it is due, at most once per interval. */
export class Debounce {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #run: () => void
  #timer: Timer | null = null
  #isDue = false
  #isClosed = false

  constructor(clock: Clock, everyMs: number, run: () => void) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#run = run
  }

  /** Runs it in this turn, or at the end of the interval. */
  due(): void {
    if (this.#timer === null) this.run()
    else this.#isDue = true
  }

  /** Runs it now. */
  run(): void {
    if (this.#isClosed) return
    this.#isDue = false
    this.#clock.clear(this.#timer)
    this.#timer = this.#clock.after(this.#everyMs, () => {
      this.#timer = null
      if (this.#isDue) this.run()
    })
    this.#run()
  }

  /** Runs it no more. */
  close(): void {
    this.#isClosed = true
    this.#clock.clear(this.#timer)
  }
}

/** Resolves after `delayMs` of the given clock, or at once when the signal aborts. */
export function wait(clock: Clock, delayMs: number, signal?: AbortSignalLike): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = clock.after(delayMs, done)
    signal?.addEventListener('abort', done)
    function done(): void {
      clock.clear(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
  })
}

/** The part of the standard AbortSignal that pure rooms use. */
export interface AbortSignalLike {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}
