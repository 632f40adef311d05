import type { CompleteResult } from '@modelcontextprotocol/server'
import { isRecord } from '../../../kit/json.js'

/** Values of one completion, as the protocol has it. */
export const MAX_VALUES = 100
/** Characters of a value of another server; a longer one is left out. */
const MAX_VALUE = 4096

/** An unfinished argument of a prompt or of a URI pattern. */
export interface Completing {
  readonly argument: string
  /** The text so far. */
  readonly value: string
  /** The other arguments, so far as they are given. */
  readonly given: Readonly<Record<string, string>>
}

/** A completion that a server made. */
export type Completion = CompleteResult['completion']

/**
 * All values that an argument may have, in the order to show, or a finished completion; undefined when there is no such
 * prompt or pattern here, or nothing known.
 */
export type Complete = (name: string, completing: Completing) => Promise<readonly string[] | Completion | undefined>

/** The completion in an answer of a server or peer, bounded; one without values for anything else. */
export function completionIn(answer: unknown): Completion {
  const { values, total, hasMore } = isRecord(answer) ? answer : {}
  const texts = (Array.isArray(values) ? (values as readonly unknown[]) : []).filter(
    (one): one is string => typeof one === 'string' && one.length <= MAX_VALUE
  )
  return {
    values: texts.slice(0, MAX_VALUES),
    ...(Number.isSafeInteger(total) ? { total: total as number } : {}),
    ...(typeof hasMore === 'boolean' ? { hasMore } : {})
  }
}

/** Several sources' as one: the first that knows the name. undefined when none completes anything. */
export function joinComplete(sources: readonly { readonly complete?: Complete }[]): { readonly complete?: Complete } {
  const able = sources.filter((one): one is { readonly complete: Complete } => one.complete !== undefined)
  if (able.length === 0) return {}
  return {
    complete: async (name, completing) => {
      for (const source of able) {
        const values = await source.complete(name, completing)
        if (values !== undefined) return values
      }
      return undefined
    }
  }
}
