/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Bounds for JSON that others wrote. */
export interface JsonLimits {
  /** Nesting levels. */
  readonly maxDepth: number
  /** Keys of one object. */
  readonly maxKeys: number
  /** UTF-16 units of one string. */
  readonly maxString: number
}

/** The shipped bounds (shared limits of the wire): depth 32, 1,000 keys an object, 1 MiB strings. */
export const JSON_LIMITS: JsonLimits = { maxDepth: 32, maxKeys: 1000, maxString: 1_048_576 }

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

interface Level {
  readonly value: object
  readonly depth: number
}

/** Why a value breaks the limits, or null when it fits. Iterative: deep values cannot overflow the stack. */
export function jsonFault(value: unknown, limits: JsonLimits = JSON_LIMITS): string | null {
  const tooLong = `a string longer than ${limits.maxString}`
  if (isTooLong(value, limits)) return tooLong
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
      // Looked at here: what goes on the stack takes memory, and every message is looked at.
      if (isTooLong(child, limits)) return tooLong
      if (isNested(child)) stack.push({ value: child, depth: depth + 1 })
    }
  }
  return null
}

function isTooLong(value: unknown, { maxString }: JsonLimits): boolean {
  return typeof value === 'string' && value.length > maxString
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
export function parseJson(text: string, limits: JsonLimits = JSON_LIMITS): { ok: true; value: unknown } | { ok: false; reason: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'not JSON' }
  }
  const fault = jsonFault(value, limits)
  return fault === null ? { ok: true, value } : { ok: false, reason: fault }
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

/** Can it be written as JSON, bytes in it aside? Not what is circular, has a bigint in it, or throws when it is read. */
export function hasJsonForm(value: unknown): boolean {
  try {
    // To write it costs several times as much as a look, and needs to be done only for what a look does not tell.
    if (!isPlain(value, 0)) JSON.stringify(value, withoutBytes)
    return true
  } catch {
    return false
  }
}

/** Is it, on all levels and not too many of them, what is written as it is? */
function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return typeof value !== 'bigint'
  if (depth > JSON_LIMITS.maxDepth || 'toJSON' in value) return false
  for (const key of Object.keys(value)) if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false
  return true
}

function withoutBytes(_key: string, item: unknown): unknown {
  return item instanceof Uint8Array ? null : item
}

/** Is it a plain object (not null, not an array, not bytes)? */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}
