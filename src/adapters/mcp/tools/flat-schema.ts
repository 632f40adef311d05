import { isRecord } from '../../../kit/json.js'
import { schemaTarget } from '../../../kit/schema/cost.js'

/** Levels of combinators and references that are merged. */
const MAX_LEVELS = 8
/** Schemas that are merged into one. */
const MAX_MERGED = 128

/** The schema of an object without combinators. It may allow more than the schema that it comes from. */
export interface Flat {
  readonly properties: Map<string, unknown>
  readonly required: Set<string>
  /** `additionalProperties`. */
  additional: unknown
  /** Sentences: its description first, then the members that its variants need. */
  readonly notes: Set<string>
  /** Pointers of the references that were followed. */
  readonly merged: Set<string>
}

interface Merging {
  readonly root: Readonly<Record<string, unknown>>
  /** Pointers that are not followed. */
  readonly open: ReadonlySet<string>
  readonly followed: Set<string>
  count: number
}

/**
 * The object that a schema describes, with `$ref`, `allOf`, `anyOf`, `oneOf`, `then` and `else` merged into it. `open`:
 * references that are left out.
 */
export function flatObject(
  schema: Readonly<Record<string, unknown>>,
  root: Readonly<Record<string, unknown>>,
  open: ReadonlySet<string>
): Flat {
  return flat(schema, { root, open, followed: new Set(), count: 0 }, 0)
}

function flat(schema: unknown, merging: Merging, level: number): Flat {
  const { root, open, followed } = merging
  const made: Flat = {
    properties: new Map(),
    required: new Set(),
    additional: undefined,
    notes: new Set(),
    merged: followed
  }
  if (!isRecord(schema) || level > MAX_LEVELS || merging.count++ > MAX_MERGED) return made
  own(schema, made)
  const { $ref, allOf, if: condition, then, else: other } = schema
  if (typeof $ref === 'string' && !open.has($ref)) {
    followed.add($ref)
    join(made, flat(schemaTarget(root, $ref), merging, level + 1), true)
  }
  for (const one of listOf(allOf)) join(made, flat(one, merging, level + 1), true)
  if (condition !== undefined) for (const one of [then, other]) join(made, flat(one, merging, level + 1), false)
  for (const word of ['anyOf', 'oneOf'] as const) {
    const variants = listOf(schema[word]).map((one) => flat(one, merging, level + 1))
    if (variants.length > 0) choose(made, variants, word === 'oneOf')
  }
  return made
}

function own(
  { properties, required, additionalProperties, patternProperties, description }: Readonly<Record<string, unknown>>,
  into: Flat
): void {
  if (typeof description === 'string') into.notes.add(description)
  if (isRecord(properties)) for (const [name, one] of Object.entries(properties)) into.properties.set(name, one)
  for (const name of listOf(required)) if (typeof name === 'string') into.required.add(name)
  // Names of a pattern must not be refused.
  into.additional = patternProperties === undefined ? additionalProperties : true
}

/** Adds the members of a schema that also holds (`isSure`), or may. */
function join(into: Flat, from: Flat, isSure: boolean): void {
  for (const [name, one] of from.properties) {
    const known = into.properties.get(name)
    if (known === undefined || known === true) into.properties.set(name, one)
    else if (!isSure) into.properties.set(name, either(known, one))
  }
  if (isSure) for (const name of from.required) into.required.add(name)
  if (isSure) for (const note of from.notes) into.notes.add(note)
  if (from.additional !== undefined) into.additional = into.additional === undefined ? from.additional : true
}

/** Adds the members of variants: those that all need are needed, and a note names the others. */
function choose(into: Flat, variants: readonly Flat[], isOne: boolean): void {
  const [first, ...others] = variants
  const common = [...(first?.required ?? [])].filter((name) => others.every(({ required }) => required.has(name)))
  const needs = variants.map(({ required }) =>
    [...required].filter((name) => !common.includes(name) && !into.required.has(name))
  )
  for (const one of variants) {
    for (const [name, schema] of one.properties) {
      const known = into.properties.get(name)
      into.properties.set(name, known === undefined || known === true ? schema : either(known, schema))
    }
  }
  for (const name of common) into.required.add(name)
  // A variant may allow members that another one refuses.
  if (variants.some(({ properties }) => properties.size > 0) && into.additional === undefined)
    into.additional = !variants.every(({ additional }) => additional === false)
  const texts = new Set(needs.filter((names) => names.length > 0).map((names) => names.join(' and ')))
  if (texts.size > 1) into.notes.add(`Needs ${isOne ? 'exactly one' : 'one'} of: ${[...texts].join('; ')}.`)
}

function either(a: unknown, b: unknown): unknown {
  if (JSON.stringify(a) === JSON.stringify(b) || b === true || b === undefined) return a
  const values = [...textsOf(a), ...textsOf(b)]
  // The word that tells variants apart: one list of all of its values.
  if (isRecord(a) && textsOf(a).length > 0 && textsOf(b).length > 0)
    return { ...a, const: undefined, type: 'string', enum: [...new Set(values)] }
  return { anyOf: [a, b] }
}

/** The values of a schema that lists texts alone; empty for any other schema. */
function textsOf(schema: unknown): readonly unknown[] {
  if (!isRecord(schema)) return []
  const values = schema['const'] === undefined ? listOf(schema['enum']) : [schema['const']]
  return values.every((one) => typeof one === 'string') ? values : []
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}
