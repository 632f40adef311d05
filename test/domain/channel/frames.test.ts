import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { agentIdSchema } from '../../../src/domain/card/schema.js'
import {
  encodeMessage,
  FRAME,
  FRESH_READER,
  MAX_FRAME_BYTES,
  readFrame,
  type ChannelMessage
} from '../../../src/domain/channel/frames.js'
import { CHUNK_BYTES, MAX_STREAMS } from '../../../src/domain/channel/chunks.js'
import { NodeError } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'

/** Reads frames one after another: all messages and faults, in order. */
function readAll(frames: Iterable<Uint8Array>): { messages: ChannelMessage[]; faults: string[]; held: number } {
  let state = FRESH_READER
  const messages: ChannelMessage[] = []
  const faults: string[] = []
  for (const frame of frames) {
    const step = readFrame(state, frame)
    state = step.state
    if (step.message !== null) messages.push(step.message)
    if (step.fault !== null) faults.push(step.fault)
  }
  return { messages, faults, held: state.streams.bytes }
}

function counter(): () => number {
  let last = 0
  return () => ++last
}

function chunk(streamId: number, options: { last?: boolean; size?: number } = {}): Uint8Array {
  const frame = new Uint8Array(3 + (options.size ?? CHUNK_BYTES)).fill(streamId)
  frame.set([FRAME.chunk, streamId, options.last === true ? 1 : 0])
  return frame
}

function envelopeOf(size: number, seed = 0): ChannelMessage {
  return { kind: 'envelope', bytes: Uint8Array.from({ length: size }, (_, i) => (i * 31 + seed) & 255) }
}

const arbId = fc.stringMatching(/^[!-~]{1,64}$/)
const arbSequence = fc.integer({ min: 1, max: 2 ** 52 })
const arbContent = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 300 }),
  fc.integer({ min: 1, max: 200_000 }).map((size) => new Uint8Array(size))
)

const arbReliable: fc.Arbitrary<ChannelMessage> = fc
  .record({
    source: fc.stringMatching(/^[a-z0-9._-]{1,64}$/).filter((id) => agentIdSchema.safeParse(id).success),
    target: fc.constantFrom('text', 'operator'),
    numbers: fc.tuple(arbSequence, arbSequence),
    messageId: arbId,
    requestId: fc.option(arbId),
    envelope: fc.option(arbContent)
  })
  .map(({ numbers: [a, b], ...rest }) => ({
    kind: 'reliable',
    frame: { ...rest, seq: Math.max(a, b), base: Math.min(a, b) }
  }))

const arbMessage: fc.Arbitrary<ChannelMessage> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('envelope' as const), bytes: fc.uint8Array({ maxLength: 300 }) })
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 5 }), fc.nat())
      .map(([parts, seed]) => envelopeOf(parts * 50_000, seed))
  },
  { weight: 1, arbitrary: arbContent.map((bytes): ChannelMessage => ({ kind: 'call', bytes })) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('ping' as const, 'pong' as const), nonce: fc.maxSafeNat() })
  },
  { weight: 3, arbitrary: arbReliable },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.string(), { maxLength: 5 })
      .map((requests): ChannelMessage => ({ kind: 'control', name: 'heartbeat', body: { requests } }))
  }
)

function plain(message: ChannelMessage): unknown {
  if (message.kind === 'reliable') {
    const { envelope } = message.frame
    return { ...message.frame, envelope: envelope === null ? null : Buffer.from(envelope).toString('base64') }
  }
  return message.kind === 'envelope' || message.kind === 'call'
    ? { kind: message.kind, bytes: Buffer.from(message.bytes).toString('base64') }
    : { ...message }
}

test('Feature: a2a-mcp-protocols, Property 11: Channel message ordering over frames', async (t) => {
  await holds(
    t,
    fc.property(fc.array(arbMessage, { maxLength: 12 }), (messages) => {
      const nextStreamId = counter()
      const read = readAll(messages.flatMap((message) => [...encodeMessage(message, nextStreamId)]))
      assert.deepEqual(read.messages.map(plain), messages.map(plain))
      assert.deepEqual([read.faults, read.held], [[], 0])
    }),
    100
  )
})

test('large messages whose chunks are mixed with each other and with small ones come whole', (t) => {
  const nextStreamId = counter()
  const large = [3, 2, 4].map((parts, seed) => envelopeOf(parts * CHUNK_BYTES - seed, seed))
  const streams = large.map((message) => [...encodeMessage(message, nextStreamId)])
  const ping = encodeMessage({ kind: 'ping', nonce: 7 }, nextStreamId)
  const mixed = [0, 1, 2, 3].flatMap((round) => [
    ...ping,
    ...streams.flatMap((frames) => frames.slice(round, round + 1))
  ])
  const { messages, faults } = readAll(mixed)
  t.alike(faults, [])
  t.is(messages.filter((one) => one.kind === 'ping').length, 4)
  const arrived = messages.filter((one) => one.kind === 'envelope').map((one) => plain(one))
  t.alike(
    arrived,
    [large[1], large[0], large[2]].map((one) => plain(one))
  )
})

test('an envelope of up to 64 KiB is one frame and asks for no stream id', (t) => {
  const never = (): number => {
    throw new Error('asked')
  }
  t.is(encodeMessage(envelopeOf(CHUNK_BYTES), never).count, 1)
  t.is(encodeMessage(envelopeOf(CHUNK_BYTES + 1), counter()).count, 2)
})

test('a waiting message takes its bytes once: its chunks are made when they are read, and their bytes are known before', (t) => {
  const frames = encodeMessage(envelopeOf(3 * CHUNK_BYTES - 5), counter())
  t.is(frames.single, null)
  const [first] = frames
  t.not([...frames][0], first, 'each reading makes them anew')
  t.is(
    frames.bytes,
    [...frames].reduce((sum, frame) => sum + frame.byteLength, 0)
  )
  t.is(frames.count, [...frames].length)
  const small = encodeMessage(envelopeOf(5), counter())
  t.alike([...small], [small.single])
  t.is(small.bytes, 6)
})

test('no frame is larger than its limit and none that is larger is read', (t) => {
  for (const frame of encodeMessage(envelopeOf(1_000_000), counter())) t.is(frame.byteLength <= MAX_FRAME_BYTES, true)
  t.is(readFrame(FRESH_READER, new Uint8Array(MAX_FRAME_BYTES + 1)).fault, 'a frame is too large')
  t.is(readFrame(FRESH_READER, new Uint8Array(CHUNK_BYTES + 2)).fault, 'an envelope frame is too large')
})

test('a message too large for a channel is refused before it is sent', async (t) => {
  await t.exception(() => encodeMessage(envelopeOf(16 * 1_048_576 + 1), counter()), NodeError)
  await t.exception(
    () => encodeMessage({ kind: 'control', name: 'found', body: { id: 'x', cards: ['y'.repeat(131_072)] } }, counter()),
    NodeError
  )
})

test('no frame makes the reader throw, and a fault leaves what was read before', async (t) => {
  const hostile = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc
      .tuple(fc.nat({ max: 5 }), fc.uint8Array({ maxLength: 40 }))
      .map(([kind, rest]) => Uint8Array.from([kind, ...rest])),
    fc
      .tuple(fc.nat({ max: 3 }), fc.boolean(), fc.nat({ max: 70_000 }))
      .map(([id, last, size]) => chunk(id, { last, size }))
  )
  await holds(
    t,
    fc.property(fc.array(hostile, { maxLength: 20 }), (frames) => {
      const { held } = readAll(frames)
      assert.ok(held <= 32 * 1_048_576)
    }),
    1000
  )
})

test('chunks that are small without being the last are refused, so that memory follows the bytes sent', (t) => {
  t.alike(readAll([chunk(1, { size: 10 })]), { messages: [], faults: ['a chunk of a wrong size'], held: 0 })
  t.alike(readAll([chunk(1, { size: 0, last: true })]).faults, ['a chunk of a wrong size'])
})

test('a peer may have eight large messages under way and no more', (t) => {
  const frames = Array.from({ length: MAX_STREAMS + 1 }, (_, id) => chunk(id))
  const { faults, held } = readAll(frames)
  t.alike(faults, ['too many messages in chunks at once'])
  t.is(held, MAX_STREAMS * CHUNK_BYTES)
})

test('a message in chunks of more than 16 MiB is dropped and its memory freed', (t) => {
  const { faults, held, messages } = readAll(Array.from({ length: 257 }, () => chunk(1)))
  t.alike(faults, ['a message in chunks is too large'])
  t.is(held, 0)
  t.is(messages.length, 0)
})

test('unfinished messages of more than 32 MiB in all are refused', (t) => {
  const frames = Array.from({ length: 3 * 200 }, (_, i) => chunk(i % 3))
  const { faults } = readAll(frames.slice(0, 513))
  t.alike(faults, ['too many bytes of unfinished messages'])
})

test('a control message of unknown name or with broken JSON is a fault', (t) => {
  const [known] = encodeMessage({ kind: 'control', name: 'cancel', body: { requestId: 'r1' } }, counter())
  t.alike(readFrame(FRESH_READER, known).message, { kind: 'control', name: 'cancel', body: { requestId: 'r1' } })
  t.is(
    readFrame(FRESH_READER, Buffer.from([FRAME.control, 3, 97, 98, 99, 123, 125])).fault,
    'a control message of unknown name'
  )
  t.is(readFrame(FRESH_READER, known.subarray(0, known.byteLength - 1)).fault, 'a control message: not JSON')
  const proto = Buffer.from([FRAME.control, 6, ...Buffer.from('cancel{"__proto__":1}')])
  t.is(readFrame(FRESH_READER, proto).fault, 'a control message: the key __proto__ is not allowed')
})
