import type { Clock } from '../../kit/clock.js'
import type { LogLevel, MetricName, MetricsSnapshot, Telemetry } from '../../ports/telemetry.js'
import { logLine } from './log-line.js'
import type { LogFormat } from './log-line.js'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
/** Labels a metric may have; further ones are counted as `other`. */
const MAX_LABELS = 64

/** What telemetry is made of. */
export interface TelemetryOptions {
  readonly clock: Pick<Clock, 'now'>
  /** The least level that is written; null writes nothing. */
  readonly level: LogLevel | null
  readonly format: LogFormat
  /** Takes one line with its newline. What it throws is swallowed: a closed terminal must not stop a node. */
  readonly write: (line: string) => void
}

interface Timing {
  count: number
  sumMs: number
  maxMs: number
}

/** Counts and times in memory; log lines go to a writer. */
export class MemoryTelemetry implements Telemetry {
  readonly #options: TelemetryOptions
  readonly #counters = new Map<MetricName, Map<string | null, number>>()
  readonly #timings = new Map<MetricName, Timing>()

  constructor(options: TelemetryOptions) {
    this.#options = options
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const least = this.#options.level
    if (least === null || LEVELS.indexOf(level) < LEVELS.indexOf(least)) return
    try {
      this.#options.write(logLine({ at: this.#options.clock.now(), level, message, fields }, this.#options.format))
    } catch {
      this.count('errors', 'log')
    }
  }

  count(name: MetricName, label?: string, by = 1): void {
    const labels = this.#counters.get(name) ?? new Map<string | null, number>()
    this.#counters.set(name, labels)
    const wanted = label ?? null
    const key = labels.has(wanted) || labels.size < MAX_LABELS ? wanted : 'other'
    labels.set(key, (labels.get(key) ?? 0) + by)
  }

  time(name: MetricName, durationMs: number): void {
    const timing = this.#timings.get(name) ?? { count: 0, sumMs: 0, maxMs: 0 }
    timing.count++
    timing.sumMs += durationMs
    timing.maxMs = Math.max(timing.maxMs, durationMs)
    this.#timings.set(name, timing)
  }

  snapshot(): MetricsSnapshot {
    const counters = [...this.#counters].flatMap(([name, labels]) => [...labels].map(([label, value]) => ({ name, label, value })))
    const timings = [...this.#timings].map(([name, timing]) => ({ name, ...timing }))
    return { counters, timings }
  }
}
