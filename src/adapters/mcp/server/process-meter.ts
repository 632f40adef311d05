import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock } from '../../../kit/clock.js'

/** Milliseconds between two samples of the event loop. */
const SAMPLE_MS = 20
/** A figure says how it was in the last one or two of these. */
const WINDOW_MS = 10_000
const NS_PER_MS = 1e6

/** Resource usage of the process itself. Tests pass numbers. */
export interface ProcessMeter {
  /** Resident memory. */
  memoryBytes(): number
  /** How late the event loop runs, 99th percentile of the last seconds. */
  loopDelayMs(): number
  close(): void
}

/** Measures this process until it is closed. */
export function startProcessMeter(clock: Pick<Clock, 'every' | 'clear'>): ProcessMeter {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  histogram.enable()
  let before = 0
  // The histogram counts the time between two samples; time beyond the resolution is delay.
  const delayMs = (): number =>
    histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(99) / NS_PER_MS - SAMPLE_MS)
  const timer = clock.every(WINDOW_MS, () => {
    before = delayMs()
    histogram.reset()
  })
  return {
    memoryBytes: () => process.memoryUsage.rss(),
    loopDelayMs: () => Math.max(before, delayMs()),
    close: () => {
      clock.clear(timer)
      histogram.disable()
    }
  }
}
