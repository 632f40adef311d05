import { sameBytes } from '../../../kit/bytes.js'
import { fromUtf8, utf8 } from '../../../kit/ids.js'

/** Internal error of a reader of an update; callers outside this folder get a reason instead. */
export class UpdateFault extends Error {}

/** A number as Yjs writes it: 7 bits a byte, lowest first. */
export function sevens(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return [...bytes, rest]
}

/** Reads the numbers and texts of Yjs from unchecked bytes. @throws UpdateFault for truncated or foreign bytes */
export class UpdateCursor {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Bytes that were read. */
  get at(): number {
    return this.#at
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#bytes.byteLength - this.#at
  }

  /** One byte. */
  byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new UpdateFault('it is cut short')
    return byte
  }

  /** A number of 7 bits a byte, lowest first, at most 2^53 - 1. */
  uint(): number {
    return this.#sevens(0, 1)
  }

  /** Skips a number with a sign: 6 bits in the first byte, then 7. */
  skipInt(): void {
    const first = this.byte()
    if ((first & 0x80) !== 0) this.#sevens(first & 0x3f, 64)
  }

  #sevens(from: number, firstFactor: number): number {
    let value = from
    for (let factor = firstFactor; factor <= 2 ** 49; factor *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (value > Number.MAX_SAFE_INTEGER) break
      if (byte < 0x80) return value
    }
    throw new UpdateFault('a number is too large')
  }

  /** A count of items of at least `each` bytes, so bounded by the remaining bytes. */
  count(each: number): number {
    const count = this.uint()
    if (count > this.left / each) throw new UpdateFault('a count is larger than the rest')
    return count
  }

  /** The next `length` bytes, not copied. */
  take(length: number): Uint8Array {
    if (length > this.left) throw new UpdateFault('it is cut short')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  /** UTF-8 behind its length. Yjs throws at broken sequences, in the middle of its work; here they are a fault. */
  text(): string {
    const bytes = this.take(this.uint())
    const text = fromUtf8(bytes)
    if (text.length !== bytes.byteLength && !sameBytes(utf8(text), bytes)) throw new UpdateFault('a text is not UTF-8')
    if (text.length === bytes.byteLength && text.includes('\uFFFD')) throw new UpdateFault('a text is not UTF-8')
    return text
  }
}
