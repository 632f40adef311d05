import { isRecord } from '../../../kit/json.js'
import { messageNamed } from './proto-reader.js'
import { type ProtoField, SCHEMA } from './proto-schema.js'

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIRST_BYTES = 1024
const TWO_32 = 4_294_967_296

/** Numbers of the names of enums. */
const NUMBERS: ReadonlyMap<string, number> = new Map(
  [...SCHEMA.enums.values()].flatMap((names) => [...names].map(([number, name]) => [name, number] as const))
)

/**
 * Encodes the JSON form of a message. Members that the schema does not have are left out, and so are default values
 * where proto3 does not tell them from absent ones.
 */
export function encodeProto(type: string, value: object): Buffer {
  const writer = new ProtoWriter()
  writer.message(type, value as Record<string, unknown>)
  return writer.bytes
}

/** Writes from the last byte to the first, so that the length of a value is known when it is written. */
class ProtoWriter {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #at = FIRST_BYTES

  get bytes(): Buffer {
    return this.#buffer.subarray(this.#at)
  }

  message(type: string, value: Readonly<Record<string, unknown>>): void {
    const { fields } = messageNamed(type)
    for (let i = fields.length - 1; i >= 0; i--) {
      const field = fields[i]
      const member = field === undefined ? null : (value[field.name] ?? null)
      if (field !== undefined && (member !== null || isNullPart(field, value))) this.#field(field, member)
    }
  }

  #field(field: ProtoField, value: unknown): void {
    const { number, type, form } = field
    if (form === 'list') {
      const list = Array.isArray(value) ? value : []
      for (let i = list.length - 1; i >= 0; i--) this.#value(number, type, list[i])
    } else if (form === 'map') this.#map(number, type, value)
    else if (field.hasPresence || !isDefault(type, value)) this.#value(number, type, value)
  }

  #map(number: number, type: string, map: unknown): void {
    if (!isRecord(map)) return
    for (const key of Object.keys(map).reverse()) {
      if (map[key] === undefined) continue
      this.#nested(number, () => {
        this.#value(2, type, map[key])
        this.#text(1, key)
      })
    }
  }

  #value(number: number, type: string, value: unknown): void {
    if (type === 'string') return this.#text(number, String(value))
    if (type === 'bytes') return this.#blob(number, Buffer.from(String(value), 'base64'))
    if (type === 'bool') return this.#number(number, value === true ? 1 : 0)
    if (type === 'int32') return this.#number(number, Number(value))
    if (SCHEMA.enums.has(type)) return this.#number(number, NUMBERS.get(String(value)) ?? 0)
    if (type === 'google.protobuf.Value') return this.#nested(number, () => this.#json(value))
    if (type === 'google.protobuf.Timestamp') return this.#nested(number, () => this.#timestamp(String(value)))
    const members = isRecord(value) ? value : {}
    if (type === 'google.protobuf.Struct') return this.#nested(number, () => this.#struct(members))
    if (type === 'google.protobuf.Any') return this.#nested(number, () => this.#any(members))
    this.#nested(number, () => this.message(type, members))
  }

  #struct(members: Readonly<Record<string, unknown>>): void {
    this.#map(1, 'google.protobuf.Value', members)
  }

  #json(value: unknown): void {
    if (typeof value === 'string') this.#text(3, value)
    else if (typeof value === 'number') this.#double(2, value)
    else if (typeof value === 'boolean') this.#number(4, value ? 1 : 0)
    else if (Array.isArray(value)) this.#nested(6, () => this.#list(value))
    else if (isRecord(value)) this.#nested(5, () => this.#struct(value))
    else this.#number(1, 0)
  }

  #list(list: readonly unknown[]): void {
    for (let i = list.length - 1; i >= 0; i--) this.#nested(1, () => this.#json(list[i]))
  }

  #timestamp(text: string): void {
    const ms = Date.parse(text)
    if (Number.isNaN(ms)) return
    const seconds = Math.floor(ms / 1000)
    const digits = /\.(\d{1,9})/.exec(text)?.[1] ?? ''
    const nanos = Number(digits.padEnd(9, '0'))
    if (nanos !== 0) this.#number(2, nanos)
    if (seconds !== 0) this.#number(1, seconds)
  }

  /** A message with its type as ProtoJSON has it: `@type` ends with a name of the schema. */
  #any({ '@type': url, ...members }: Readonly<Record<string, unknown>>): void {
    const name = String(url)
    this.#nested(2, () => this.message(name.slice(name.lastIndexOf('.') + 1), members))
    this.#text(1, name)
  }

  #nested(number: number, write: () => void): void {
    const end = this.#buffer.length - this.#at
    write()
    this.#head(number, this.#buffer.length - this.#at - end)
  }

  #text(number: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.#grow(length)
    this.#at -= length
    this.#buffer.write(text, this.#at)
    this.#head(number, length)
  }

  #blob(number: number, bytes: Buffer): void {
    this.#grow(bytes.length)
    this.#at -= bytes.length
    bytes.copy(this.#buffer, this.#at)
    this.#head(number, bytes.length)
  }

  #double(number: number, value: number): void {
    this.#grow(8)
    this.#at -= 8
    this.#buffer.writeDoubleLE(value, this.#at)
    this.#varint((number << 3) | FIXED64)
  }

  #number(number: number, value: number): void {
    this.#varint(value)
    this.#varint((number << 3) | VARINT)
  }

  #head(number: number, length: number): void {
    this.#varint(length)
    this.#varint((number << 3) | BYTES)
  }

  /** Negative numbers take ten bytes, as 64 bits. */
  #varint(value: number): void {
    const bytes: number[] = []
    let low = value >>> 0
    let high = Math.floor(value / TWO_32) >>> 0
    while (high !== 0 || low > 0x7f) {
      bytes.push((low & 0x7f) | 0x80)
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    bytes.push(low)
    this.#grow(bytes.length)
    this.#at -= bytes.length
    for (let i = 0; i < bytes.length; i++) this.#buffer[this.#at + i] = bytes[i] ?? 0
  }

  #grow(length: number): void {
    if (length <= this.#at) return
    const written = this.#buffer.length - this.#at
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, 2 * (written + length)))
    this.#buffer.copy(larger, larger.length - written, this.#at)
    this.#at = larger.length - written
    this.#buffer = larger
  }
}

/** Is it the JSON value null as the content of a part? */
function isNullPart({ name, type }: ProtoField, value: Readonly<Record<string, unknown>>): boolean {
  return type === 'google.protobuf.Value' && value[name] === null
}

function isDefault(type: string, value: unknown): boolean {
  return value === '' || value === false || value === 0 || (SCHEMA.enums.has(type) && NUMBERS.get(String(value)) === 0)
}
