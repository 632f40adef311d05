import type { z } from 'zod'
import { type KindWords, plainReason } from '../schema-words.js'
import { MAX_FAULTS, type MessageFault, type MessageRead } from './message.js'

const KINDS: KindWords = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object'
}

/** Reads a value of a client by a schema, and says in plain words what is wrong with it, and where: `events[0]`, '' for the whole. Total. */
export function readBy<T>(schema: z.ZodType<T>, value: unknown): MessageRead<T> {
  const parsed = schema.safeParse(value, { error: (issue) => plainReason(issue, KINDS) ?? 'must be of another form' })
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, faults: parsed.error.issues.slice(0, MAX_FAULTS).map(faultOf) }
}

function faultOf({ path, message }: z.core.$ZodIssue): MessageFault {
  const place = path.map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at === 0 ? '' : '.'}${String(step)}`))
  return { path: place.join(''), message }
}
