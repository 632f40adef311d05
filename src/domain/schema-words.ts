import type { z } from 'zod'

/** What the kinds of values are called, as schemas name them, for whoever wrote the value. */
export type KindWords = Readonly<Record<string, string>>

const UNITS: Readonly<Record<string, string>> = { string: ' characters long', array: ' entries long' }

/**
 * What must stand at a place of a value that does not fit, as `must be ...`: in place of the words of the schema library, which are
 * for those who know it. undefined where the schema says it itself.
 */
export function plainReason(issue: z.core.$ZodRawIssue, kinds: KindWords): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${kinds[issue.expected] ?? issue.expected}`
  if (issue.code === 'too_small') return issue.origin === 'number' ? `must be at least ${issue.minimum}` : 'must not be empty'
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  return issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined
}
