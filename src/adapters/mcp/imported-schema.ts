import { isRecord } from '../../kit/json.js'

/** What one check of a value may cost at most, in parts of the schema with every `$ref` followed. */
const MAX_COST = 20_000
/** Keywords whose check may take far longer than the value is long: a pattern backtracks, uniqueItems compares each with each. */
const COSTLY = new Set(['pattern', 'uniqueItems'])
/** Keywords under which names stand, not keywords. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords whose value is data. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'example'])

/** An object of any members. */
export const ANY_OBJECT: Readonly<Record<string, unknown>> = { type: 'object' }

/**
 * A schema of a server as this node checks by it: without the keywords that a hostile server could make a check hang with
 * (the server checks by them itself), and {@link ANY_OBJECT} where `$ref` leads back to itself or to too many parts.
 */
export function safeSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const stripped = strip(schema, false) as Record<string, unknown>
  return costOf(stripped) > MAX_COST ? ANY_OBJECT : stripped
}

/** What the members of an object are, and no more: weaker than the schema, for where it has no room. */
export function outlineOf(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { properties, required } = schema
  const members = isRecord(properties) ? Object.entries(properties) : []
  const outlined = members.map(([name, one]) => [name, isRecord(one) && one['type'] !== undefined ? { type: one['type'] } : {}])
  return { type: 'object', properties: Object.fromEntries(outlined), ...(Array.isArray(required) ? { required } : {}) }
}

function strip(value: unknown, areNames: boolean): unknown {
  if (Array.isArray(value)) return value.map((one) => strip(one, false))
  if (!isRecord(value)) return value
  const kept = Object.entries(value).filter(([key]) => areNames || (!COSTLY.has(key) && key !== 'patternProperties'))
  const isOpened = !areNames && value['patternProperties'] !== undefined
  const entries = kept.map(([key, one]): [string, unknown] => {
    if (!areNames && DATA.has(key)) return [key, one]
    // What a pattern of names let in would be refused as an additional property now.
    if (isOpened && (key === 'additionalProperties' || key === 'unevaluatedProperties')) return [key, true]
    return [key, strip(one, !areNames && BY_NAME.has(key))]
  })
  return Object.fromEntries(entries)
}

/** Parts of the schema with every reference followed; without end for one that leads back to itself, or cannot be followed here. */
function costOf(root: Readonly<Record<string, unknown>>): number {
  const known = new Map<unknown, number>()
  const open = new Set<unknown>()
  const visit = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 0
    if (open.has(value)) return Number.POSITIVE_INFINITY
    const before = known.get(value)
    if (before !== undefined) return before
    open.add(value)
    let cost = 1
    for (const [key, child] of Object.entries(value)) {
      if (key === '$dynamicRef' || key === '$recursiveRef') cost = Number.POSITIVE_INFINITY
      else if (key === '$ref' && typeof child === 'string') cost += visit(targetOf(root, child))
      else if (!DATA.has(key)) cost += visit(child)
      if (cost > MAX_COST) break
    }
    open.delete(value)
    known.set(value, cost)
    return cost
  }
  return visit(root)
}

/** Only pointers into the same schema are followed; an anchor or an `$id` is left to the compiler, which finds it or refuses. */
function targetOf(root: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return root
  let at: unknown = root
  for (const step of ref.split('/').slice(1)) {
    const name = decodeStep(step)
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined
  }
  return at
}

function decodeStep(step: string): string {
  const text = step.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
