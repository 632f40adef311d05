/** Bytes of a message beyond the arguments of its call: method, ids, and added escapes. */
const HEADROOM_BYTES = 65_536

/** Largest message in bytes, a line or a body, with arguments of up to `maxPayloadBytes` (`tools.maxPayloadBytes`). */
export function maxMessageBytes(maxPayloadBytes: number): number {
  return maxPayloadBytes + HEADROOM_BYTES
}
