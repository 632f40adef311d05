import { isRecord, SIZED_LIMITS } from '../../../kit/json.js'
import { type ProtoField, type ProtoMessage, SCHEMA } from './proto-schema.js'

/** Most values of one message: more than its bytes allow for numbers, and fewer than empty messages. */
export const MAX_PROTO_VALUES = 1_000_000

/** Wire types of protocol buffers. */
const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** Seconds of the years 1 to 9999, the range of a timestamp. */
const MIN_SECONDS = -62_135_596_800
const MAX_SECONDS = 253_402_300_799
const TWO_32 = 4_294_967_296

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes that are no message of the schema, or one beyond the bounds. Its message is for the client. */
export class ProtoFault extends Error {}

/**
 * Decodes bytes of a client to the JSON form of a message (ProtoJSON, names in lowerCamelCase). Depth and number of
 * values are bounded while it decodes. Unknown fields are skipped.
 * @throws ProtoFault
 */
export function decodeProto(type: string, bytes: Buffer): Record<string, unknown> {
  return new ProtoReader(bytes).whole(type)
}

class ProtoReader {
  readonly #bytes: Buffer
  #at = 0
  #values = 0
  /** The last varint: its low and high 32 bits. */
  #low = 0
  #high = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  whole(type: string): Record<string, unknown> {
    return this.#message({}, type, { end: this.#bytes.length, depth: 0 })
  }

  #message(message: Record<string, unknown>, type: string, { end, depth }: Extent): Record<string, unknown> {
    checkDepth(depth)
    const { byNumber } = messageNamed(type)
    while (this.#at < end) {
      const { number, wire } = this.#tag(end)
      const field = byNumber.get(number)
      // A known field of another wire type counts as unknown.
      if (field === undefined || wire !== wireOf(field)) this.#skip(wire, end)
      else this.#field(message, field, { end, depth })
    }
    return message
  }

  #field(message: Record<string, unknown>, field: ProtoField, { end, depth }: Extent): void {
    const { name, form, rivals } = field
    this.#count()
    if (form === 'map') return this.#entry((message[name] ??= {}) as Record<string, unknown>, field, { end, depth })
    // A message that comes in several pieces is merged.
    const known = form === 'one' ? message[name] : undefined
    const value = this.#value(field.type, known, { end, depth })
    if (form === 'list') ((message[name] ??= []) as unknown[]).push(value)
    else message[name] = value
    for (const rival of rivals) if (rival !== name) delete message[rival]
  }

  #value(type: string, known: unknown, { end, depth }: Extent): unknown {
    if (type === 'bool') return this.#varint(end) !== 0 || this.#high !== 0
    if (type === 'int32') return this.#varint(end) | 0
    const names = SCHEMA.enums.get(type)
    if (names !== undefined) return names.get(this.#varint(end) | 0) ?? String(this.#low | 0)
    const stop = this.#extent(end)
    if (type === 'string') return this.#text(stop)
    if (type === 'bytes') return this.#taken(stop).toString('base64')
    const inner = { end: stop, depth: depth + 1 }
    const target = isRecord(known) ? known : {}
    if (type === 'google.protobuf.Struct') return this.#struct(target, inner)
    if (type === 'google.protobuf.Value') return this.#json({ end: stop, depth })
    if (type === 'google.protobuf.Timestamp') return this.#timestamp(stop)
    return this.#message(target, type, inner)
  }

  /** One entry of a map: its key is field 1, its value field 2. */
  #entry(map: Record<string, unknown>, { type }: Pick<ProtoField, 'type'>, { end, depth }: Extent): void {
    const stop = this.#extent(end)
    let key = ''
    let value: unknown
    while (this.#at < stop) {
      const { number, wire } = this.#tag(stop)
      if (number === 1 && wire === BYTES) key = this.#text(this.#extent(stop))
      else if (number === 2 && wire === BYTES) value = this.#value(type, undefined, { end: stop, depth: depth + 1 })
      else this.#skip(wire, stop)
    }
    // As an own member it would not be seen by the checks behind this one.
    if (key === '__proto__') throw new ProtoFault('the key __proto__ is not allowed')
    map[key] = value ?? missing(type)
  }

  #struct(target: Record<string, unknown>, { end, depth }: Extent): Record<string, unknown> {
    checkDepth(depth)
    while (this.#at < end) {
      const { number, wire } = this.#tag(end)
      this.#count()
      // The value of an entry is as deep as the object.
      if (number === 1 && wire === BYTES)
        this.#entry(target, { type: 'google.protobuf.Value' }, { end, depth: depth - 1 })
      else this.#skip(wire, end)
    }
    return target
  }

  /** A value of JSON; without any content it is null. */
  #json({ end, depth }: Extent): unknown {
    let value: unknown = null
    while (this.#at < end) {
      const { number, wire } = this.#tag(end)
      this.#count()
      if (number === 1 && wire === VARINT) {
        this.#varint(end)
        value = null
      } else if (number === 2 && wire === FIXED64) value = this.#double(end)
      else if (number === 3 && wire === BYTES) value = this.#text(this.#extent(end))
      else if (number === 4 && wire === VARINT) value = this.#varint(end) !== 0 || this.#high !== 0
      else if (number === 5 && wire === BYTES) value = this.#struct({}, { end: this.#extent(end), depth: depth + 1 })
      else if (number === 6 && wire === BYTES) value = this.#list({ end: this.#extent(end), depth: depth + 1 })
      else this.#skip(wire, end)
    }
    return value
  }

  #list({ end, depth }: Extent): unknown[] {
    checkDepth(depth)
    const list: unknown[] = []
    while (this.#at < end) {
      const { number, wire } = this.#tag(end)
      if (number === 1 && wire === BYTES) {
        this.#count()
        list.push(this.#json({ end: this.#extent(end), depth }))
      } else this.#skip(wire, end)
    }
    return list
  }

  #timestamp(end: number): string {
    let seconds = 0
    let nanos = 0
    while (this.#at < end) {
      const { number, wire } = this.#tag(end)
      if (number === 1 && wire === VARINT) {
        const low = this.#varint(end) >>> 0
        seconds = (this.#high | 0) * TWO_32 + low
      } else if (number === 2 && wire === VARINT) nanos = this.#varint(end) | 0
      else this.#skip(wire, end)
    }
    if (seconds < MIN_SECONDS || seconds > MAX_SECONDS || nanos < 0 || nanos > 999_999_999)
      throw new ProtoFault('a timestamp is not of the years 1 to 9999')
    const text = new Date(seconds * 1000).toISOString()
    const digits = String(nanos).padStart(9, '0')
    return text.replace(/\.\d+Z$/, `.${digits.endsWith('000000') ? digits.slice(0, 3) : digits}Z`)
  }

  #count(): void {
    if (++this.#values > MAX_PROTO_VALUES) throw new ProtoFault(`more than ${MAX_PROTO_VALUES} values`)
  }

  #tag(end: number): { readonly number: number; readonly wire: number } {
    const tag = this.#varint(end) >>> 0
    if (this.#high !== 0 || tag < 8) throw malformed()
    return { number: tag >>> 3, wire: tag & 7 }
  }

  /** Reads a varint; gives its low 32 bits, signed. */
  #varint(end: number): number {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= end) throw malformed()
      const byte = this.#bytes[this.#at++] ?? 0
      const bits = byte & 0x7f
      if (shift < 32) low |= bits << shift
      if (shift === 28) high = bits >>> 4
      else if (shift > 28) high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.#low = low
        this.#high = high
        return low
      }
    }
    throw malformed()
  }

  #double(end: number): number {
    const value = this.#taken(this.#beyond(8, end)).readDoubleLE()
    if (!Number.isFinite(value)) throw new ProtoFault('a number that is not finite')
    return value
  }

  /** The end of a value with a length. */
  #extent(end: number): number {
    const length = this.#varint(end) >>> 0
    if (this.#high !== 0) throw malformed()
    return this.#beyond(length, end)
  }

  #beyond(length: number, end: number): number {
    if (length > end - this.#at) throw malformed()
    return this.#at + length
  }

  #text(end: number): string {
    try {
      return TEXT.decode(this.#taken(end))
    } catch {
      throw new ProtoFault('a text is not UTF-8')
    }
  }

  #taken(end: number): Buffer {
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }

  #skip(wire: number, end: number): void {
    if (wire === VARINT) this.#varint(end)
    else if (wire === FIXED64) this.#at = this.#beyond(8, end)
    else if (wire === BYTES) this.#at = this.#extent(end)
    else if (wire === FIXED32) this.#at = this.#beyond(4, end)
    // Groups are of proto2.
    else throw malformed()
  }
}

/** The place of a value: where its bytes end, and its depth in JSON. */
interface Extent {
  readonly end: number
  readonly depth: number
}

/** The message of a name, which is one of the schema. */
export function messageNamed(type: string): ProtoMessage {
  const message = SCHEMA.messages.get(type)
  if (message === undefined) throw new TypeError(`no message ${type}`)
  return message
}

function wireOf({ type, form }: ProtoField): number {
  return form !== 'map' && (type === 'bool' || type === 'int32' || SCHEMA.enums.has(type)) ? VARINT : BYTES
}

/** The value of an entry of a map that has none. */
function missing(type: string): unknown {
  return type === 'string' ? '' : type === 'google.protobuf.Value' ? null : {}
}

function checkDepth(depth: number): void {
  if (depth > SIZED_LIMITS.maxDepth) throw new ProtoFault(`nested deeper than ${SIZED_LIMITS.maxDepth}`)
}

function malformed(): ProtoFault {
  return new ProtoFault('the bytes are no protocol buffers of this message')
}
