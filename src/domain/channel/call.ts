import c from 'compact-encoding'
import { unwritten } from '../../kit/bytes.js'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import { isRecord, parseJson } from '../../kit/json.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'

/** Largest path of a call in bytes. */
export const MAX_CALL_PATH_BYTES = 1024
/** Largest service parameters of a call in bytes, as JSON. */
export const MAX_CALL_PARAMETERS_BYTES = 8192
const MAX_CALL_PARAMETERS = 32
/** Largest body of a request in bytes: that of a request over HTTP. */
export const MAX_CALL_REQUEST_BYTES = 10_485_760
/** Bytes before the body of an answer or item, at most. */
const HEAD_BYTES = 32
/** Largest body of an answer or item in bytes. */
export const MAX_CALL_ANSWER_BYTES = ENVELOPE_LIMITS.maxBytes - HEAD_BYTES

/** How the callee ends a call without a last answer. */
export const CALL_ENDS = ['done', 'cut', 'busy', 'unserved'] as const

/**
 * How the callee ends a call without a last answer. `done`: the stream is complete. `cut`: it broke off, and may be
 * taken up again. `busy`: too many calls are open. `unserved`: this node serves no calls.
 */
export type CallEnd = (typeof CALL_ENDS)[number]

/** The called method. Names of parameters are in lower case. */
export interface CallRequest {
  /** `/agents/{id}`, or `/a2a` for the node. */
  readonly path: string
  readonly parameters: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A part of a call. `id`: the caller's number of it, rising by any step within a link. */
export type CallPart = { readonly id: number } & (
  | ({ readonly type: 'request' } & CallRequest)
  /** The last word of the callee. */
  | { readonly type: 'answer'; readonly body: Uint8Array }
  /** An item of a stream. `generation`: the place of its event in the task's log; null: it has none. */
  | { readonly type: 'item'; readonly generation: number | null; readonly body: Uint8Array }
  | { readonly type: 'end'; readonly how: CallEnd }
  /** The caller has read `bytes` more bytes of item bodies. */
  | { readonly type: 'credit'; readonly bytes: number }
  /** The caller wants no more of it. */
  | { readonly type: 'hangup' }
)

const TYPE = { request: 0, answer: 1, item: 2, end: 3, credit: 4, hangup: 5 } as const

/** A part as bytes. Bounds are the reader's. */
export function encodeCall(part: CallPart): Uint8Array {
  const fields = fieldsOf(part)
  const body = 'body' in part ? part.body : null
  const size = fields.reduce((sum, one) => sum + one.byteLength, 1) + (body?.byteLength ?? 0)
  const bytes = unwritten(size)
  bytes[0] = TYPE[part.type]
  let at = 1
  for (const one of body === null ? fields : [...fields, body]) {
    bytes.set(one, at)
    at += one.byteLength
  }
  return bytes
}

function fieldsOf(part: CallPart): Uint8Array[] {
  const id = c.encode(c.uint, part.id)
  switch (part.type) {
    case 'request':
      return [id, c.encode(c.utf8, part.path), c.encode(c.utf8, JSON.stringify(part.parameters))]
    case 'item':
      return [id, c.encode(c.uint, part.generation === null ? 0 : part.generation + 1)]
    case 'end':
      return [id, Uint8Array.of(CALL_ENDS.indexOf(part.how))]
    case 'credit':
      return [id, c.encode(c.uint, part.bytes)]
    default:
      return [id]
  }
}

/** Decodes a part from a peer; null for an invalid one. Total. Bodies are views of the bytes. */
export function decodeCall(bytes: Uint8Array): CallPart | null {
  try {
    const state = c.state(0, bytes.byteLength, bytes)
    const type = c.uint8.decode(state)
    const id = c.uint.decode(state)
    if (!Number.isSafeInteger(id)) return null
    const part = read(type, { id, state, bytes })
    return part === null || (!('body' in part) && state.start !== bytes.byteLength) ? null : part
  } catch {
    return null
  }
}

interface CallReading {
  readonly id: number
  readonly state: ReturnType<typeof c.state>
  readonly bytes: Uint8Array
}

function read(type: number, reading: CallReading): CallPart | null {
  const { id, state } = reading
  switch (type) {
    case TYPE.request:
      return readRequest(reading)
    case TYPE.answer:
      return answered(reading, (body) => ({ type: 'answer', id, body }))
    case TYPE.item: {
      const generation = c.uint.decode(state) - 1
      return Number.isSafeInteger(generation)
        ? answered(reading, (body) => ({ type: 'item', id, generation: generation < 0 ? null : generation, body }))
        : null
    }
    case TYPE.end: {
      const how = CALL_ENDS[c.uint8.decode(state)]
      return how === undefined ? null : { type: 'end', id, how }
    }
    case TYPE.credit: {
      const bytes = c.uint.decode(state)
      return Number.isSafeInteger(bytes) ? { type: 'credit', id, bytes } : null
    }
    case TYPE.hangup:
      return { type: 'hangup', id }
    default:
      return null
  }
}

function readRequest(reading: CallReading): CallPart | null {
  const { id, state } = reading
  const path = textOf(state, MAX_CALL_PATH_BYTES)
  const text = path === null ? null : textOf(state, MAX_CALL_PARAMETERS_BYTES)
  const parameters = text === null ? null : parametersOf(text)
  const body = bodyOf(reading)
  if (path === null || !path.startsWith('/') || parameters === null || body.byteLength > MAX_CALL_REQUEST_BYTES)
    return null
  return { type: 'request', id, path, parameters, body }
}

function answered(reading: CallReading, part: (body: Uint8Array) => CallPart): CallPart | null {
  const body = bodyOf(reading)
  return body.byteLength > MAX_CALL_ANSWER_BYTES ? null : part(body)
}

function bodyOf({ state, bytes }: CallReading): Uint8Array {
  return bytes.subarray(state.start)
}

/** null: it is too long, or no UTF-8. */
function textOf(state: CallReading['state'], maxBytes: number): string | null {
  const raw = c.buffer.decode(state) ?? new Uint8Array(0)
  if (raw.byteLength > maxBytes) return null
  const text = fromUtf8(raw)
  return utf8(text).byteLength === raw.byteLength ? text : null
}

/** An object of texts; null for anything else. */
function parametersOf(text: string): Record<string, string> | null {
  const parsed = parseJson(text)
  if (!parsed.ok || !isRecord(parsed.value)) return null
  const entries = Object.entries(parsed.value)
  if (entries.length > MAX_CALL_PARAMETERS || entries.some(([, value]) => typeof value !== 'string')) return null
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]))
}
