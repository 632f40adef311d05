import { isRecord } from '../../../kit/json.js'
import { placeBelow, type SchemaPlace, schemaCost } from '../../../kit/schema/cost.js'

/**
 * Keywords whose check may take far longer than the value is long: a pattern backtracks, uniqueItems compares each with
 * each.
 */
const COSTLY = new Set(['pattern', 'uniqueItems'])
/** A schema with more bytes is checked by its outline only: to compile it would take a tenth of a second and more. */
const MAX_CHECKED_BYTES = 8192

/** An object of any members. */
export const ANY_OBJECT: Readonly<Record<string, unknown>> = { type: 'object' }

/**
 * A server's schema in the form that this node checks. Keywords that could make a check hang are removed (the server
 * checks them itself). A schema becomes {@link ANY_OBJECT} when its `$ref` leads back to itself, to too many parts or
 * to no schema, or cannot be followed here. A large schema becomes its outline.
 */
export function safeSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const stripped = strip(schema, 'schema') as Record<string, unknown>
  if (schemaCost(stripped) === Number.POSITIVE_INFINITY) return ANY_OBJECT
  return (
    [stripped, outlineOf(stripped)].find((one) => Buffer.byteLength(JSON.stringify(one)) <= MAX_CHECKED_BYTES) ??
    ANY_OBJECT
  )
}

/** Names and types of an object's members only: weaker than the schema, for places without room for it. */
export function outlineOf(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { properties, required } = schema
  const members = isRecord(properties) ? Object.entries(properties) : []
  const outlined = members.map(([name, one]) => [
    name,
    isRecord(one) && one['type'] !== undefined ? { type: one['type'] } : {}
  ])
  return { type: 'object', properties: Object.fromEntries(outlined), ...(Array.isArray(required) ? { required } : {}) }
}

/** A schema without the keywords that could make a check hang. */
export function withoutCostly(schema: Readonly<Record<string, unknown>>): unknown {
  return strip(schema, 'schema')
}

function strip(value: unknown, place: SchemaPlace): unknown {
  if (place === 'data') return value
  if (Array.isArray(value)) return value.map((one) => strip(one, 'schema'))
  if (!isRecord(value)) return value
  const areNames = place === 'names'
  const kept = Object.entries(value).filter(([key]) => areNames || (!COSTLY.has(key) && key !== 'patternProperties'))
  const isOpened = !areNames && value['patternProperties'] !== undefined
  const entries = kept.map(([key, one]): [string, unknown] => {
    // Names that a removed pattern allowed would now be refused as additional properties.
    if (isOpened && (key === 'additionalProperties' || key === 'unevaluatedProperties')) return [key, true]
    return [key, strip(one, placeBelow(place, key))]
  })
  return Object.fromEntries(entries)
}
