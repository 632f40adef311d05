import { ENVELOPE_LIMITS } from './limits.js'

/** A member of a payload that travels beside its JSON. */
export interface Attachment {
  /** JSON pointer (RFC 6901) to the null that stands in its place; '' is the whole payload. */
  readonly pointer: string
  readonly content: Uint8Array | string
}

/** A payload taken apart: plain JSON with nulls, and the attachments for them. */
export interface Lifted {
  readonly json: unknown
  readonly attachments: readonly Attachment[]
}

/** Which strings leave the JSON: those longer than this (UTF-16 units). */
export interface LiftOptions {
  readonly maxInlineText: number
  /** Default: those of an envelope. */
  readonly maxAttachments?: number
}

interface Lifting {
  readonly path: (string | number)[]
  readonly bytes: Attachment[]
  readonly texts: Attachment[]
  readonly maxInlineText: number
  readonly maxTexts: number
}

/**
 * Takes byte arrays and long strings out of a payload of bounded depth; the payload itself is not changed. Bytes always
 * leave, strings as long as attachments are left (64 in all by default). Null when the bytes alone are more than that.
 */
export function lift(payload: unknown, options: LiftOptions): Lifted | null {
  const { maxAttachments = ENVELOPE_LIMITS.maxAttachments } = options
  const lifting = begin(options.maxInlineText, maxAttachments)
  const json = strip(payload, lifting)
  const { bytes, texts } = lifting
  if (bytes.length > maxAttachments) return null
  if (bytes.length + texts.length <= maxAttachments)
    return { json, attachments: bytes.length === 0 ? texts : [...bytes, ...texts] }
  const fewer = begin(options.maxInlineText, maxAttachments - bytes.length)
  return { json: strip(payload, fewer), attachments: [...fewer.bytes, ...fewer.texts] }
}

function begin(maxInlineText: number, maxTexts: number): Lifting {
  return { path: [], bytes: [], texts: [], maxInlineText, maxTexts }
}

function strip(value: unknown, lifting: Lifting): unknown {
  if (typeof value === 'string') return isHeavy(value, lifting) ? taken(lifting.texts, value, lifting) : value
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return taken(lifting.bytes, value, lifting)
  return Array.isArray(value) ? stripArray(value, lifting) : stripObject(value as Record<string, unknown>, lifting)
}

// A text without a UTF-8 form stays: JSON escapes what raw bytes cannot carry.
function isHeavy(text: string, lifting: Lifting): boolean {
  return text.length > lifting.maxInlineText && lifting.texts.length < lifting.maxTexts && text.isWellFormed()
}

function taken(list: Attachment[], content: Uint8Array | string, lifting: Lifting): null {
  list.push({ pointer: pointerOf(lifting.path), content })
  return null
}

function stripArray(value: readonly unknown[], lifting: Lifting): unknown {
  let copy: unknown[] | null = null
  for (let index = 0; index < value.length; index++) {
    lifting.path.push(index)
    const next = strip(value[index], lifting)
    lifting.path.pop()
    if (Object.is(next, value[index])) continue
    copy ??= [...value]
    copy[index] = next
  }
  return copy ?? value
}

function stripObject(value: Record<string, unknown>, lifting: Lifting): unknown {
  let copy: Record<string, unknown> | null = null
  for (const key of Object.keys(value)) {
    lifting.path.push(key)
    const next = strip(value[key], lifting)
    lifting.path.pop()
    if (Object.is(next, value[key])) continue
    copy ??= { ...value }
    copy[key] = next
  }
  return copy ?? value
}

function pointerOf(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/**
 * Puts attachments back into JSON that others wrote (already checked for forbidden keys); changes and gives back
 * `json`.
 * Each pointer must lead, by own members only, to a null. Never throws.
 */
export function restore(
  json: unknown,
  attachments: readonly Attachment[]
): { ok: true; value: unknown } | { ok: false; reason: string } {
  const root: Record<string, unknown> = { json }
  for (const { pointer, content } of attachments) {
    const place = locate(root, pointer)
    if (place === null || place.parent[place.key] !== null)
      return { ok: false, reason: 'an attachment points to no empty position' }
    place.parent[place.key] = content
  }
  return { ok: true, value: root.json }
}

interface Place {
  readonly parent: Record<string, unknown>
  readonly key: string
}

function locate(root: Record<string, unknown>, pointer: string): Place | null {
  if (pointer !== '' && !pointer.startsWith('/')) return null
  let parent = root
  let key = 'json'
  for (const step of pointer.split('/').slice(1)) {
    const next = parent[key]
    if (typeof next !== 'object' || next === null || next instanceof Uint8Array) return null
    parent = next as Record<string, unknown>
    key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    // 'length' is an own member of arrays too, so arrays take plain indexes only.
    if (Array.isArray(next) ? !/^(0|[1-9]\d{0,9})$/.test(key) || Number(key) >= next.length : !Object.hasOwn(next, key))
      return null
  }
  return { parent, key }
}
