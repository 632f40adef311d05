/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Bounds for JSON that others wrote. */
export interface JsonLimits {
  readonly maxDepth: number
  readonly maxKeys: number
  /** UTF-16 units of one string. */
  readonly maxString: number
}

/** The shipped bounds (shared limits of the wire): depth 32, 1,000 keys an object, 1 MiB strings. */
export const JSON_LIMITS: JsonLimits = { maxDepth: 32, maxKeys: 1000, maxString: 1_048_576 }

/**
 * For values whose bytes are bounded where they come in: a fixed bound of one string would defeat a larger setting for
 * the whole.
 */
export const SIZED_LIMITS: JsonLimits = { ...JSON_LIMITS, maxString: Number.POSITIVE_INFINITY }

/** For results, which are bounded in bytes: of their structure only depth and dangerous keys matter. */
export const RESULT_LIMITS: JsonLimits = {
  ...JSON_LIMITS,
  maxKeys: Number.POSITIVE_INFINITY,
  maxString: Number.POSITIVE_INFINITY
}

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

interface Level {
  readonly value: object
  readonly depth: number
}

/** Why a value breaks the limits, or null when it fits. Iterative: deep values cannot overflow the stack. */
export function jsonFault(value: unknown, limits: JsonLimits = JSON_LIMITS): string | null {
  const wrong = itemFault(value, limits)
  if (wrong !== null) return wrong
  const stack: Level[] = isNested(value) ? [{ value, depth: 0 }] : []
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    if (top.depth >= limits.maxDepth) return `nested deeper than ${limits.maxDepth}`
    const { value: parent, depth } = top
    // An array of plain items is data, not structure: the byte limits of the frame bound it.
    const keys = Array.isArray(parent) ? null : Object.keys(parent)
    const fault = keys === null ? null : keysFault(keys, limits)
    if (fault !== null) return fault
    const count = keys?.length ?? (parent as readonly unknown[]).length
    for (let at = 0; at < count; at++) {
      const child = (parent as Record<string | number, unknown>)[keys?.[at] ?? at]
      // Checked here, not on the stack: the stack takes memory, and every message is checked.
      const wrongItem = itemFault(child, limits)
      if (wrongItem !== null) return wrongItem
      if (isNested(child)) stack.push({ value: child, depth: depth + 1 })
    }
  }
  return null
}

function itemFault(value: unknown, { maxString }: JsonLimits): string | null {
  if (typeof value === 'string') return value.length > maxString ? `a string longer than ${maxString}` : null
  // `1e999` is read as one, and nothing can be written of it.
  return typeof value === 'number' && !Number.isFinite(value) ? 'a number that is not finite' : null
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array)
}

function keysFault(keys: readonly string[], limits: JsonLimits): string | null {
  if (keys.length > limits.maxKeys) return `an object with more than ${limits.maxKeys} keys`
  const forbidden = keys.find((key) => FORBIDDEN.has(key))
  return forbidden === undefined ? null : `the key ${forbidden} is not allowed`
}

/** Parses JSON that others wrote. Never throws. */
export function parseJson(
  text: string,
  limits: JsonLimits = JSON_LIMITS
): { ok: true; value: unknown } | { ok: false; reason: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'not JSON' }
  }
  const fault = jsonFault(value, limits)
  return fault === null ? { ok: true, value } : { ok: false, reason: fault }
}

/** Where a text stops being JSON, by the error of `JSON.parse`. */
export function jsonSyntaxReason(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  if (/end of JSON|unterminated/i.test(message)) return 'it ends too early'
  const position = / at position (\d+)/.exec(message)?.[1]
  if (position !== undefined) return `there is a fault at character ${Number(position) + 1}`
  const token = /^Unexpected token '?(.+?)'?,/su.exec(message)?.[1]
  return token === undefined ? 'its syntax is wrong' : `${JSON.stringify(token)} is not expected there`
}

/**
 * Canonical JSON (RFC 8785): keys sorted by UTF-16 units, no white space, `undefined` members left out.
 * @throws TypeError for values JSON has no form for (NaN, Infinity, bigint, functions).
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('no JSON form for a number that is not finite')
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return canonicalList(value)
  if (typeof value === 'object') return canonicalObject(value as Record<string, unknown>)
  throw new TypeError(`no JSON form for a ${typeof value}`)
}

function canonicalList(items: readonly unknown[]): string {
  let text = '['
  for (let i = 0; i < items.length; i++) text += `${i === 0 ? '' : ','}${canonicalJson(items[i] ?? null)}`
  return `${text}]`
}

function canonicalObject(record: Record<string, unknown>): string {
  let text = ''
  for (const key of Object.keys(record).sort()) {
    const value = record[key]
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(value)}`
  }
  return `{${text}}`
}

/**
 * A value in canonical JSON after a round trip through JSON: null for values without a JSON form, such as NaN.
 * @throws TypeError for a circular value or a bigint, so for no value read from JSON
 */
export function writtenJson(value: unknown): string {
  return canonicalJson(JSON.parse(JSON.stringify(value) ?? 'null'))
}

/** Nesting levels of a copied value. */
const MAX_COPY_DEPTH = 500

/**
 * A deep copy of a value as JSON would write it, except that bytes stay bytes. Later changes of the original do not
 * affect it. undefined for values without a JSON form: functions, symbols, circular or too deeply nested values,
 * bigints, and getters that throw.
 */
export function jsonCopy(value: unknown): unknown {
  try {
    return copied('', value, [])
  } catch {
    return undefined
  }
}

function copied(key: string, value: unknown, within: object[]): unknown {
  if (typeof value !== 'object' || value === null) return copiedItem(value)
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if ('toJSON' in value && typeof value.toJSON === 'function') return copied(key, value.toJSON(key), within)
  if (within.length >= MAX_COPY_DEPTH || within.includes(value)) throw new TypeError('circular, or nested too deep')
  within.push(value)
  const copy = Array.isArray(value)
    ? Array.from(value, (item: unknown, at) => copied(String(at), item, within) ?? null)
    : copiedObject(value as Record<string, unknown>, within)
  within.pop()
  return copy
}

function copiedItem(value: unknown): unknown {
  if (typeof value === 'bigint') throw new TypeError('no JSON form for a bigint')
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : value
}

function copiedObject(record: Record<string, unknown>, within: object[]): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(record)) {
    const member = copied(key, record[key], within)
    if (member === undefined) continue
    if (key === '__proto__')
      Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true })
    else copy[key] = member
  }
  return copy
}

/** Does a value contain byte arrays? */
export function hasBytes(value: unknown): boolean {
  const stack = [value]
  while (stack.length > 0) {
    const top = stack.pop()
    if (top instanceof Uint8Array) return true
    if (typeof top === 'object' && top !== null) for (const child of Object.values(top)) stack.push(child)
  }
  return false
}

/** Is it a plain object (not null, not an array, not bytes)? */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}
