import { canonicalJson, isRecord } from '../json.js'
import { sizeOf } from '../size.js'

/** UTF-16 units of all text that filling one template writes, at most: 16 Mi. */
export const FILLED_MAX = 16 * 1024 * 1024
/**
 * About how many bytes the values that stand for themselves may have together, each as often as it is named: 64 MiB.
 */
export const VALUES_MAX = 4 * FILLED_MAX

/** A property of a sub-task in a template. */
export type Facet = 'result' | 'status' | 'error'

/** A place that a template or a condition names: `{name}`, `{name/pointer}`, `{name:status}`, `{name:error}`. */
export interface Reference {
  readonly name: string
  /** Keys and indexes into the value, outermost first. */
  readonly pointer: readonly string[]
  readonly facet: Facet
}

/** The value of a reference; undefined when there is none. */
export type Lookup = (reference: Reference) => unknown

/** Result of filling a template. */
export type Filled = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string }

/** A name of a sub-task, or of something that every template knows. */
export const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const REFERENCE = /\{([A-Za-z][A-Za-z0-9_-]{0,63})((?:\/[^{}/\s]{0,256}){0,32})(?::(status|error))?\}/
const ANY = new RegExp(`\\{(\\{[^{}]*\\})\\}|${REFERENCE.source}`, 'g')
const MALFORMED = /\{\s*([A-Za-z][A-Za-z0-9_-]{0,63})\s*(?:[.[/][^{}]*|:[^{}\s]*)?\}/g
const WHOLE = new RegExp(`^${REFERENCE.source}$`)

/** The reference that a text is from end to end; null for any other text. */
export function referenceOf(text: string): Reference | null {
  const match = WHOLE.exec(text)
  return match === null ? null : made(match[1] ?? '', match[2] ?? '', match[3])
}

function made(name: string, pointer: string, facet: string | undefined): Reference {
  const keys = pointer === '' ? [] : pointer.slice(1).split('/').map(unescaped)
  return { name, pointer: keys, facet: facet === 'status' || facet === 'error' ? facet : 'result' }
}

/** RFC 6901, section 4. */
function unescaped(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** A reference as it is written. */
export function referenceText({ name, pointer, facet }: Reference): string {
  const path = pointer.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
  return `{${name}${path}${facet === 'result' ? '' : `:${facet}`}}`
}

/** Every reference in the strings of a JSON value, with its path. */
export function referencesIn(
  template: unknown
): { readonly reference: Reference; readonly path: readonly (string | number)[] }[] {
  return stringsIn(template).flatMap(({ text, path }) =>
    [...text.matchAll(ANY)].flatMap(([, escaped, name = '', pointer = '', facet]) =>
      escaped === undefined ? [{ reference: made(name, pointer, facet), path }] : []
    )
  )
}

/** Every string in a JSON value but the keys of its objects, with its path. */
function stringsIn(template: unknown): { readonly text: string; readonly path: readonly (string | number)[] }[] {
  if (typeof template === 'string') return [{ text: template, path: [] }]
  const children: [string | number, unknown][] = Array.isArray(template)
    ? template.map((one: unknown, index) => [index, one])
    : isRecord(template)
      ? Object.entries(template)
      : []
  return children.flatMap(([key, child]) => stringsIn(child).map(({ text, path }) => ({ text, path: [key, ...path] })))
}

/**
 * Texts in braces that are no reference, though they begin with a known name: `{item.name}`, `{ item }`, `{item[0]}`,
 * `{item:size}`. A template leaves them as they are, and their author means a value. With their paths.
 */
export function malformedIn(
  template: unknown,
  isKnown: (name: string) => boolean
): { readonly text: string; readonly path: readonly (string | number)[] }[] {
  return stringsIn(template).flatMap(({ text, path }) =>
    [...text.replace(ANY, '{}').matchAll(MALFORMED)].flatMap(([malformed, name = '']) =>
      isKnown(name) ? [{ text: malformed, path }] : []
    )
  )
}

/**
 * Fills a template: a string of one reference becomes the value itself. Inside a longer string the value becomes text,
 * in canonical JSON unless it is a string. `{{name}}` is the text `{name}`. Only own members of objects and arrays are
 * reached. A missing value, more text than {@link FILLED_MAX}, and more values than {@link VALUES_MAX} are reasons.
 * Never throws.
 */
export function fillTemplate(template: unknown, lookup: Lookup): Filled {
  const budget = { left: FILLED_MAX, values: VALUES_MAX }
  try {
    return { ok: true, value: fill(template, lookup, budget) }
  } catch (error) {
    return { ok: false, reason: error instanceof Unfilled ? error.message : 'a value has no form as text' }
  }
}

interface Budget {
  left: number
  values: number
}

/** Why a template cannot be filled; it never leaves this file. */
class Unfilled extends Error {}

function fill(template: unknown, lookup: Lookup, budget: Budget): unknown {
  if (typeof template === 'string') return fillText(template, lookup, budget)
  if (Array.isArray(template)) return template.map((one: unknown) => fill(one, lookup, budget))
  if (!isRecord(template)) return template
  return Object.fromEntries(Object.entries(template).map(([key, one]) => [key, fill(one, lookup, budget)]))
}

function fillText(text: string, lookup: Lookup, budget: Budget): unknown {
  const whole = referenceOf(text)
  if (whole !== null) {
    const value = found(whole, lookup)
    // Here it is one value; on its way it is written as often as it is named.
    budget.values -= sizeOf(value)
    if (budget.values < 0) throw new Unfilled(`the input would be larger than ${VALUES_MAX} bytes`)
    return value
  }
  const filled = text.replace(ANY, (...[, escaped, name, pointer, facet]: (string | undefined)[]) => {
    if (escaped !== undefined) return escaped
    const value = found(made(name ?? '', pointer ?? '', facet), lookup)
    const written = typeof value === 'string' ? value : canonicalJson(value)
    budget.left -= written.length
    if (budget.left < 0) throw new Unfilled(`the input would be longer than ${FILLED_MAX} characters`)
    return written
  })
  budget.left -= text.length
  return filled
}

function found(reference: Reference, lookup: Lookup): unknown {
  const value = lookup(reference)
  if (value === undefined) throw new Unfilled(`there is no value at ${referenceText(reference)}`)
  return value
}

/** The value at a pointer (RFC 6901), by own members alone; undefined when there is none. */
export function valueAt(value: unknown, pointer: readonly string[]): unknown {
  let at: unknown = value
  for (const key of pointer) {
    if (Array.isArray(at)) at = /^(?:0|[1-9]\d{0,9})$/.test(key) ? at[Number(key)] : undefined
    else if (isRecord(at) && Object.hasOwn(at, key)) at = at[key]
    else return undefined
  }
  return at
}
