import { ENVELOPE_LIMITS } from '../envelope/limits.js'
import { MAX_HEAD_BYTES } from '../reliable/frame.js'
import { MAX_RELAY_HEAD_BYTES } from './relayed.js'

/** Size of every chunk but the last, in bytes; longer envelopes are cut here. */
export const CHUNK_BYTES = 65_536
/** Bytes of a chunked message: an envelope, the head of its lane, and the head of a relayed frame with its kind. */
export const MAX_WHOLE_BYTES = ENVELOPE_LIMITS.maxBytes + MAX_HEAD_BYTES + MAX_RELAY_HEAD_BYTES + 1
/** Bytes of unfinished messages that one peer may leave with this node. */
export const MAX_PARTIAL_BYTES = 2 * ENVELOPE_LIMITS.maxBytes
/** Messages that one peer may have under way at once. */
export const MAX_STREAMS = 8

/** The chunks of one message so far: a list from the newest back, so that adding one shares the rest. */
interface Partial {
  readonly bytes: number
  readonly last: ChunkLink
}

interface ChunkLink {
  readonly bytes: Uint8Array
  readonly before: ChunkLink | null
}

/** Messages that are still arriving, by stream id. */
export interface ChunkStreams {
  readonly open: ReadonlyMap<number, Partial>
  /** Bytes held in all. */
  readonly bytes: number
}

/** One chunk as its frame gives it. */
export interface Chunk {
  readonly streamId: number
  readonly isLast: boolean
  readonly bytes: Uint8Array
}

/** Result of taking a chunk; a refusal drops its message. */
export type ChunkTaking =
  | { readonly ok: true; readonly streams: ChunkStreams; readonly whole: Uint8Array | null }
  | { readonly ok: false; readonly streams: ChunkStreams; readonly reason: string }

/** Adds a chunk to its message; gives the message with its last chunk. Pure and bounded. */
export function takeChunk(streams: ChunkStreams, chunk: Chunk): ChunkTaking {
  const known = streams.open.get(chunk.streamId)
  const size = (known?.bytes ?? 0) + chunk.bytes.byteLength
  const reason = chunkFault(streams, chunk, size)
  if (reason !== null) return { ok: false, streams: without(streams, chunk.streamId), reason }
  const last: ChunkLink = { bytes: chunk.bytes, before: known?.last ?? null }
  if (chunk.isLast) return { ok: true, streams: without(streams, chunk.streamId), whole: joined(last, size) }
  const open = new Map(streams.open).set(chunk.streamId, { bytes: size, last })
  return { ok: true, streams: { open, bytes: streams.bytes + chunk.bytes.byteLength }, whole: null }
}

function chunkFault(streams: ChunkStreams, chunk: Chunk, size: number): string | null {
  const { byteLength } = chunk.bytes
  // Small chunks would let a peer make this node hold far more than the bytes it sent.
  if (chunk.isLast ? byteLength === 0 || byteLength > CHUNK_BYTES : byteLength !== CHUNK_BYTES)
    return 'a chunk of a wrong size'
  if (size > MAX_WHOLE_BYTES) return 'a message in chunks is too large'
  if (chunk.isLast) return null
  if (!streams.open.has(chunk.streamId) && streams.open.size >= MAX_STREAMS)
    return 'too many messages in chunks at once'
  return streams.bytes + byteLength > MAX_PARTIAL_BYTES ? 'too many bytes of unfinished messages' : null
}

function without(streams: ChunkStreams, streamId: number): ChunkStreams {
  const known = streams.open.get(streamId)
  if (known === undefined) return streams
  const open = new Map(streams.open)
  open.delete(streamId)
  return { open, bytes: streams.bytes - known.bytes }
}

function joined(last: ChunkLink, size: number): Uint8Array {
  const whole = new Uint8Array(size)
  let end = size
  for (let link: ChunkLink | null = last; link !== null; link = link.before) {
    end -= link.bytes.byteLength
    whole.set(link.bytes, end)
  }
  return whole
}
