import c from 'compact-encoding'
import { bytesToText, keyFromText, keyToText, type MeshId, type NodeId, utf8 } from '../../kit/ids.js'
import { unwritten } from '../../kit/bytes.js'
import type { Hash, Sign, Verify } from '../../kit/sign.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'

/** Separates this signature from every other one of a node, and from other layouts. */
const LABEL = utf8('a2a-node/relayed/1')
const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
const ID_BYTES = 16
/** Bytes at most of a relayed frame beside its content: two keys, time, signature, hops. */
export const MAX_RELAY_HEAD_BYTES = 2 * KEY_BYTES + 8 + SIGNATURE_BYTES + 1 + KEY_BYTES * ENVELOPE_LIMITS.maxHops

/**
 * A frame of one node for another that neighbours relay: signed by its origin, its content as it would be over a link.
 */
export interface RelayedFrame {
  readonly origin: NodeId
  readonly target: NodeId
  /** When its origin signed it, in unix milliseconds. */
  readonly timestamp: number
  /** Of its origin, 64 bytes. */
  readonly signature: Uint8Array
  /** The nodes that relayed it, in order; at most 8. */
  readonly hops: readonly NodeId[]
  /** A whole frame of a channel (see encodeWhole); not decoded yet. */
  readonly content: Uint8Array
}

/** Values that a signature covers beside the frame. */
export interface RelayBinding {
  readonly mesh: MeshId
  /** The node that the origin hands it to: a copy that goes another way does not verify. */
  readonly firstHop: NodeId
  readonly hash: Hash
}

/** A frame as its origin hands it to `firstHop`, which is to relay it. */
export function signRelayed(
  frame: Pick<RelayedFrame, 'origin' | 'target' | 'timestamp' | 'content'>,
  binding: RelayBinding & { readonly sign: Sign }
): RelayedFrame {
  return { ...frame, hops: [], signature: binding.sign(signedBytes(frame, binding)) }
}

/** Did its origin sign the frame, for this mesh and first hop? Never throws. */
export function isSignedByOrigin(
  frame: RelayedFrame,
  { verify, ...binding }: RelayBinding & { readonly verify: Verify }
): boolean {
  try {
    return verify(signedBytes(frame, binding), frame.signature, keyFromText(frame.origin))
  } catch {
    return false
  }
}

/** The frame as the next node gets it from `by`. */
export function passedOn(frame: RelayedFrame, by: NodeId): RelayedFrame {
  return { ...frame, hops: [...frame.hops, by] }
}

/** Names one transmission: 26 characters of its signature. A frame that is sent again has another name. */
export function relayedId({ signature }: Pick<RelayedFrame, 'signature'>): string {
  return bytesToText(signature.subarray(0, ID_BYTES))
}

/** A relayed frame as bytes. */
export function encodeRelayed({ origin, target, timestamp, signature, hops, content }: RelayedFrame): Uint8Array {
  const headBytes = 2 * KEY_BYTES + 8 + SIGNATURE_BYTES + 1 + KEY_BYTES * hops.length
  const bytes = unwritten(headBytes + content.byteLength)
  const state = c.state(0, headBytes, bytes)
  for (const key of [origin, target]) c.fixed32.encode(state, keyFromText(key))
  c.uint64.encode(state, timestamp)
  c.fixed64.encode(state, signature)
  c.uint8.encode(state, hops.length)
  for (const hop of hops) c.fixed32.encode(state, keyFromText(hop))
  bytes.set(content, headBytes)
  return bytes
}

/**
 * The relayed frame that a neighbour sent, or null for bytes that are none. Never throws. Its content is not looked at.
 */
export function decodeRelayed(bytes: Uint8Array): RelayedFrame | null {
  try {
    const state = c.state(0, bytes.byteLength, bytes)
    const [origin, target] = [keyToText(c.fixed32.decode(state)), keyToText(c.fixed32.decode(state))]
    const timestamp = c.uint64.decode(state)
    const signature = c.fixed64.decode(state)
    const count = c.uint8.decode(state)
    if (count > ENVELOPE_LIMITS.maxHops || !Number.isSafeInteger(timestamp)) return null
    const hops = Array.from({ length: count }, () => keyToText(c.fixed32.decode(state)))
    return { origin, target, timestamp, signature, hops, content: bytes.subarray(state.start) }
  } catch {
    return null
  }
}

/** The label and a hash of mesh, first hop and everything of the frame but its hops. */
function signedBytes(
  { origin, target, timestamp, content }: Pick<RelayedFrame, 'origin' | 'target' | 'timestamp' | 'content'>,
  { mesh, firstHop, hash }: RelayBinding
): Uint8Array {
  const keys = [mesh, firstHop, origin, target].map(keyFromText)
  const digest = hash(...keys, c.encode(c.uint64, timestamp), hash(content))
  const message = new Uint8Array(LABEL.byteLength + digest.byteLength)
  message.set(LABEL)
  message.set(digest, LABEL.byteLength)
  return message
}
