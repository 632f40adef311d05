/** Levels of log lines. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Where the node's words and counts go. Never throws. Metric names and labels are the node's own words, never peer text. */
export interface Telemetry {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void
  /** Is a line of this level written at all? Spares making fields for nobody. */
  logs(level: LogLevel): boolean
  count(name: MetricName, label?: string, by?: number): void
  /** A duration in milliseconds. */
  time(name: MetricName, durationMs: number): void
  snapshot(): MetricsSnapshot
}

/** The metrics there are; each is counted where the thing happens. */
export type MetricName =
  | 'messages_sent'
  | 'messages_received'
  | 'messages_refused'
  | 'messages_delivered'
  | 'messages_passed_on'
  | 'approvals'
  | 'routing_ms'
  | 'routing_decisions'
  | 'routing_decision_ms'
  | 'tasks_started'
  | 'tasks_completed'
  | 'tasks_failed'
  | 'task_ms'
  | 'links_opened'
  | 'links_closed'
  | 'strangers_cut'
  | 'frames_malformed'
  | 'log_entries_submitted'
  | 'errors'

/** All counts at one moment. */
export interface MetricsSnapshot {
  readonly counters: readonly { readonly name: string; readonly label: string | null; readonly value: number }[]
  readonly timings: readonly { readonly name: string; readonly count: number; readonly sumMs: number; readonly maxMs: number }[]
}
