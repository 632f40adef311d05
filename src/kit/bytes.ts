import b4a from 'b4a'

/** Bytes as standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return b4a.toString(bytes, 'base64')
}

/** Standard base64 with padding to bytes, or null when the text is not the base64 of any bytes. */
export function fromBase64(text: string): Uint8Array | null {
  const bytes = b4a.from(text, 'base64')
  // The decoder skips foreign characters; only its own output is taken.
  return toBase64(bytes) === text ? bytes : null
}

/**
 * Bytes with arbitrary content, all to be written by the caller. Small ones are cut from a larger piece: a tenth of the
 * time.
 */
export function unwritten(length: number): Uint8Array {
  return b4a.allocUnsafe(length)
}

/** Bytes one after the other, as one. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  return b4a.concat([...parts])
}

/** Are they the same bytes? */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return b4a.equals(a, b)
}
