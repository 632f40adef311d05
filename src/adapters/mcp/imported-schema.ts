import { isRecord } from '../../kit/json.js'

/** What one check of a value may cost at most, in parts of the schema with every `$ref` followed. */
const MAX_COST = 20_000
/** Keywords whose check may take far longer than the value is long: a pattern backtracks, uniqueItems compares each with each. */
const COSTLY = new Set(['pattern', 'uniqueItems'])
/** Keywords under which names stand, not keywords. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords whose value is data. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'example'])

/** References that are only known where a value is checked. */
const UNFOLLOWED = new Set(['$dynamicRef', '$recursiveRef'])

/** An object of any members. */
export const ANY_OBJECT: Readonly<Record<string, unknown>> = { type: 'object' }

/**
 * A schema of a server as this node checks by it: without the keywords that a hostile server could make a check hang with
 * (the server checks by them itself), and {@link ANY_OBJECT} where `$ref` leads back to itself, to too many parts or to what is
 * no schema, or cannot be followed here.
 */
export function safeSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const stripped = strip(schema, 'schema') as Record<string, unknown>
  return costOf(stripped) > MAX_COST ? ANY_OBJECT : stripped
}

/** What the members of an object are, and no more: weaker than the schema, for where it has no room. */
export function outlineOf(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { properties, required } = schema
  const members = isRecord(properties) ? Object.entries(properties) : []
  const outlined = members.map(([name, one]) => [name, isRecord(one) && one['type'] !== undefined ? { type: one['type'] } : {}])
  return { type: 'object', properties: Object.fromEntries(outlined), ...(Array.isArray(required) ? { required } : {}) }
}

/** What stands at a place of a schema: a schema, schemas by name, or data. Arrays of schemas count as schemas. */
type Place = 'schema' | 'names' | 'data'

function placeBelow(place: Place, key: string): Place {
  if (place !== 'schema') return place === 'names' ? 'schema' : 'data'
  return DATA.has(key) ? 'data' : BY_NAME.has(key) ? 'names' : 'schema'
}

function strip(value: unknown, place: Place): unknown {
  if (place === 'data') return value
  if (Array.isArray(value)) return value.map((one) => strip(one, 'schema'))
  if (!isRecord(value)) return value
  const areNames = place === 'names'
  const kept = Object.entries(value).filter(([key]) => areNames || (!COSTLY.has(key) && key !== 'patternProperties'))
  const isOpened = !areNames && value['patternProperties'] !== undefined
  const entries = kept.map(([key, one]): [string, unknown] => {
    // What a pattern of names let in would be refused as an additional property now.
    if (isOpened && (key === 'additionalProperties' || key === 'unevaluatedProperties')) return [key, true]
    return [key, strip(one, placeBelow(place, key))]
  })
  return Object.fromEntries(entries)
}

/** Parts of the schema with every reference followed; without end for one that leads back to itself, or cannot be followed here. */
function costOf(root: Readonly<Record<string, unknown>>): number {
  const known = new Map<unknown, number>()
  const open = new Set<unknown>()
  const visit = (value: unknown, place: Place): number => {
    if (typeof value !== 'object' || value === null || place === 'data') return 0
    if (open.has(value)) return Number.POSITIVE_INFINITY
    const before = known.get(value)
    if (before !== undefined) return before
    open.add(value)
    let cost = 1
    for (const [key, child] of Object.entries(value)) {
      const isKeyword = place === 'schema'
      if (isKeyword && (UNFOLLOWED.has(key) || (key === '$id' && value !== root))) cost = Number.POSITIVE_INFINITY
      else if (isKeyword && key === '$ref' && typeof child === 'string') cost += visit(targetOf(root, child), 'schema')
      else cost += visit(child, placeBelow(place, key))
      if (cost > MAX_COST) break
    }
    open.delete(value)
    known.set(value, cost)
    return cost
  }
  return visit(root, 'schema')
}

/**
 * Only pointers into the same schema are followed, and only to what was stripped as a schema: the compiler would take data,
 * and a member of names, for one as well. All else is the root, which leads back to itself.
 */
function targetOf(root: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return root
  let at: unknown = root
  let place: Place = 'schema'
  for (const step of ref.split('/').slice(1)) {
    const name = decodeStep(step)
    place = placeBelow(place, name)
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined
  }
  return place === 'schema' ? at : root
}

function decodeStep(step: string): string {
  const text = step.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
