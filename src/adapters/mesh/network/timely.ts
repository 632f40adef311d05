import type { Clock } from '../../../kit/clock.js'

/**
 * Waits for a step of closing, but at most `limitMs`; true when it ended in time. Its failures are not the caller's.
 */
export function timely(step: Promise<unknown>, clock: Clock, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(limitMs, () => resolve(false))
    const done = (): void => {
      clock.clear(timer)
      resolve(true)
    }
    step.then(done, done)
  })
}
