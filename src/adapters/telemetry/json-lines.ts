import { pino } from 'pino'
import { safeRecord } from './log-line.js'
import type { LogRecord } from './log-line.js'
import type { Redact } from './redact.js'

/**
 * Structured log lines by pino: `{"level","at","correlationId"?,"fields","message"}`, ISO time, one object a line. This
 * module loads pino (8 MB, 50 ms), so it is itself loaded only by a node that is to write such lines.
 */
export function jsonLines(write: (line: string) => void, redact: Redact): (record: LogRecord) => void {
  let at = 0
  const logger = pino(
    {
      // Levels are chosen before.
      level: 'debug',
      base: null,
      messageKey: 'message',
      timestamp: () => `,"at":"${new Date(at).toISOString()}"`,
      formatters: { level: (level) => ({ level }) }
    },
    { write }
  )
  return (record) => {
    at = record.at
    const { message, correlationId, fields } = safeRecord(record, redact)
    logger[record.level](correlationId === null ? { fields } : { correlationId, fields }, message)
  }
}
