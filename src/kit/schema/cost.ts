import { isRecord } from '../json.js'
import type { Check, SchemaFault } from '../sign.js'

/** Parts of a schema with every reference followed; one with more counts as without end. */
const MAX_COST = 20_000
/**
 * Work of one check: parts of the schema times parts of the value. A choice of 500 variants costs each part of a value
 * all of them.
 */
const MAX_WORK = 250_000
/** Keywords under which names stand, not keywords. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords whose value is data. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'example'])
/** References that are only known where a value is checked. */
const UNFOLLOWED = new Set(['$dynamicRef', '$recursiveRef'])

/** Role of a value inside a schema: a schema, schemas by name, or data. Arrays of schemas count as schemas. */
export type SchemaPlace = 'schema' | 'names' | 'data'

/** Role of the value under a key. */
export function placeBelow(place: SchemaPlace, key: string): SchemaPlace {
  if (place !== 'schema') return place === 'names' ? 'schema' : 'data'
  return DATA.has(key) ? 'data' : BY_NAME.has(key) ? 'names' : 'schema'
}

/**
 * A check by a foreign schema, bounded in time. A value whose check could take too long has the faults `beyond`. Leave
 * them out, so that it passes unchecked, only where another check follows, or where the result decides nothing.
 */
export function boundedCheck(check: Check, schema: unknown, beyond: readonly SchemaFault[] = []): Check {
  const most = MAX_WORK / (isRecord(schema) ? schemaCost(schema) : 1)
  return (value) => (hasMoreParts(value, most) ? beyond : check(value))
}

function hasMoreParts(value: unknown, most: number): boolean {
  const open = [value]
  for (let parts = 0; open.length > 0; ) {
    const one = open.pop()
    if (typeof one !== 'object' || one === null) continue
    for (const child of Object.values(one) as unknown[]) {
      if (++parts > most) return true
      if (typeof child === 'object') open.push(child)
    }
  }
  return false
}

/**
 * Parts of a schema with every reference followed: the possible cost of checking one part of a value. Above
 * {@link MAX_COST} it is infinite, as for a circular or unresolvable reference.
 */
export function schemaCost(root: Readonly<Record<string, unknown>>): number {
  const known = new Map<unknown, number>()
  const open = new Set<unknown>()
  const visit = (value: unknown, place: SchemaPlace): number => {
    if (place === 'data') return 0
    if (typeof value !== 'object' || value === null) return value === false ? 1 : 0
    if (open.has(value)) return Number.POSITIVE_INFINITY
    const before = known.get(value)
    if (before !== undefined) return before
    open.add(value)
    // Lists of names are looked through for each value too.
    let cost = Array.isArray(value) ? value.length : 1
    for (const [key, child] of Object.entries(value)) {
      const isKeyword = place === 'schema'
      if (isKeyword && (UNFOLLOWED.has(key) || (key === '$id' && value !== root))) cost = Number.POSITIVE_INFINITY
      else if (isKeyword && key === '$ref' && typeof child === 'string') cost += visit(targetOf(root, child), 'schema')
      else cost += visit(child, placeBelow(place, key))
      if (isKeyword && key === 'enum' && Array.isArray(child)) cost += child.length
      if (cost > MAX_COST) cost = Number.POSITIVE_INFINITY
    }
    open.delete(value)
    known.set(value, cost)
    return cost
  }
  return visit(root, 'schema')
}

/** The schema that a reference leads to. Any other reference is the root, which is circular. */
function targetOf(root: unknown, ref: string): unknown {
  const found = targetAt(root, ref)
  return found === null ? root : found.value
}

/** The schema at a reference, if it is a pointer to one in the same schema; else undefined. */
export function schemaTarget(root: unknown, ref: string): unknown {
  return targetAt(root, ref)?.value
}

/**
 * Follows only pointers into the same schema, to values that were stripped as schemas: null for others. The compiler
 * would also take data or a member of names for one.
 */
function targetAt(root: unknown, ref: string): { readonly value: unknown } | null {
  if (ref !== '#' && !ref.startsWith('#/')) return null
  let at: unknown = root
  let place: SchemaPlace = 'schema'
  for (const step of ref.split('/').slice(1)) {
    const name = decodeStep(step)
    place = placeBelow(place, name)
    at =
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string, unknown>)[name]
        : undefined
  }
  return place === 'schema' ? { value: at } : null
}

function decodeStep(step: string): string {
  let text = step
  try {
    text = decodeURIComponent(step)
  } catch {
    // The compiler refuses it.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~')
}
