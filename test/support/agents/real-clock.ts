import type { Clock } from '../../../src/kit/clock.js'

/** The clock of this machine. Timers keep the process alive, so that a test that waits for one is not cut short. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => setTimeout(run, delayMs),
  every: (periodMs, run) => setInterval(run, periodMs),
  clear: (timer) => {
    if (timer !== null) clearTimeout(timer as NodeJS.Timeout)
  }
}
