import type { LogLevel } from '../../ports/telemetry.js'
import { sanitized } from './redact.js'
import type { Redact } from './redact.js'

/** One thing to log. */
export interface LogRecord {
  /** Unix milliseconds. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** The members of a record as they may be written: secrets taken out, texts made safe, everything bounded. */
export interface SafeRecord {
  readonly message: string
  /** The thread of the message that the record is about. */
  readonly correlationId: string | null
  readonly fields: Readonly<Record<string, unknown>>
}

/** Makes a record fit to be written. Its own fields are not changed. */
export function safeRecord({ message, fields }: LogRecord, redact: Redact): SafeRecord {
  const safe = redact(fields)
  const { correlationId = null, ...rest } = (
    typeof safe === 'object' && safe !== null ? safe : { fields: safe }
  ) as Record<string, unknown>
  return {
    message: sanitized(message),
    correlationId: typeof correlationId === 'string' ? correlationId : null,
    fields: rest
  }
}

/**
 * One line for a terminal, with its newline: `HH:MM:SS level message key=value` (local time). No field can end the line
 * or imitate another; nested values are JSON.
 */
export function textLine(record: LogRecord, redact: Redact): string {
  const { message, correlationId, fields } = safeRecord(record, redact)
  const all = correlationId === null ? fields : { correlationId, ...fields }
  const pairs = Object.entries(all).map(([key, value]) => ` ${key.replace(/[\s="]/g, '_')}=${fieldText(value)}`)
  return `${timeOfDay(record.at)} ${record.level.padEnd(5)} ${message}${pairs.join('')}\n`
}

function timeOfDay(at: number): string {
  const time = new Date(at)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

function fieldText(value: unknown): string {
  const text = sanitized(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text)
}
