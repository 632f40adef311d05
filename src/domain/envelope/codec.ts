import c from 'compact-encoding'
import { NodeError } from '../../kit/errors.js'
import { unwritten } from '../../kit/bytes.js'
import { fromUtf8, type NodeId, utf8 } from '../../kit/ids.js'
import { jsonFault, parseJson, SIZED_LIMITS } from '../../kit/json.js'
import { lift, restore, type Attachment } from './attachments.js'
import type { A2AEnvelope } from './envelope.js'
import {
  assertHeader,
  measureHeader,
  readHeader,
  writeHeader,
  type EnvelopeHeader,
  type EnvelopeFault,
  type WireState
} from './header.js'
import { ENVELOPE_LIMITS } from './limits.js'

export type { EnvelopeHeader } from './header.js'

/** Version of the byte layout, the first byte of every encoded envelope. */
export const WIRE_VERSION = 1

const BODY = { none: 0, json: 1, bytes: 2 } as const
const KIND = { text: 0, bytes: 1 } as const
/**
 * Place of a JSON text that is larger than the JSON part may be, as the first attachment. Nothing else has this
 * pointer: in a pointer `~` is always followed by 0 or 1.
 */
const PACKED = '/~json'
const PACKED_MAIN = utf8('null')
const { maxBytes, maxHeaderBytes, maxJsonBytes, maxAttachments, maxInlineText } = ENVELOPE_LIMITS

/** One line of the table that precedes the body. */
interface EnvelopeEntry {
  readonly pointer: string
  readonly kind: number
  readonly bytes: Uint8Array
}

interface EnvelopeBody {
  readonly codec: number
  /** JSON text, raw bytes, or nothing. */
  readonly main: Uint8Array
  readonly entries: readonly EnvelopeEntry[]
}

interface PreparedEnvelope {
  readonly header: EnvelopeHeader
  readonly body: EnvelopeBody
}

const EMPTY = new Uint8Array(0)

/**
 * An envelope as bytes: version, header, codec of the body, table of attachments, body (docs/PROTOCOL). Byte arrays and
 * strings over 16 KiB of the payload travel as attachments.
 * @throws NodeError INVALID_ENVELOPE for a missing or wrong field, or a payload without a JSON form;
 * SCHEMA_VERSION_MISMATCH; PAYLOAD_TOO_LARGE over 16 MiB in all, 8 KiB of header, 64 attachments, or 1 MiB of JSON.
 * `takes`: bytes of JSON that the reader takes, asked above 1 MiB; earlier builds take 1 MiB.
 */
export function encodeEnvelope(envelope: A2AEnvelope, takes: () => number = leastTaken): Uint8Array {
  assertHeader(envelope)
  return c.encode(WIRE, { header: envelope, body: bodyOf(envelope.payload, takes) })
}

function bodyOf(payload: unknown, takes: () => number): EnvelopeBody {
  if (payload === undefined) return { codec: BODY.none, main: EMPTY, entries: [] }
  if (payload instanceof Uint8Array) return { codec: BODY.bytes, main: payload, entries: [] }
  const fault = jsonFault(payload, SIZED_LIMITS)
  if (fault !== null) throw new NodeError('INVALID_ENVELOPE', `payload: ${fault}`)
  const lifted = lift(payload, { maxInlineText })
  if (lifted === null)
    throw tooLarge(`more than ${maxAttachments} byte arrays (a fixed limit): join them, or send several messages`)
  const main = utf8(jsonOf(lifted.json))
  if (main.byteLength <= maxJsonBytes) return { codec: BODY.json, main, entries: lifted.attachments.map(entryOf) }
  const takesBytes = takes()
  const packed = main.byteLength > takesBytes ? null : packedBody(payload)
  if (packed === null) throw tooLarge(jsonExcess(main.byteLength, Math.max(takesBytes, maxJsonBytes)))
  return packed
}

/** Every reader takes that much. */
function leastTaken(): number {
  return maxJsonBytes
}

/** Null when no attachment is left for the JSON. */
function packedBody(payload: unknown): EnvelopeBody | null {
  const lifted = lift(payload, { maxInlineText, maxAttachments: maxAttachments - 1 })
  if (lifted === null) return null
  const json = { pointer: PACKED, kind: KIND.text, bytes: utf8(jsonOf(lifted.json)) }
  return { codec: BODY.json, main: PACKED_MAIN, entries: [json, ...lifted.attachments.map(entryOf)] }
}

function jsonExcess(bytes: number, taken: number): string {
  const limit = `lists, objects and short texts take ${bytes} bytes of JSON, and the reader takes ${taken} (its tools.maxPayloadBytes, if that is above 1 MiB)`
  return `${limit}: send the bulk as one text (over ${maxInlineText} characters) or as bytes, or send several messages`
}

function headerExcess({ entries }: EnvelopeBody): string {
  const parts = entries.length === 0 ? '' : ` with the places of ${entries.length} attachments`
  return `more than ${maxHeaderBytes} bytes of header${parts} (a fixed limit): shorten keys, or send several messages`
}

function jsonOf(value: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw new NodeError('INVALID_ENVELOPE', 'payload: it has no JSON form', { cause })
  }
  if (text === undefined) throw new NodeError('INVALID_ENVELOPE', `payload: a ${typeof value} has no JSON form`)
  return text
}

function entryOf({ pointer, content }: Attachment): EnvelopeEntry {
  return typeof content === 'string'
    ? { pointer, kind: KIND.text, bytes: utf8(content) }
    : { pointer, kind: KIND.bytes, bytes: content }
}

function tooLarge(reason: string): NodeError {
  return new NodeError('PAYLOAD_TOO_LARGE', `the message is too large: ${reason}`)
}

/** The layout of a body. Measuring checks the bounds, so nothing is allocated for a refused one. */
const BARE = {
  preencode(state: WireState, body: EnvelopeBody): void {
    c.uint8.preencode(state, body.codec)
    if (body.codec === BODY.json) measureTable(state, body)
    if (state.end > maxHeaderBytes) throw tooLarge(headerExcess(body))
    state.end += body.main.byteLength
    for (const { bytes } of body.entries) state.end += bytes.byteLength
    if (state.end > maxBytes)
      throw tooLarge(`more than ${maxBytes} bytes in all (a fixed limit): send several messages`)
  },
  encode(state: WireState, body: EnvelopeBody): void {
    c.uint8.encode(state, body.codec)
    if (body.codec === BODY.json) writeTable(state, body)
    c.raw.encode(state, body.main)
    for (const { bytes } of body.entries) c.raw.encode(state, bytes)
  },
  decode(): EnvelopeBody {
    throw new Error('read by decodePayload')
  }
}

/** The layout of an envelope. */
const WIRE = {
  preencode(state: WireState, { header, body }: PreparedEnvelope): void {
    c.uint8.preencode(state, WIRE_VERSION)
    measureHeader(state, header)
    BARE.preencode(state, body)
  },
  encode(state: WireState, { header, body }: PreparedEnvelope): void {
    c.uint8.encode(state, WIRE_VERSION)
    writeHeader(state, header)
    BARE.encode(state, body)
  },
  decode(): PreparedEnvelope {
    throw new Error('read by decodeEnvelope')
  }
}

function measureTable(state: WireState, body: EnvelopeBody): void {
  c.uint.preencode(state, body.main.byteLength)
  c.uint.preencode(state, body.entries.length)
  for (const { pointer, kind, bytes } of body.entries) {
    c.utf8.preencode(state, pointer)
    c.uint8.preencode(state, kind)
    c.uint.preencode(state, bytes.byteLength)
  }
}

function writeTable(state: WireState, body: EnvelopeBody): void {
  c.uint.encode(state, body.main.byteLength)
  c.uint.encode(state, body.entries.length)
  for (const { pointer, kind, bytes } of body.entries) {
    c.utf8.encode(state, pointer)
    c.uint8.encode(state, kind)
    c.uint.encode(state, bytes.byteLength)
  }
}

/**
 * A payload by itself as bytes, as the body of an envelope carries it.
 * @throws NodeError INVALID_ENVELOPE, PAYLOAD_TOO_LARGE as {@link encodeEnvelope}
 */
export function encodePayload(payload: unknown): Uint8Array {
  return c.encode(BARE, bodyOf(payload, leastTaken))
}

/**
 * A payload for the own ledger, as {@link encodePayload}, but with as much JSON as an envelope has bytes, or up to
 * `takesBytes`.
 * @throws NodeError INVALID_ENVELOPE, PAYLOAD_TOO_LARGE
 */
export function encodeStored(payload: unknown, takesBytes = maxBytes): Uint8Array {
  return c.encode(
    BARE,
    bodyOf(payload, () => takesBytes)
  )
}

/** Decodes the bytes of {@link encodePayload}. Never throws. */
export function decodePayload(bytes: Uint8Array): PayloadReading {
  return readPayload(bytes, maxJsonBytes)
}

/** Decodes the bytes of {@link encodeStored} or {@link encodePayload}, up to `takesBytes` of JSON. Never throws. */
export function decodeStored(bytes: Uint8Array, takesBytes = maxBytes): PayloadReading {
  return readPayload(bytes, takesBytes)
}

function readPayload(bytes: Uint8Array, takesBytes: number): PayloadReading {
  try {
    const body = readBody(c.state(0, bytes.byteLength, bytes), bytes)
    return typeof body === 'string' ? { ok: false, reason: body } : payloadOf(body, takesBytes)
  } catch {
    return { ok: false, reason: 'the payload is cut short or malformed' }
  }
}

/** A payload, or why there is none. */
export type PayloadReading =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false
      readonly reason: string
      /** Its JSON is larger than this reader takes: no fault of its form. */
      readonly isTooLarge?: true
    }

/** Result of {@link decodeEnvelope}. */
export type DecodedEnvelope =
  | {
      readonly ok: true
      readonly header: EnvelopeHeader
      /** Positions of the body's codec and of the body: the table of attachments lies between. */
      readonly codecAt: number
      readonly bodyAt: number
      /**
       * Parses the body at the first call, then gives the same reading again. Bytes in it are copies. `takesBytes`: of
       * JSON; default: of a message that was read before, any.
       */
      payload(takesBytes?: number): PayloadReading
    }
  | {
      readonly ok: false
      readonly code: EnvelopeFault['code']
      readonly reason: string
      /** The message's id when that much was readable. */
      readonly id: string | null
    }

/** Reads bytes that others wrote. Never throws; the header is checked now, the body when its payload is asked for. */
export function decodeEnvelope(bytes: Uint8Array): DecodedEnvelope {
  const seen: { id: string | null } = { id: null }
  if (bytes.byteLength > maxBytes) return refused('INVALID_ENVELOPE', `more than ${maxBytes} bytes`, null)
  try {
    return decode(bytes, seen)
  } catch {
    return refused('INVALID_ENVELOPE', 'the header is cut short or malformed', seen.id)
  }
}

/** An envelope that could be read. */
export type ReadEnvelope = Extract<DecodedEnvelope, { readonly ok: true }>

/** Was it relayed? Only the node that it came to notes that. */
export function isRelayed({ metadata }: EnvelopeHeader): boolean {
  return metadata?.hops !== undefined
}

/**
 * An envelope that was relayed, with the relays in its header, and as bytes; null when its header leaves no room for
 * them.
 */
export function withHops(
  read: ReadEnvelope,
  bytes: Uint8Array,
  hops: readonly NodeId[]
): { readonly header: EnvelopeHeader; readonly bytes: Uint8Array } | null {
  const header = { ...read.header, metadata: { ...(read.header.metadata ?? { tier: 3 as const }), hops } }
  const state = c.state(0, 1)
  measureHeader(state, header)
  const rest = bytes.subarray(read.codecAt)
  const noted = unwritten(state.end + rest.byteLength)
  if (state.end + read.bodyAt - read.codecAt > maxHeaderBytes || noted.byteLength > maxBytes) return null
  noted[0] = WIRE_VERSION
  writeHeader(c.state(1, state.end, noted), header)
  noted.set(rest, state.end)
  return { header, bytes: noted }
}

function refused(code: EnvelopeFault['code'], reason: string, id: string | null): DecodedEnvelope {
  return { ok: false, code, reason, id }
}

function decode(bytes: Uint8Array, seen: { id: string | null }): DecodedEnvelope {
  const state = c.state(0, Math.min(bytes.byteLength, maxHeaderBytes), bytes)
  const version = c.uint8.decode(state)
  if (version !== WIRE_VERSION)
    return refused('SCHEMA_VERSION_MISMATCH', `wire version: expected ${WIRE_VERSION}, got ${version}`, null)
  const reading = readHeader(state, seen)
  if (!reading.ok) return reading
  const codecAt = state.start
  const body = readBody(state, bytes)
  if (typeof body === 'string') return refused('INVALID_ENVELOPE', body, seen.id)
  let payload: PayloadReading | null = null
  return {
    ok: true,
    header: reading.header,
    codecAt,
    bodyAt: state.start,
    payload: (takesBytes = maxBytes) => (payload ??= payloadOf(body, takesBytes))
  }
}

function readBody(state: WireState, bytes: Uint8Array): EnvelopeBody | string {
  const codec = c.uint8.decode(state)
  if (codec === BODY.json) return readTable(state, bytes)
  const rest = bytes.subarray(state.start)
  if (codec === BODY.bytes) return { codec, main: rest, entries: [] }
  return codec === BODY.none && rest.byteLength === 0
    ? { codec, main: EMPTY, entries: [] }
    : 'the body has no known form'
}

function readTable(state: WireState, bytes: Uint8Array): EnvelopeBody | string {
  const jsonBytes = c.uint.decode(state)
  const count = c.uint.decode(state)
  if (jsonBytes > maxJsonBytes || count > maxAttachments) return 'the body is larger than allowed'
  const rows: { pointer: string; kind: number; length: number }[] = []
  for (let i = 0; i < count; i++)
    rows.push({ pointer: c.utf8.decode(state), kind: c.uint8.decode(state), length: c.uint.decode(state) })
  let at = state.start + jsonBytes
  const main = bytes.subarray(state.start, at)
  const entries: EnvelopeEntry[] = []
  for (const { pointer, kind, length } of rows) {
    if (kind !== KIND.text && kind !== KIND.bytes) return 'an attachment of unknown kind'
    entries.push({ pointer, kind, bytes: bytes.subarray(at, at + length) })
    at += length
  }
  return at === bytes.byteLength
    ? { codec: BODY.json, main, entries }
    : 'the length of the body differs from its header'
}

function payloadOf(body: EnvelopeBody, takesBytes: number): PayloadReading {
  if (body.codec === BODY.none) return { ok: true, value: undefined }
  if (body.codec === BODY.bytes) return { ok: true, value: new Uint8Array(body.main) }
  const [first, ...others] = body.entries
  const packed = first?.pointer === PACKED ? first.bytes : null
  if (packed !== null && packed.byteLength > takesBytes) {
    const reason = `the message has ${packed.byteLength} bytes of JSON, and this node takes ${takesBytes} (tools.maxPayloadBytes)`
    return { ok: false, reason, isTooLarge: true }
  }
  const json = parseJson(fromUtf8(packed ?? body.main), SIZED_LIMITS)
  if (!json.ok) return json
  return restore(json.value, (packed === null ? body.entries : others).map(attachmentOf))
}

// Copies: a payload may be kept long after the frame it came in.
function attachmentOf({ pointer, kind, bytes }: EnvelopeEntry): Attachment {
  return { pointer, content: kind === KIND.text ? fromUtf8(bytes) : new Uint8Array(bytes) }
}
