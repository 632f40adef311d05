import b4a from 'b4a'
import c from 'compact-encoding'
import fc from 'fast-check'

/** Whole numbers as attackers choose them: small ones, those about a width, and huge ones. */
export function arbNumber(): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.nat(8) },
    fc.constantFrom(31, 32, 33, 0xfc, 0xfd, 0xffff, 2 ** 24 - 1, 2 ** 24, 2 ** 31, 2 ** 32, 2 ** 53 - 1),
    fc.nat(2 ** 16),
    fc.maxSafeInteger().map(Math.abs)
  )
}

/** Some bytes, mostly few. */
export function arbBytes(maxLength = 80): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ maxLength })
}

/** The bytes with one bit flipped; null: as they are. */
export function flipped(bytes: Uint8Array, at: number | null): Uint8Array {
  if (at === null || bytes.byteLength === 0) return bytes
  const copy = Uint8Array.from(bytes)
  const place = at % copy.byteLength
  copy[place] = (copy[place] ?? 0) ^ (1 << (at % 8))
  return copy
}

/** A number as the multiplexer writes it. */
export function uint(number: number): Uint8Array {
  return c.encode(c.uint, number)
}

/** The parts of bytes as one. */
export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return b4a.concat(parts)
}

/** Bytes with their length before them, as batches have them. */
export function withLength(bytes: Uint8Array): Uint8Array {
  return joined(uint(bytes.byteLength), bytes)
}
