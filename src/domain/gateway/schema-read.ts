import type { z } from 'zod'
import { jsonReason } from '../schema-words.js'
import { MAX_FAULTS, type MessageFault, type MessageRead } from './message.js'

/**
 * Parses a client's value by a schema. Faults are in plain words with their path: `events[0]`, '' for the whole. Total.
 */
export function readBy<T>(schema: z.ZodType<T>, value: unknown): MessageRead<T> {
  const parsed = schema.safeParse(value, { error: (issue) => jsonReason(issue) ?? 'must be of another form' })
  return parsed.success
    ? { ok: true, value: parsed.data }
    : { ok: false, faults: parsed.error.issues.slice(0, MAX_FAULTS).map(faultOf) }
}

function faultOf({ path, message }: z.core.$ZodIssue): MessageFault {
  const place = path.map((step, at) =>
    typeof step === 'number' ? `[${step}]` : `${at === 0 ? '' : '.'}${String(step)}`
  )
  return { path: place.join(''), message }
}
