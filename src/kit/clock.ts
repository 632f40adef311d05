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

/** Wall-clock times for what happens so often that reading both clocks each time would cost more than the rest. */
export class Stamps {
  readonly #clock: Pick<Clock, 'now'>
  #readAt = Number.NEGATIVE_INFINITY
  #now = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Unix milliseconds of `monotonic`, which was read just now. The wall clock is read again once a millisecond has passed. */
  of(monotonic: number): number {
    if (monotonic - this.#readAt < 1) return this.#now
    this.#readAt = monotonic
    return (this.#now = this.#clock.now())
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
