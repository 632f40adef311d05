import { messageOf } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { LogLevel } from '../../ports/telemetry.js'

/** `text` is for terminals, `ndjson` for programs. */
export type LogFormat = 'text' | 'ndjson'

/** One thing to log. */
export interface LogRecord {
  /** Unix milliseconds. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/**
 * One line with its newline: `HH:MM:SS level message key=value` (local time) or `{"at","level","message","fields"}` (ISO time).
 * Every text has control characters removed and is cut at 256 characters; no field can end the line or look like another.
 */
export function logLine(record: LogRecord, format: LogFormat): string {
  return `${format === 'text' ? textLine(record) : jsonLine(record)}\n`
}

function textLine({ at, level, message, fields }: LogRecord): string {
  const pairs = Object.entries(fields).map(([key, value]) => ` ${shown(key)}=${fieldText(value)}`)
  return `${timeOfDay(at)} ${level.padEnd(5)} ${shown(message)}${pairs.join('')}`
}

function jsonLine({ at, level, message, fields }: LogRecord): string {
  const safe = Object.fromEntries(Object.entries(fields).map(([key, value]) => [shown(key), safeValue(value)]))
  return JSON.stringify({ at: new Date(at).toISOString(), level, message: shown(message), fields: safe })
}

function timeOfDay(at: number): string {
  const time = new Date(at)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

function fieldText(value: unknown): string {
  const safe = String(safeValue(value))
  return /^[^\s"=]+$/.test(safe) ? safe : JSON.stringify(safe)
}

function safeValue(value: unknown): string | number | boolean | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value === 'string') return shown(value)
  return shown(value instanceof Error ? messageOf(value) : jsonText(value))
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? typeof value
  } catch {
    return typeof value
  }
}
