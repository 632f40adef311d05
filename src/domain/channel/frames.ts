import c from 'compact-encoding'
import { unwritten } from '../../kit/bytes.js'
import { NodeError } from '../../kit/errors.js'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import { parseJson } from '../../kit/json.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'
import { decodeReliable, encodeReliable, MAX_HEAD_BYTES, type ReliableFrame } from '../reliable/frame.js'
import { CHUNK_BYTES, MAX_WHOLE_BYTES, takeChunk, type ChunkStreams } from './chunks.js'
import { isControlName, type ControlName } from './control.js'
import { decodeRelayed, encodeRelayed, type RelayedFrame } from './relayed.js'

/** A message of a channel. */
export type ChannelMessage =
  | {
      readonly kind: 'envelope'
      /** As encodeEnvelope gives it; on arrival not yet decoded. */
      readonly bytes: Uint8Array
    }
  | {
      /** A message of a lane: recorded by its sender, and sent until it is acknowledged. */
      readonly kind: 'reliable'
      readonly frame: ReliableFrame
    }
  | {
      /** A part of a call of the A2A protocol, as encodeCall gives it; on arrival not yet decoded. */
      readonly kind: 'call'
      readonly bytes: Uint8Array
    }
  | {
      /** A frame of another node, or for one, that the two ends of the link relay. */
      readonly kind: 'relayed'
      readonly frame: RelayedFrame
    }
  | { readonly kind: 'ping'; readonly nonce: number }
  | { readonly kind: 'pong'; readonly nonce: number }
  | {
      readonly kind: 'control'
      readonly name: ControlName
      /** JSON; on arrival not yet checked (see decodeControl). */
      readonly body: unknown
    }

/** First byte of a frame. */
export const FRAME = { envelope: 0, chunk: 1, ping: 2, pong: 3, control: 4, reliable: 5, call: 6, relayed: 7 } as const

/** Largest JSON body of a control frame in bytes. */
export const MAX_CONTROL_BYTES = 131_072
/** Longest name of a control message in bytes. */
const MAX_CONTROL_NAME = 32
/** Largest frame that a peer may send: a control frame with its name. */
export const MAX_FRAME_BYTES = MAX_CONTROL_BYTES + 64

/** Bits of a chunk's flags: it is the last one; its message is one of a lane, a part of a call, or relayed. */
const LAST = 1
const OF_LANE = 2
const OF_CALL = 4
const OF_RELAYED = 8
const FLAGS: ReadonlySet<number> = new Set([0, OF_LANE, OF_CALL, OF_RELAYED].flatMap((kind) => [kind, kind | LAST]))

/**
 * The frames of one message, in sending order. Chunks are made when they are read, so that a waiting message takes its
 * bytes once.
 */
export interface MessageFrames extends Iterable<Uint8Array> {
  readonly count: number
  /** Bytes of all frames. */
  readonly bytes: number
  /** The frame; null when there are several. */
  readonly single: Uint8Array | null
}

/**
 * A message as frames. An envelope (or part of a call) over 64 KiB becomes chunks under a fresh stream id of
 * `nextStreamId`. Frames of other messages may be sent in between.
 * @throws NodeError PAYLOAD_TOO_LARGE over 16 MiB of envelope or 128 KiB of control body
 */
export function encodeMessage(message: ChannelMessage, nextStreamId: () => number): MessageFrames {
  switch (message.kind) {
    case 'envelope':
      return large(FRAME.envelope, message.bytes, nextStreamId)
    case 'reliable':
      return large(FRAME.reliable, encodeReliable(message.frame), nextStreamId)
    case 'call':
      return large(FRAME.call, message.bytes, nextStreamId)
    case 'relayed':
      return large(FRAME.relayed, encodeRelayed(message.frame), nextStreamId)
    case 'ping':
      return new SingleFrame(numbered(FRAME.ping, message.nonce))
    case 'pong':
      return new SingleFrame(numbered(FRAME.pong, message.nonce))
    case 'control':
      return new SingleFrame(control(message.name, message.body))
  }
}

/** A message that may be relayed: its meaning depends on its origin, not on the neighbour that delivers it. */
export type RelayableMessage = Extract<ChannelMessage, { readonly kind: 'envelope' | 'reliable' | 'control' }>

/** The encoded envelope within a message; null for control messages, and for a number of a lane that was given up. */
export function envelopeOf(message: RelayableMessage): Uint8Array | null {
  if (message.kind === 'control') return null
  return message.kind === 'envelope' ? message.bytes : message.frame.envelope
}

/**
 * A message as one frame, however large: the content of a relayed frame.
 * @throws NodeError PAYLOAD_TOO_LARGE as {@link encodeMessage}
 */
export function encodeWhole(message: RelayableMessage): Uint8Array {
  if (message.kind === 'control') return control(message.name, message.body)
  const [kind, bytes] =
    message.kind === 'envelope' ? ([FRAME.envelope, message.bytes] as const) : laneBytes(message.frame)
  checkSize(kind, bytes)
  return prefixed(kind, bytes)
}

function laneBytes(frame: ReliableFrame): readonly [typeof FRAME.reliable, Uint8Array] {
  return [FRAME.reliable, encodeReliable(frame)]
}

/** Decodes the bytes of {@link encodeWhole}; a text gives the fault. Never throws. */
export function decodeWhole(content: Uint8Array): RelayableMessage | string {
  const [kind] = content
  if (kind === FRAME.envelope) return { kind: 'envelope', bytes: content.subarray(1) }
  try {
    const { message, fault: reason } =
      kind === FRAME.reliable
        ? readReliable(FRESH_READER, content.subarray(1))
        : kind === FRAME.control
          ? readControl(FRESH_READER, content)
          : fault(FRESH_READER, 'a frame that is not relayed')
    return message?.kind === 'reliable' || message?.kind === 'control'
      ? message
      : (reason ?? 'a frame that is not relayed')
  } catch {
    return 'a relayed frame is cut short'
  }
}

function prefixed(kind: number, bytes: Uint8Array): Uint8Array {
  const frame = unwritten(1 + bytes.byteLength)
  frame[0] = kind
  frame.set(bytes, 1)
  return frame
}

function numbered(kind: number, value: number): Uint8Array {
  return prefixed(kind, c.encode(c.uint, value))
}

const CHUNK_FLAGS = {
  [FRAME.envelope]: 0,
  [FRAME.reliable]: OF_LANE,
  [FRAME.call]: OF_CALL,
  [FRAME.relayed]: OF_RELAYED
} as const

/** Bytes at most of a whole message by its kind. */
const MAX_BYTES = {
  [FRAME.envelope]: ENVELOPE_LIMITS.maxBytes,
  [FRAME.call]: ENVELOPE_LIMITS.maxBytes,
  [FRAME.reliable]: ENVELOPE_LIMITS.maxBytes + MAX_HEAD_BYTES,
  [FRAME.relayed]: MAX_WHOLE_BYTES
} as const

function checkSize(kind: keyof typeof MAX_BYTES, bytes: Uint8Array): void {
  if (bytes.byteLength > MAX_BYTES[kind])
    throw new NodeError('PAYLOAD_TOO_LARGE', `the message is larger than ${ENVELOPE_LIMITS.maxBytes} bytes`)
}

/** One frame, or chunks when the bytes exceed one. */
function large(kind: keyof typeof CHUNK_FLAGS, bytes: Uint8Array, nextStreamId: () => number): MessageFrames {
  if (bytes.byteLength <= CHUNK_BYTES) return new SingleFrame(prefixed(kind, bytes))
  checkSize(kind, bytes)
  return new Chunks(bytes, c.encode(c.uint, nextStreamId()), CHUNK_FLAGS[kind])
}

class SingleFrame implements MessageFrames {
  readonly count = 1
  readonly single: Uint8Array

  constructor(frame: Uint8Array) {
    this.single = frame
  }

  get bytes(): number {
    return this.single.byteLength
  }

  *[Symbol.iterator](): Iterator<Uint8Array> {
    yield this.single
  }
}

class Chunks implements MessageFrames {
  readonly count: number
  readonly bytes: number
  readonly single = null
  readonly #whole: Uint8Array
  readonly #streamId: Uint8Array
  readonly #flags: number

  constructor(bytes: Uint8Array, streamId: Uint8Array, flags: number) {
    this.#whole = bytes
    this.#streamId = streamId
    this.#flags = flags
    this.count = Math.ceil(bytes.byteLength / CHUNK_BYTES)
    this.bytes = bytes.byteLength + this.count * (2 + streamId.byteLength)
  }

  *[Symbol.iterator](): Iterator<Uint8Array> {
    for (let at = 0; at < this.#whole.byteLength; at += CHUNK_BYTES) yield this.#chunk(at)
  }

  #chunk(at: number): Uint8Array {
    const head = 2 + this.#streamId.byteLength
    const part = this.#whole.subarray(at, at + CHUNK_BYTES)
    const frame = unwritten(head + part.byteLength)
    frame[0] = FRAME.chunk
    frame.set(this.#streamId, 1)
    frame[head - 1] = at + CHUNK_BYTES >= this.#whole.byteLength ? this.#flags | LAST : this.#flags
    frame.set(part, head)
    return frame
  }
}

function control(name: ControlName, body: unknown): Uint8Array {
  const json = utf8(JSON.stringify(body))
  if (json.byteLength > MAX_CONTROL_BYTES) {
    throw new NodeError('PAYLOAD_TOO_LARGE', `a control message of more than ${MAX_CONTROL_BYTES} bytes (${name})`)
  }
  const head = c.encode(c.utf8, name)
  const frame = unwritten(1 + head.byteLength + json.byteLength)
  frame[0] = FRAME.control
  frame.set(head, 1)
  frame.set(json, 1 + head.byteLength)
  return frame
}

/** Reader state of one channel: the incomplete large messages. */
export interface FrameReader {
  readonly streams: ChunkStreams
}

/** A reader at the start of a channel. */
export const FRESH_READER: FrameReader = { streams: { open: new Map(), bytes: 0 } }

/** Result of one frame: the next state, a message when one is complete, a fault when the peer broke the protocol. */
export interface FrameReading {
  readonly state: FrameReader
  readonly message: ChannelMessage | null
  /** In words of this node, without the peer's bytes. After a fault the stream of messages has a hole: cut the link. */
  readonly fault: string | null
}

/**
 * Reads a frame that a peer sent. Pure and total: bad bytes are a fault, and memory is bounded (32 MiB, 8 messages).
 */
export function readFrame(state: FrameReader, frame: Uint8Array): FrameReading {
  if (frame.byteLength > MAX_FRAME_BYTES) return fault(state, 'a frame is too large')
  try {
    return read(state, frame)
  } catch {
    return fault(state, 'a frame is cut short')
  }
}

function read(state: FrameReader, frame: Uint8Array): FrameReading {
  const cursor = c.state(0, frame.byteLength, frame)
  const kind = c.uint8.decode(cursor)
  switch (kind) {
    case FRAME.envelope:
      if (frame.byteLength > 1 + CHUNK_BYTES) return fault(state, 'an envelope frame is too large')
      return whole(state, { kind: 'envelope', bytes: frame.subarray(1) })
    case FRAME.reliable:
      if (frame.byteLength > 1 + CHUNK_BYTES) return fault(state, 'a frame of a lane is too large')
      return readReliable(state, frame.subarray(1))
    case FRAME.call:
      if (frame.byteLength > 1 + CHUNK_BYTES) return fault(state, 'a frame of a call is too large')
      return whole(state, { kind: 'call', bytes: frame.subarray(1) })
    case FRAME.relayed:
      if (frame.byteLength > 1 + CHUNK_BYTES) return fault(state, 'a relayed frame is too large')
      return readRelayed(state, frame.subarray(1))
    case FRAME.chunk:
      return readChunk(state, cursor, frame)
    case FRAME.ping:
    case FRAME.pong: {
      const nonce = c.uint.decode(cursor)
      if (cursor.start !== frame.byteLength) return fault(state, 'a frame is too long')
      return whole(state, { kind: kind === FRAME.ping ? 'ping' : 'pong', nonce })
    }
    case FRAME.control:
      return readControl(state, frame)
    default:
      return fault(state, 'a frame of unknown kind')
  }
}

function readChunk(state: FrameReader, cursor: ReturnType<typeof c.state>, frame: Uint8Array): FrameReading {
  const streamId = c.uint.decode(cursor)
  const flags = c.uint8.decode(cursor)
  if (!FLAGS.has(flags)) return fault(state, 'a chunk with unknown flags')
  const taken = takeChunk(state.streams, {
    streamId,
    isLast: (flags & LAST) !== 0,
    bytes: frame.subarray(cursor.start)
  })
  if (!taken.ok) return fault({ streams: taken.streams }, taken.reason)
  const next = { streams: taken.streams }
  if (taken.whole === null) return { state: next, message: null, fault: null }
  // The last chunk gives the kind of the whole.
  if ((flags & OF_LANE) !== 0) return readReliable(next, taken.whole)
  if ((flags & OF_RELAYED) !== 0) return readRelayed(next, taken.whole)
  if (taken.whole.byteLength > ENVELOPE_LIMITS.maxBytes) return fault(next, 'a message in chunks is too large')
  return whole(next, { kind: (flags & OF_CALL) !== 0 ? 'call' : 'envelope', bytes: taken.whole })
}

function readReliable(state: FrameReader, bytes: Uint8Array): FrameReading {
  const frame = decodeReliable(bytes)
  return frame === null ? fault(state, 'a message of a lane is malformed') : whole(state, { kind: 'reliable', frame })
}

function readRelayed(state: FrameReader, bytes: Uint8Array): FrameReading {
  const frame = decodeRelayed(bytes)
  return frame === null ? fault(state, 'a relayed frame is malformed') : whole(state, { kind: 'relayed', frame })
}

function readControl(state: FrameReader, frame: Uint8Array): FrameReading {
  const head = c.state(1, Math.min(frame.byteLength, 2 + MAX_CONTROL_NAME), frame)
  const name = c.utf8.decode(head)
  if (!isControlName(name)) return fault(state, 'a control message of unknown name')
  if (frame.byteLength - head.start > MAX_CONTROL_BYTES) return fault(state, 'a control message is too large')
  const body = parseJson(fromUtf8(frame.subarray(head.start)))
  return body.ok
    ? whole(state, { kind: 'control', name, body: body.value })
    : fault(state, `a control message: ${body.reason}`)
}

function whole(state: FrameReader, message: ChannelMessage): FrameReading {
  return { state, message, fault: null }
}

function fault(state: FrameReader, reason: string): FrameReading {
  return { state, message: null, fault: reason }
}
