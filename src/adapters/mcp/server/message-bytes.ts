/** Beyond the arguments of a call, a message may have so many bytes: method, ids, and what escapes add. */
const HEADROOM_BYTES = 65_536

/** Bytes of one message, a line or a body, whose arguments may have `maxPayloadBytes` (`tools.maxPayloadBytes`). */
export function maxMessageBytes(maxPayloadBytes: number): number {
  return maxPayloadBytes + HEADROOM_BYTES
}
