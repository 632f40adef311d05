import type { Measured, METRICS } from '../kit/prometheus.js'

/** Levels of log lines. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/**
 * Where the node's words and counts go. Never throws. Metric names and labels are the node's own words, never peer
 * text.
 */
export interface Telemetry {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void
  /** Is this level logged? Spares building unused fields. */
  logs(level: LogLevel): boolean
  count(name: MetricName, label?: string, by?: number): void
  /** A duration in milliseconds. */
  time(name: MetricName, durationMs: number): void
  snapshot(): MetricsSnapshot
}

/** The metrics there are; each is counted where the thing happens. */
export type MetricName = keyof typeof METRICS

/** All counts at one moment. */
export type MetricsSnapshot = Measured
