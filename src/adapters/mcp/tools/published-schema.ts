import { isRecord } from '../../../kit/json.js'
import { schemaTarget } from '../../../kit/schema/cost.js'
import type { ToolSchema } from '../server/tool.js'
import { type Flat, flatObject } from './flat-schema.js'

/** Parts of a published schema, at most; further ones are objects of any members. */
const MAX_PARTS = 3000
/** Levels of parts and references; deeper ones are objects of any members. */
const MAX_LEVELS = 64
/** UTF-16 units of descriptions that come from merged schemas: each reference repeats that of its target. */
const MAX_MERGED_TEXT = 65_536
/** Names of properties that every client takes. */
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/
/** Groups beyond plain ones, and classes of Unicode: not every client can read them. */
const FOREIGN_PATTERN = /\(\?(?!:)|\\[pPkK]/

const SCALARS = [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'object' }] as const
/** Any value, for clients that refuse a schema without a type. */
const ANY_VALUE = {
  anyOf: [...SCALARS, { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'object' }] } }]
} as const

/** Keywords that are published as they are, by the type that they belong to. */
const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'format', 'x-mcp-header'],
  integer: ['minimum', 'maximum', 'format', 'x-mcp-header'],
  number: ['minimum', 'maximum', 'format'],
  boolean: ['x-mcp-header'],
  array: ['minItems', 'maxItems'],
  object: [],
  null: []
}

const published = new WeakMap<ToolSchema, ToolSchema>()

/**
 * A tool's schema in the part of JSON Schema that the APIs of Claude, OpenAI and Gemini accept: no combinators at the
 * root, a type for each property, items for each array, no keyword that one of them refuses. It may allow more than the
 * schema itself, by which the node of the tool checks.
 */
export function publishedSchema(schema: ToolSchema): ToolSchema {
  const known = published.get(schema)
  if (known !== undefined) return known
  const made = new Publishing(schema).root()
  published.set(schema, made)
  return made
}

type SchemaPart = Readonly<Record<string, unknown>>

class Publishing {
  readonly #root: ToolSchema
  /** Published definitions by their pointer in the schema. */
  readonly #names = new Map<string, string>()
  readonly #definitions = new Map<string, SchemaPart>()
  /** Pointers whose schemas are being merged into the one at hand: a second time would have no end. */
  readonly #open = new Set(['#'])
  #left = MAX_PARTS
  #level = 0
  #text = MAX_MERGED_TEXT

  constructor(root: ToolSchema) {
    this.#root = root
  }

  root(): ToolSchema {
    const shape = this.#object(flatObject(this.#root, this.#root, this.#open))
    const definitions = this.#definitions.size === 0 ? {} : { $defs: Object.fromEntries(this.#definitions) }
    // Clients want the list of properties also where it is empty.
    return { ...shape, properties: shape['properties'] ?? {}, ...definitions }
  }

  #object({ properties, required, additional, notes }: Omit<Flat, 'merged'>): SchemaPart {
    const names = [...properties.keys()]
    const shown = names.filter((name) => PROPERTY.test(name) && properties.get(name) !== false)
    const hidden = names.filter((name) => !PROPERTY.test(name))
    const texts = [...notes, ...(hidden.length === 0 ? [] : [`Also takes ${hidden.map(quoted).join(', ')}.`])]
    const description = texts.join(' ').slice(0, this.#text)
    this.#text -= description.length
    const needed = shown.filter((name) => required.has(name))
    return {
      type: 'object',
      ...(description === '' ? {} : { description }),
      ...(shown.length === 0
        ? {}
        : { properties: Object.fromEntries(shown.map((name) => [name, this.#part(properties.get(name), name)])) }),
      ...(needed.length === 0 ? {} : { required: needed }),
      ...(hidden.length === 0 ? this.#additional(additional) : {})
    }
  }

  #additional(additional: unknown): SchemaPart {
    if (additional === false) return { additionalProperties: false }
    const isAny = !isRecord(additional) || Object.keys(additional).length === 0
    return isAny ? {} : { additionalProperties: this.#part(additional) }
  }

  /** A schema below the root. `name`: that of its property. */
  #part(schema: unknown, name = ''): SchemaPart {
    if (this.#left-- <= 0 || this.#level >= MAX_LEVELS) return { type: 'object' }
    if (!isRecord(schema)) return ANY_VALUE
    this.#level++
    const part = this.#described(schema, name)
    this.#level--
    return part
  }

  #described(schema: SchemaPart, name: string): SchemaPart {
    const description = descriptionOf(schema, name)
    const reference = referenceOf(schema)
    const variants = variantsOf(schema)
    const fallback = schema['default'] === undefined || schema['default'] === null ? {} : { default: schema['default'] }
    if (reference !== null) return described(this.#reference(reference), description, fallback)
    if (variants !== null) return described(this.#choice(variants), description, fallback)
    return described(this.#typed(schema, typesOf(schema)), description, fallback)
  }

  #choice(variants: readonly unknown[]): SchemaPart {
    const parts = variants.filter((one) => one !== false).map((one) => this.#part(one))
    const different = new Map(parts.map((part) => [JSON.stringify(part), part]))
    const [only, ...others] = different.values()
    if (only === undefined) return ANY_VALUE
    return others.length === 0 ? only : { anyOf: [only, ...others].flatMap(unfolded) }
  }

  #typed(schema: SchemaPart, types: readonly string[]): SchemaPart {
    const [only, ...others] = types
    if (only === undefined) return ANY_VALUE
    return others.length === 0 ? this.#one(schema, only) : { anyOf: types.map((type) => this.#one(schema, type)) }
  }

  #one(schema: SchemaPart, type: string): SchemaPart {
    if (type === 'object') return this.#merged(schema)
    const kept = (KEYWORDS[type] ?? []).filter((key) => schema[key] !== undefined)
    return {
      type,
      ...Object.fromEntries(kept.map((key) => [key, schema[key]])),
      ...(type === 'array' ? { items: this.#items(schema) } : {}),
      ...(type === 'string' ? textRules(schema) : {}),
      ...(type === 'integer' ? integerBounds(schema) : {})
    }
  }

  #merged(schema: SchemaPart): SchemaPart {
    const { notes, merged, ...flat } = flatObject(schema, this.#root, this.#open)
    for (const pointer of merged) this.#open.add(pointer)
    const own = typeof schema['description'] === 'string' ? 1 : 0
    const made = this.#object({ ...flat, notes: new Set([...notes].slice(own)) })
    for (const pointer of merged) this.#open.delete(pointer)
    return made
  }

  /** One schema for all items, also of a list with one for each place. */
  #items({ items, prefixItems }: SchemaPart): SchemaPart {
    const places = [
      ...(Array.isArray(prefixItems) ? prefixItems : []),
      ...(Array.isArray(items) ? items : [])
    ] as unknown[]
    const all = isRecord(items) ? [...places, items] : places
    const made = all.length === 0 ? { anyOf: SCALARS } : this.#choice(all)
    return made === ANY_VALUE ? { anyOf: SCALARS } : made
  }

  #reference(pointer: string): SchemaPart {
    const target = this.#followed(pointer)
    if (target === null) return ANY_VALUE
    const known = this.#names.get(target)
    if (known !== undefined) return { $ref: `#/$defs/${known}` }
    const name = this.#freeName(target)
    this.#names.set(target, name)
    this.#definitions.set(name, ANY_VALUE)
    this.#definitions.set(name, this.#part(schemaTarget(this.#root, target)))
    return { $ref: `#/$defs/${name}` }
  }

  /** The end of a chain of references; null when it leads nowhere. */
  #followed(pointer: string): string | null {
    const seen = new Set<string>()
    for (let at = pointer; !seen.has(at); ) {
      seen.add(at)
      const target = schemaTarget(this.#root, at)
      if (!isRecord(target)) return null
      const next = referenceOf(target)
      if (next === null) return at
      at = next
    }
    return null
  }

  #freeName(pointer: string): string {
    const last =
      pointer
        .split('/')
        .at(-1)
        ?.replaceAll(/[^A-Za-z0-9_-]/g, '_') ?? ''
    const wanted = pointer === '#' ? 'self' : last.slice(0, 48) || 'part'
    const taken = new Set(this.#names.values())
    for (let number = 1; ; number++) {
      const name = number === 1 ? wanted : `${wanted}_${number}`
      if (!taken.has(name)) return name
    }
  }
}

function quoted(name: string): string {
  return JSON.stringify(name)
}

/** A part with texts beside it. A reference stands alone: clients refuse one with other keywords. */
function described(part: SchemaPart, description: string | null, fallback: SchemaPart = {}): SchemaPart {
  const texts = { ...(description === null ? {} : { description }), ...fallback }
  if (Object.keys(texts).length === 0) return part
  if (part['$ref'] !== undefined) return { ...texts, anyOf: [part] }
  const own = part['description']
  const both = typeof own === 'string' && description !== null ? { description: `${description} ${own}` } : {}
  return { ...part, ...texts, ...both }
}

/** The variants of a choice without texts and without further choices are variants themselves. */
function unfolded(part: SchemaPart): readonly SchemaPart[] {
  const { anyOf, ...rest } = part
  return Array.isArray(anyOf) && Object.keys(rest).length === 0 ? (anyOf as SchemaPart[]) : [part]
}

/** Descriptions stay; a title counts where there is none and it says more than the name. */
function descriptionOf(
  { description, title, exclusiveMinimum, enum: values, const: only }: SchemaPart,
  name: string
): string | null {
  const letters = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const text =
    typeof description === 'string'
      ? description
      : typeof title === 'string' && name !== '' && letters(title) !== letters(name)
        ? title
        : ''
  const all = Array.isArray(values) ? (values as unknown[]) : only === undefined ? [] : [only]
  const unlisted = all.filter((one) => typeof one !== 'string' || one === '')
  const more = [
    text,
    unlisted.length === 0
      ? ''
      : `One of ${all
          .slice(0, 32)
          .map((one) => JSON.stringify(one))
          .join(', ')}.`,
    typeof exclusiveMinimum === 'number' ? `More than ${exclusiveMinimum}.` : ''
  ].filter((one) => one !== '')
  return more.length === 0 ? null : more.join(' ')
}

/** The pointer of a schema that is a reference, alone or as the only part of `allOf`; null: it is none. */
function referenceOf({ $ref, allOf, properties, anyOf, oneOf }: SchemaPart): string | null {
  if (properties !== undefined || anyOf !== undefined || oneOf !== undefined) return null
  if (typeof $ref === 'string') return $ref
  const [only, ...others] = Array.isArray(allOf) ? (allOf as unknown[]) : []
  return others.length === 0 && isRecord(only) ? referenceOf(only) : null
}

/** The variants of a choice of whole schemas; null: it is none, or belongs to an object. */
function variantsOf(schema: SchemaPart): readonly unknown[] | null {
  const { anyOf, oneOf, type, properties } = schema
  if (type === 'object' || properties !== undefined) return null
  const variants = [anyOf, oneOf].find((one) => Array.isArray(one) && one.length > 0) as unknown[] | undefined
  if (variants === undefined) return null
  const base = typeof type === 'string' ? { type } : {}
  return variants.map((one) => (isRecord(one) && one['$ref'] === undefined ? { ...base, ...one } : one))
}

/** The types of a schema, guessed by its keywords where it names none. */
function typesOf(schema: SchemaPart): readonly string[] {
  const { type, enum: values, const: only } = schema
  const named = (Array.isArray(type) ? (type as unknown[]) : [type]).filter(
    (one): one is string => typeof one === 'string' && Object.hasOwn(KEYWORDS, one)
  )
  if (named.length > 0) return named
  const all = Array.isArray(values) ? (values as unknown[]) : only === undefined ? [] : [only]
  if (all.length > 0) return [...new Set(all.map(typeOf))]
  const has = (...keys: readonly string[]): boolean => keys.some((key) => schema[key] !== undefined)
  if (has('properties', 'required', 'additionalProperties', 'allOf', 'patternProperties')) return ['object']
  if (has('items', 'prefixItems', 'minItems', 'maxItems')) return ['array']
  if (has('pattern', 'minLength', 'maxLength', 'format')) return ['string']
  return has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf') ? ['number'] : []
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value === 'bigint' ? 'number' : typeof value
}

/** Some clients take only texts as values, and no empty one; the others are in the description. */
function textRules({ enum: values, const: only, pattern }: SchemaPart): SchemaPart {
  const all = Array.isArray(values) ? (values as unknown[]) : only === undefined ? [] : [only]
  const texts = [...new Set(all.filter((one) => typeof one === 'string' && one !== ''))]
  const isWhole = texts.length > 0 && !all.includes('')
  return { ...(isWhole ? { enum: texts } : {}), ...(isPlainPattern(pattern) ? { pattern } : {}) }
}

function isPlainPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string' || FOREIGN_PATTERN.test(pattern)) return false
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}

function integerBounds({ exclusiveMinimum, exclusiveMaximum }: SchemaPart): SchemaPart {
  return {
    ...(Number.isSafeInteger(exclusiveMinimum) ? { minimum: (exclusiveMinimum as number) + 1 } : {}),
    ...(Number.isSafeInteger(exclusiveMaximum) ? { maximum: (exclusiveMaximum as number) - 1 } : {})
  }
}
