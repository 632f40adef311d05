import { isRecord } from '../json.js'
import type { SchemaFault } from '../sign.js'
import { shown } from '../text.js'

/** Longest text of a shape, in characters. */
const SHAPE_MAX = 300
const GIVEN_MAX = 200
/** Members of an object, and values of a list of allowed ones, that are named. */
const NAMED_MAX = 12
const DEPTH_MAX = 3
const FAULTS_SHOWN = 3

/**
 * The first three faults of a value as a sentence without its subject: `it must have "text"; /count must be integer`.
 */
export function faultText(faults: readonly SchemaFault[]): string {
  const printed = faults.slice(0, FAULTS_SHOWN).map(({ path, message }) => `${path === '' ? 'it' : path} ${message}`)
  return printed.join('; ')
}

/**
 * The shape that a JSON Schema accepts, short and for people: `{"file": string, "limit"?: integer}`; a `?` marks an
 * optional member. Total: unknown parts are `anything`. At most 300 characters.
 */
export function shapeText(schema: unknown): string {
  return shown(shapeOf(schema, 0), SHAPE_MAX)
}

/** The beginning of a given value, as JSON; at most 200 characters. */
export function givenText(value: unknown): string {
  return shown(JSON.stringify(value) ?? 'nothing', GIVEN_MAX)
}

function shapeOf(schema: unknown, depth: number): string {
  if (!isRecord(schema)) return schema === false ? 'nothing' : 'anything'
  const { type, items } = schema
  if (Object.hasOwn(schema, 'const')) return JSON.stringify(schema['const'])
  if (Array.isArray(schema['enum'])) return eitherOf(schema['enum'], (one) => JSON.stringify(one))
  if (Array.isArray(type)) return eitherOf(type, (one) => shapeOf({ ...schema, type: one }, depth))
  if (type === 'object' || (type === undefined && isRecord(schema['properties'])))
    return depth < DEPTH_MAX ? objectShape(schema, depth) : '{...}'
  if (type === 'array') return depth < DEPTH_MAX ? `[${shapeOf(items, depth + 1)}, ...]` : '[...]'
  if (typeof type === 'string') return type
  const variants = variantsOf(schema)
  return variants.length === 0 || depth >= DEPTH_MAX ? 'anything' : eitherOf(variants, (one) => shapeOf(one, depth + 1))
}

function objectShape(schema: Readonly<Record<string, unknown>>, depth: number): string {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const required = requiredOf(schema)
  const names = [...new Set([...required, ...Object.keys(properties)])]
  const printed = names.slice(0, NAMED_MAX).map((name) => {
    const value = Object.hasOwn(properties, name) ? shapeOf(properties[name], depth + 1) : 'anything'
    return `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${value}`
  })
  const isAll = names.length === printed.length && names.length > 0
  const needs = variantsOf(schema)
    .slice(0, NAMED_MAX)
    .map((variant) => requiredOf(variant).map((name) => JSON.stringify(name)))
    .map((variant) => variant.join(' and '))
  const needed = needs.length > 0 && needs.every((one) => one !== '') ? ` with ${needs.join(' or ')}` : ''
  return `{${[...printed, ...(isAll ? [] : ['...'])].join(', ')}}${needed}`
}

function variantsOf({ anyOf, oneOf }: Readonly<Record<string, unknown>>): readonly unknown[] {
  return Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : []
}

function requiredOf(schema: unknown): readonly string[] {
  const required = isRecord(schema) ? schema['required'] : null
  return Array.isArray(required) ? required.filter((one) => typeof one === 'string') : []
}

function eitherOf(values: readonly unknown[], textOf: (value: unknown) => string): string {
  const texts = new Set(values.slice(0, NAMED_MAX).map(textOf))
  return [...texts, ...(values.length > NAMED_MAX ? ['...'] : [])].join(' | ')
}
