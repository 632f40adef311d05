import type { Clock } from '../../kit/clock.js'

/** Longest delay that the system holds, in milliseconds: 24.8 days. It runs a timer with a longer one at once. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * The computer's own time and timers. Timers do not keep the process alive. `longestMs`: what one timer of the system
 * is given at most.
 */
export function systemClock(longestMs = LONGEST_MS): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after: (delayMs, run) =>
      delayMs > longestMs ? new LongTimer(delayMs, longestMs, run) : setTimeout(run, Math.max(delayMs, 0)).unref(),
    every: (periodMs, run) => setInterval(run, Math.min(Math.max(periodMs, 0), longestMs)).unref(),
    clear: (timer) => {
      if (timer instanceof LongTimer) timer.clear()
      // Made by setTimeout or setInterval above; clearTimeout ends both and ignores spent ones.
      else clearTimeout((timer ?? undefined) as NodeJS.Timeout | undefined)
    }
  }
}

/** A delay that takes several timers of the system, one after the other. */
class LongTimer {
  readonly #longestMs: number
  readonly #run: () => void
  #timer: NodeJS.Timeout

  constructor(delayMs: number, longestMs: number, run: () => void) {
    this.#longestMs = longestMs
    this.#run = run
    this.#timer = this.#next(delayMs)
  }

  clear(): void {
    clearTimeout(this.#timer)
  }

  #next(leftMs: number): NodeJS.Timeout {
    if (leftMs <= this.#longestMs) return setTimeout(this.#run, leftMs).unref()
    return setTimeout(() => {
      this.#timer = this.#next(leftMs - this.#longestMs)
    }, this.#longestMs).unref()
  }
}
