import c from 'compact-encoding'
import { unwritten } from '../../kit/bytes.js'
import { isAgentId } from '../card/schema.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'

/** One message of a lane as it travels between two nodes; its agents are of the sending and of the receiving node. */
export interface ReliableFrame {
  /** Id of the agent that sends it. */
  readonly source: string
  readonly target: string
  readonly seq: number
  /** The lowest number of the lane that can still come. */
  readonly base: number
  readonly messageId: string
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
  /** The encoded envelope; null for a number whose message was given up. */
  readonly envelope: Uint8Array | null
}

/** Ids in frames: printable, as they become part of keys in the ledger. */
const ID = /^[!-~]{1,64}$/
const MAX_NUMBER = 2 ** 52
/** Bytes at most of a frame beside its envelope: four texts of 64 characters and two numbers. */
export const MAX_HEAD_BYTES = 4 * 65 + 2 * 9

/** A message of a lane as bytes. */
export function encodeReliable({
  source,
  target,
  seq,
  base,
  messageId,
  requestId,
  envelope
}: ReliableFrame): Uint8Array {
  const texts = [source, target, messageId, requestId ?? '']
  const state = c.state()
  for (const text of texts) c.string.preencode(state, text)
  c.uint.preencode(state, seq)
  c.uint.preencode(state, base)
  const bytes = unwritten(state.end + (envelope?.byteLength ?? 0))
  const cursor = c.state(0, state.end, bytes)
  for (const text of texts) c.string.encode(cursor, text)
  c.uint.encode(cursor, seq)
  c.uint.encode(cursor, base)
  if (envelope !== null) bytes.set(envelope, state.end)
  return bytes
}

/**
 * The message of a lane that a peer sent, or null for bytes that are none. Never throws. The envelope is not looked at.
 */
export function decodeReliable(bytes: Uint8Array): ReliableFrame | null {
  try {
    const state = c.state(0, bytes.byteLength, bytes)
    const [source, target] = [c.string.decode(state), c.string.decode(state)]
    const [messageId, requestId] = [c.string.decode(state), c.string.decode(state)]
    const [seq, base] = [c.uint.decode(state), c.uint.decode(state)]
    const rest = bytes.subarray(state.start)
    if (!isAgentId(source) || !isAgentId(target)) return null
    if (!ID.test(messageId) || (requestId !== '' && !ID.test(requestId))) return null
    if (seq < 1 || seq > MAX_NUMBER || base < 1 || base > seq || rest.byteLength > ENVELOPE_LIMITS.maxBytes) return null
    return {
      source,
      target,
      seq,
      base,
      messageId,
      requestId: requestId || null,
      envelope: rest.byteLength === 0 ? null : rest
    }
  } catch {
    return null
  }
}
