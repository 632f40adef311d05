import type { Clock } from '../../kit/clock.js'
import type { LogLevel, MetricName, MetricsSnapshot, Telemetry } from '../../ports/telemetry.js'
import { textLine } from './log-line.js'
import type { LogRecord } from './log-line.js'
import { redactor } from './redact.js'
import type { Redact } from './redact.js'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
/** Labels a metric may have; further ones are counted as `other`. */
const MAX_LABELS = 64
/**
 * Labels are words of this node: codes, types, short names. Any other form may come from a peer and counts as `other`.
 */
const LABEL = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/

/** Makes the writer of a form of lines. */
export type LineFormat = (write: (line: string) => void, redact: Redact) => (record: LogRecord) => void

/** Options of the telemetry in memory. */
export interface TelemetryOptions {
  readonly clock: Pick<Clock, 'now'>
  /** The least level that is written; null writes nothing. */
  readonly level: LogLevel | null
  /** `text` is for terminals; anything else makes lines in a form of its own. */
  readonly format: 'text' | LineFormat
  /** Keys whose values are not logged. Default: those of `REDACT_KEYS`. */
  readonly redactKeys?: readonly string[]
  /** Writes one line with its newline. Its errors are swallowed: a closed terminal must not stop a node. */
  readonly write: (line: string) => void
}

/** A count that is raised in place: no map is written to for each message. */
interface Counter {
  value: number
}

interface Timing {
  count: number
  sumMs: number
  maxMs: number
}

/** Counts and times in memory; log lines go to a writer. */
export class MemoryTelemetry implements Telemetry {
  readonly #options: TelemetryOptions
  #level: LogLevel | null
  #write: (record: LogRecord) => void
  readonly #counters = new Map<MetricName, Map<string | null, Counter>>()
  readonly #timings = new Map<MetricName, Timing>()

  constructor(options: TelemetryOptions) {
    this.#options = options
    this.#level = options.level
    this.#write = this.#writer(options.redactKeys)
  }

  /** Changes the least level that is written, and the keys whose values are not logged. */
  adjust({ level, redactKeys }: Pick<TelemetryOptions, 'level' | 'redactKeys'>): void {
    this.#level = level
    this.#write = this.#writer(redactKeys)
  }

  #writer(redactKeys: readonly string[] | undefined): (record: LogRecord) => void {
    const { format, write } = this.#options
    const redact = redactor(redactKeys)
    return format === 'text' ? (record) => write(textLine(record, redact)) : format(write, redact)
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (!this.logs(level)) return
    try {
      this.#write({ at: this.#options.clock.now(), level, message, fields })
    } catch {
      this.count('errors', 'log')
    }
  }

  logs(level: LogLevel): boolean {
    const least = this.#level
    return least !== null && LEVELS.indexOf(level) >= LEVELS.indexOf(least)
  }

  count(name: MetricName, label?: string, by = 1): void {
    const counter = this.#counters.get(name)?.get(label ?? null) ?? this.#counterOf(name, label)
    counter.value += by
  }

  #counterOf(name: MetricName, label: string | undefined): Counter {
    const labels = this.#counters.get(name) ?? new Map<string | null, Counter>()
    this.#counters.set(name, labels)
    const wanted = label === undefined || LABEL.test(label) ? (label ?? null) : 'other'
    const key = labels.has(wanted) || labels.size < MAX_LABELS ? wanted : 'other'
    const counter = labels.get(key) ?? { value: 0 }
    labels.set(key, counter)
    return counter
  }

  time(name: MetricName, durationMs: number): void {
    let timing = this.#timings.get(name)
    if (timing === undefined) this.#timings.set(name, (timing = { count: 0, sumMs: 0, maxMs: 0 }))
    timing.count++
    timing.sumMs += durationMs
    if (durationMs > timing.maxMs) timing.maxMs = durationMs
  }

  snapshot(): MetricsSnapshot {
    const counters = [...this.#counters].flatMap(([name, labels]) =>
      [...labels].map(([label, { value }]) => ({ name, label, value }))
    )
    const timings = [...this.#timings].map(([name, timing]) => ({ name, ...timing }))
    return { counters, timings }
  }
}
