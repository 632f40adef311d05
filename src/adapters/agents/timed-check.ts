import { isRecord } from '../../kit/json.js'
import type { Check, SchemaFault } from '../../kit/sign.js'
import { isQuickPattern, LinearPatterns, type MakePattern } from './patterns.js'
import type { TimeLimit } from './time-limit.js'

/** Milliseconds of a check by exact patterns, and of one by linear patterns. The node does nothing else meanwhile. */
const EXACT_MS = 250
const LINEAR_MS = 400

/** How a schema checks a value. */
export interface TimedCheckParts {
  /** By patterns of JavaScript. It may throw, for one when there is no room to go on. */
  readonly exact: Check
  /** By other patterns; its check throws what those throw. @throws Error when one of its patterns cannot be made */
  makeLinear(pattern: MakePattern): Check
  readonly limit: TimeLimit
}

/** Does a check take time linear to the value, whatever that is? `$ref` may read a part of it many times, some patterns a text. */
export function isQuickSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isQuickSchema)
  if (!isRecord(schema)) return true
  return Object.entries(schema).every(([key, value]) => {
    if (key === '$ref' || key === '$dynamicRef' || key === '$recursiveRef') return false
    if (key === 'pattern' && typeof value === 'string') return isQuickPattern(value)
    const isByPattern = key === 'patternProperties' && isRecord(value)
    return isQuickSchema(value) && (!isByPattern || Object.keys(value).every(isQuickPattern))
  })
}

/** A check that may take too long. It is ended then, and made again by linear patterns, so that a text of 36 characters gets its answer. */
export class TimedCheck {
  readonly #parts: TimedCheckParts
  readonly #patterns = new LinearPatterns()
  #linear: Check | null = null
  /** Did exact patterns take too long before? Then they come last. */
  #isSlow = false

  constructor(parts: TimedCheckParts) {
    this.#parts = parts
  }

  /** What does not fit; a value that cannot be checked in time does not fit. Total. */
  check(value: unknown): readonly SchemaFault[] {
    const faults = this.#isSlow ? (this.#byLinear(value) ?? this.#byExact(value)) : (this.#byExact(value) ?? this.#byLinear(value))
    return faults ?? [{ path: '', message: 'could not be checked: a pattern, or a part that refers to itself, takes too long' }]
  }

  #byExact(value: unknown): readonly SchemaFault[] | null {
    const faults = this.#within(EXACT_MS, () => this.#parts.exact(value))
    if (faults === null) this.#isSlow = true
    return faults
  }

  #byLinear(value: unknown): readonly SchemaFault[] | null {
    const faults = this.#within(LINEAR_MS, () => {
      this.#patterns.begin()
      this.#linear ??= this.#parts.makeLinear((text) => this.#patterns.make(text))
      return this.#linear(value)
    })
    // What was ended in the middle may be left in any state.
    if (faults === null) this.#linear = null
    return faults
  }

  #within(ms: number, check: () => readonly SchemaFault[]): readonly SchemaFault[] | null {
    try {
      return this.#parts.limit.within(ms, check)
    } catch {
      return null
    }
  }
}
