/** Bytes of a message beyond the arguments of its call: method, ids, and added escapes. */
const HEADROOM_BYTES = 65_536

/** Bytes of one message, a line or a body, whose arguments may have `maxPayloadBytes` (`tools.maxPayloadBytes`). */
export function maxMessageBytes(maxPayloadBytes: number): number {
  return maxPayloadBytes + HEADROOM_BYTES
}
