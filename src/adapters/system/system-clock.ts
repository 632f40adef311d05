import type { Clock } from '../../kit/clock.js'

/** The computer's own time and timers. Timers do not keep the process alive; delays past 24.8 days fire after 24.8 days. */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after: (delayMs, run) => setTimeout(run, bounded(delayMs)).unref(),
    every: (periodMs, run) => setInterval(run, bounded(periodMs)).unref(),
    // Made by setTimeout or setInterval above; clearTimeout ends both and ignores spent ones.
    clear: (timer) => clearTimeout((timer ?? undefined) as NodeJS.Timeout | undefined)
  }
}

// Node runs a timer with a longer delay at once.
function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), 2 ** 31 - 1)
}
