import type { z } from 'zod'

/** Words for the types of schemas, for the author of a value. */
export type KindWords = Readonly<Record<string, string>>

const UNITS: Readonly<Record<string, string>> = { string: ' characters long', array: ' entries long' }

/**
 * The reason of a fault as `must be ...`, in place of the words of the schema library. undefined where the schema has
 * its own message.
 */
export function plainReason(issue: z.core.$ZodRawIssue, kinds: KindWords): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${kinds[issue.expected] ?? issue.expected}`
  if (issue.code === 'too_small')
    return issue.origin in UNITS ? 'must not be empty' : `must be at least ${issue.minimum}`
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  return issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined
}

/** Words for values in JSON. */
export const JSON_KINDS: KindWords = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object'
}

/** {@link plainReason} of a value in JSON. */
export function jsonReason(issue: z.core.$ZodRawIssue): string | undefined {
  return plainReason(issue, JSON_KINDS)
}
