import { ENVELOPE_LIMITS } from '../envelope/limits.js'

/** Entry of a card's protocols of an agent whose node takes more JSON in a message than earlier builds. */
const ENTRY = /^a2a-node\/json;max=(\d{7,8})$/

/** The entries for the cards of a node that takes `maxBytes` of JSON in a message; none up to 1 MiB. */
export function largeJsonProtocols(maxBytes: number): readonly string[] {
  return maxBytes <= ENVELOPE_LIMITS.maxJsonBytes ? [] : [`a2a-node/json;max=${maxBytes}`]
}

/** Bytes of JSON in a message that the node of an agent takes, by the protocols of its card. */
export function jsonBytesTaken(protocols: readonly string[] = []): number {
  const entry = protocols.map((one) => ENTRY.exec(one)?.[1]).find((found) => found !== undefined)
  return Math.max(ENVELOPE_LIMITS.maxJsonBytes, Math.min(ENVELOPE_LIMITS.maxBytes, Number(entry ?? 0)))
}
