import { isRecord } from '../../../kit/json.js'
import type { Check, SchemaFault } from '../../../kit/sign.js'
import { isQuickPattern, LinearPatterns, type MakePattern } from './patterns.js'
import type { TimeLimit } from '../process/time-limit.js'

/** Milliseconds of a check by exact patterns. The node does nothing else meanwhile. */
const BRIEF_MS = 10
/** The same for a schema by which a check took too long before: many such values must not hold the node up. */
const SLOW_MS = 1
/** Milliseconds of a check by linear patterns. */
const LINEAR_MS = 400
/** Milliseconds of a check by exact patterns, for values that linear patterns cannot check: long texts. */
const EXACT_MS = 250

/** Keywords of a quick schema that cost more than reading the value does. */
const MAX_COST = 4

/** How a schema checks a value. */
export interface TimedCheckDeps {
  /** By patterns of JavaScript. It may throw, e.g. when the stack overflows. */
  readonly exact: Check
  /** By other patterns, whose errors its check throws. @throws Error when one of its patterns cannot be made */
  makeLinear(pattern: MakePattern): Check
  readonly limit: TimeLimit
}

/**
 * Does a check take time linear to the value, whatever that is? `$ref` may read a part of it many times, some patterns
 * a text.
 */
export function isQuickSchema(schema: unknown): boolean {
  return costOf(schema) <= MAX_COST
}

/** Keywords whose check may take longer than reading the value: one each, infinity for a check without a bound. */
function costOf(schema: unknown): number {
  if (Array.isArray(schema)) return sum(schema.map(costOf))
  if (!isRecord(schema)) return 0
  return sum(Object.entries(schema).map(([key, value]) => costOf(value) + ownCost(key, value)))
}

function ownCost(key: string, value: unknown): number {
  if (key === '$ref' || key === '$dynamicRef' || key === '$recursiveRef') return Number.POSITIVE_INFINITY
  if (key === 'uniqueItems') return 1
  if (key === 'pattern' && typeof value === 'string') return isQuickPattern(value) ? 0 : Number.POSITIVE_INFINITY
  if (key !== 'patternProperties' || !isRecord(value)) return 0
  const patterns = Object.keys(value)
  return patterns.every(isQuickPattern) ? patterns.length : Number.POSITIVE_INFINITY
}

function sum(costs: readonly number[]): number {
  return costs.reduce((total, one) => total + one, 0)
}

/**
 * A check that may take too long. It is ended then, and made again by linear patterns, which mean the same but for a
 * few signs.
 */
export class TimedCheck {
  readonly #deps: TimedCheckDeps
  readonly #patterns = new LinearPatterns()
  #linear: Check | null = null
  /** Did exact patterns take too long before? */
  #isSlow = false

  constructor(deps: TimedCheckDeps) {
    this.#deps = deps
  }

  /** Faults of a value; a check that takes too long is a fault. Total. */
  check(value: unknown): readonly SchemaFault[] {
    return (
      this.#byExact(value, this.#isSlow ? SLOW_MS : BRIEF_MS) ??
      this.#byLinear(value) ??
      this.#byExact(value, EXACT_MS) ?? [
        { path: '', message: 'could not be checked: a pattern, or a part that refers to itself, takes too long' }
      ]
    )
  }

  #byExact(value: unknown, ms: number): readonly SchemaFault[] | null {
    const faults = this.#within(ms, () => this.#deps.exact(value))
    if (faults === null) this.#isSlow = true
    return faults
  }

  #byLinear(value: unknown): readonly SchemaFault[] | null {
    const faults = this.#within(LINEAR_MS, () => {
      this.#patterns.begin()
      this.#linear ??= this.#deps.makeLinear((text) => this.#patterns.make(text))
      return this.#linear(value)
    })
    // An interrupted check may be left in any state.
    if (faults === null) this.#linear = null
    return faults
  }

  #within(ms: number, check: () => readonly SchemaFault[]): readonly SchemaFault[] | null {
    try {
      return this.#deps.limit.within(ms, check)
    } catch {
      return null
    }
  }
}
