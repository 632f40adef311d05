import fc from 'fast-check'
import { decodeProto, ProtoFault } from '../../src/adapters/a2a/grpc/proto-reader.js'
import { encodeProto } from '../../src/adapters/a2a/grpc/proto-writer.js'
import { OpenChannels } from '../../src/adapters/mesh/links/open-channels.js'
import { decodeGateMessage, encodeGateMessage } from '../../src/adapters/mesh/links/hello.js'
import { checkSignedCard } from '../../src/domain/card/schema.js'
import { decodeCall, encodeCall } from '../../src/domain/channel/call.js'
import { decodeControl } from '../../src/domain/channel/control.js'
import { encodeMessage, FRESH_READER, type FrameReader, readFrame } from '../../src/domain/channel/frames.js'
import { decodeEnvelope, encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION, type A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import { decodeWhole, encodeWhole } from '../../src/domain/channel/frames.js'
import { decodeRelayed, encodeRelayed, isSignedByOrigin, signRelayed } from '../../src/domain/channel/relayed.js'
import { envelopeFromJson, envelopeToJson } from '../../src/domain/envelope/schema.js'
import {
  decodeEntry,
  decodeJoinData,
  decodeMeshInfo,
  encodeEntry,
  encodeJoinData,
  encodeMeshInfo
} from '../../src/domain/membership/codec.js'
import { decodeInviteCode, encodeInviteCode } from '../../src/domain/membership/invites/invite-code.js'
import { fold, reads } from '../../src/domain/membership/fold/fold.js'
import { decodeCoordination } from '../../src/domain/swarm/coordination-message.js'
import { TaskProposalPayloadSchema } from '../../src/domain/task/negotiation.js'
import {
  offerAcceptSchema,
  progressPayloadSchema,
  requestPayloadSchema,
  responsePayloadSchema
} from '../../src/domain/task/payloads.js'
import { fromUtf8, utf8 } from '../../src/kit/ids.js'
import { parseJson } from '../../src/kit/json.js'
import {
  ACCESS,
  actor,
  cardBody,
  certificate,
  founded,
  hash,
  inviteTerms,
  joinRequest,
  MESH,
  SETTINGS,
  signedCard,
  verify
} from './membership.js'

/** A reader of bytes that come from peers. */
export interface FuzzTarget {
  readonly name: string
  /** Valid inputs: mutations begin with them. */
  readonly samples: readonly Uint8Array[]
  /**
   * Reads the bytes; true when they were taken for valid. Throws when the reader does, or when what it promises is
   * broken.
   */
  take(bytes: Uint8Array): boolean
}

const [ann, bob] = [actor('ann'), actor('bob')]
const json = (value: unknown): Uint8Array => utf8(JSON.stringify(value))
const card = cardBody('text', {
  capabilities: [{ id: 'text.stats', name: 'stats', description: '', inputSchema: {}, outputSchema: {} }]
})
const chain = [certificate({ issuer: actor('owner'), node: ann })]
const envelope: A2AEnvelope = {
  id: 'msg_1',
  schemaVersion: SCHEMA_VERSION,
  sender: `text@${ann.id}`,
  recipient: `text@${bob.id}`,
  correlationId: 'thread_1',
  type: 'request',
  timestamp: 1_700_000_000_000,
  payload: {
    requestId: 'req_1',
    attempt: 1,
    capability: 'text.stats',
    input: { text: 'words', bytes: new Uint8Array([1, 2, 3]) }
  },
  metadata: { tier: 1, sandboxId: 'ci', justification: 'a reason', hops: [bob.id] }
}

const PAYLOADS = {
  request: requestPayloadSchema,
  response: responsePayloadSchema,
  progress: progressPayloadSchema,
  proposal: TaskProposalPayloadSchema,
  accept: offerAcceptSchema
} as const

/** Reads JSON as a peer's is read, then hands it on. */
function withJson(bytes: Uint8Array, read: (value: unknown) => boolean): boolean {
  const parsed = parseJson(fromUtf8(bytes))
  return parsed.ok && read(parsed.value)
}

function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(`broken: ${what}`)
}

function calls(): FuzzTarget {
  const body = json({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'task_1' } })
  const samples: Uint8Array[] = [
    encodeCall({ type: 'request', id: 1, path: '/agents/text', parameters: { 'a2a-version': '1.0' }, body }),
    encodeCall({ type: 'answer', id: 1, body }),
    encodeCall({ type: 'item', id: 2, generation: 7, body }),
    encodeCall({ type: 'end', id: 2, how: 'cut' }),
    encodeCall({ type: 'credit', id: 2, bytes: 300_000 }),
    encodeCall({ type: 'hangup', id: 2 })
  ]
  const take = (bytes: Uint8Array): boolean => {
    const part = decodeCall(bytes)
    if (part === null) return false
    const again = decodeCall(encodeCall(part))
    demand(again !== null && again.type === part.type && again.id === part.id, 'a decoded value survives a round trip')
    return true
  }
  return { name: 'parts of a call', samples, take }
}

function grpcRequests(): FuzzTarget {
  const parts = [{ text: 'a' }, { data: { list: [1, null, { deep: true }] }, metadata: { a: 1 } }, { raw: 'AAEC' }]
  const message = { messageId: 'm1', role: 'ROLE_USER', parts, extensions: ['urn:x'] }
  const samples = [
    encodeProto('SendMessageRequest', { tenant: 'text', message, configuration: { historyLength: 3 } }),
    encodeProto('SendMessageRequest', { message: { ...message, parts: [] }, metadata: { skillId: 'text.stats' } })
  ]
  const take = (bytes: Uint8Array): boolean => {
    try {
      const value = decodeProto('SendMessageRequest', Buffer.from(bytes))
      const again = decodeProto('SendMessageRequest', encodeProto('SendMessageRequest', value))
      demand(Object.keys(again).length <= Object.keys(value).length, 'a decoded value has no more after a round trip')
      return true
    } catch (error) {
      if (error instanceof ProtoFault) return false
      throw error
    }
  }
  return { name: 'requests over gRPC', samples, take }
}

function frames(): FuzzTarget {
  let state: FrameReader = FRESH_READER
  const ofLane = { source: 'text', target: 'text', seq: 7, base: 5, messageId: 'msg_1', requestId: 'req_1' }
  const samples = [
    ...encodeMessage({ kind: 'envelope', bytes: encodeEnvelope(envelope) }, () => 1),
    ...encodeMessage({ kind: 'envelope', bytes: new Uint8Array(70_000) }, () => 7),
    ...encodeMessage({ kind: 'call', bytes: new Uint8Array(70_000) }, () => 8),
    ...encodeMessage({ kind: 'ping', nonce: 12 }, () => 1),
    ...encodeMessage({ kind: 'reliable', frame: { ...ofLane, envelope: encodeEnvelope(envelope) } }, () => 1),
    ...encodeMessage({ kind: 'reliable', frame: { ...ofLane, envelope: new Uint8Array(70_000) } }, () => 9),
    ...encodeMessage({ kind: 'reliable', frame: { ...ofLane, envelope: null } }, () => 1),
    ...encodeMessage({ kind: 'control', name: 'cancel', body: { requestId: 'req_1#1' } }, () => 1)
  ]
  const take = (bytes: Uint8Array): boolean => {
    const step = readFrame(state, bytes)
    // A fault ends the link; another begins.
    state = step.fault === null ? step.state : FRESH_READER
    demand(state.streams.bytes <= 32 * 1024 * 1024 && state.streams.open.size <= 8, 'memory of a reader is bounded')
    return step.fault === null
  }
  return { name: 'frames of a channel', samples, take }
}

function multiplexed(): FuzzTarget {
  let channels = new OpenChannels()
  const open = [0, 1, 1, 12, ...utf8('a2a-node/a2a'), 0]
  const samples = [
    Uint8Array.from(open),
    Uint8Array.from([0, 0, 0, open.length, ...open]),
    Uint8Array.from([0, 3, 1]),
    Uint8Array.of(1, 8, 0, 1, 1)
  ]
  const take = (bytes: Uint8Array): boolean => {
    const isGood = channels.read(bytes) === null
    if (!isGood) channels = new OpenChannels()
    return isGood
  }
  return { name: 'frames of the multiplexer', samples, take }
}

function envelopes(): FuzzTarget {
  const large = encodeEnvelope({ ...envelope, payload: Array(600_000).fill(1) }, () => 2_000_000)
  const samples = [envelope, { ...envelope, payload: undefined }, { ...envelope, payload: new Uint8Array(40) }]
    .map((one) => encodeEnvelope(one))
    .concat([large.subarray(0, 300)])
  const take = (bytes: Uint8Array): boolean => {
    const decoded = decodeEnvelope(bytes)
    return decoded.ok && decoded.payload(1_048_576).ok
  }
  return { name: 'envelopes', samples, take }
}

/** Only what Ann signed is hers, and it is what she signed. */
function relayedFrames(): FuzzTarget {
  const binding = { mesh: MESH, firstHop: bob.id, hash }
  const content = encodeWhole({ kind: 'envelope', bytes: encodeEnvelope(envelope) })
  const signed = signRelayed(
    { origin: ann.id, target: actor('cay').id, timestamp: 1, content },
    { ...binding, sign: ann.sign }
  )
  const original = encodeRelayed(signed)
  const take = (bytes: Uint8Array): boolean => {
    const read = decodeRelayed(bytes)
    if (read === null) return false
    const isHers = isSignedByOrigin(read, { ...binding, verify })
    if (isHers) demand(Buffer.compare(encodeRelayed({ ...read, hops: [] }), original) === 0, 'it is as it was signed')
    return isHers && typeof decodeWhole(read.content) !== 'string'
  }
  return { name: 'relayed frames', samples: [original, encodeRelayed({ ...signed, hops: [bob.id] })], take }
}

function envelopesOfJson(): FuzzTarget {
  const take = (bytes: Uint8Array): boolean => withJson(bytes, (value) => envelopeFromJson(JSON.stringify(value)).ok)
  return { name: 'envelopes as JSON', samples: [utf8(envelopeToJson({ ...envelope, payload: { a: 1 } }))], take }
}

function gateMessages(): FuzzTarget {
  const samples = [
    { type: 'hello', version: 1, maxFrameBytes: 1_048_576, software: 'a2a-node', proof: 'ab' },
    { type: 'credentials', chain, grant: null },
    { type: 'passed' },
    { type: 'refused', code: 'REVOKED', reason: 'why' }
  ] as const
  return {
    name: 'messages of the gate',
    samples: samples.map(encodeGateMessage),
    take: (bytes) => decodeGateMessage(bytes) !== null
  }
}

function controls(): FuzzTarget {
  const bodies = [
    ['cards', { cards: [signedCard(ann, card)], all: ['text'] }],
    ['cards-removed', { agents: [{ id: 'text', revision: 2 }] }],
    ['heartbeat', { requests: ['req_1#1'], waiting: [] }],
    ['greet', { lanes: [{ source: 'text', target: 'text', base: 5 }] }],
    ['ack', { lanes: [{ source: 'text', target: 'text', ack: 4, messageId: 'msg_1' }] }],
    ['lookup', { id: 'look_1', agentId: 'text', capability: null }],
    ['found', { id: 'look_1', cards: [] }],
    ['way', { id: 'way_1', to: bob.id, isFurther: true }],
    ['way-found', { id: 'way_1', further: 0 }],
    ['linked', { id: 'link_1' }],
    ['presence', { document: bob.id, message: { sourceAgentId: 'operator', payload: 'AA==' } }],
    ['linked-to', { id: 'link_1', nodes: [bob.id] }],
    ['undelivered', { origin: ann.id, to: bob.id, id: 'msg_1', code: 'OVERLOADED', rule: 'hops: a rate', left: 7 }]
  ]
  const read = (value: unknown): boolean =>
    Array.isArray(value) && typeof value[0] === 'string' && decodeControl(value[0], value[1]).ok
  return { name: 'control messages', samples: bodies.map(json), take: (bytes) => withJson(bytes, read) }
}

function coordination(): FuzzTarget {
  const about = { swarm: 'swarm_1', run: 'run_1', round: 7 }
  const samples = [
    { ...about, kind: 'ask', epoch: 2 },
    { ...about, kind: 'refused', epoch: 3 },
    { ...about, kind: 'record', epoch: 2, items: [{ index: 4, digest: 'x' }] },
    { ...about, kind: 'read', from: 500 },
    {
      ...about,
      kind: 'held',
      epoch: 2,
      candidate: ann.id,
      from: 0,
      items: [{ index: 4, epoch: 1, digest: 'x' }],
      next: 5
    }
  ]
  return {
    name: 'messages about who coordinates',
    samples: samples.map(json),
    take: (bytes) => withJson(bytes, (body) => decodeCoordination(body).ok)
  }
}

function logEntries(): FuzzTarget {
  const log = founded()
  log.join(actor('owner'), ann, { admin: true })
  log.card(ann, card)
  log.invite(ann, inviteTerms('more', { uses: 3 }))
  log.write(actor('owner'), { kind: 'settings', mesh: MESH, settings: SETTINGS, serial: 1, at: 1000 })
  log.write(ann, { kind: 'document', mesh: MESH, name: 'notes', access: null, at: 1000 })
  log.write(ann, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: bob.coreKey })
  log.write(ann, { kind: 'document-access', mesh: MESH, name: 'notes', access: ACCESS, lengths: { [bob.coreKey]: 4 } })
  log.write(ann, { kind: 'document', mesh: MESH, name: 'gone', access: null, at: 1000 })
  log.write(ann, { kind: 'document-removed', mesh: MESH, name: 'gone', at: 2000 })
  const before = log.state()
  const originals = new Set(log.entries.map(({ entry }) => fromUtf8(encodeEntry(entry))))
  const take = (bytes: Uint8Array): boolean => {
    const decoded = decodeEntry(bytes)
    if (!decoded.ok) return false
    const records = new Map(
      reads(decoded.entry).flatMap((key) => (log.records.has(key) ? [[key, log.records.get(key)] as const] : []))
    )
    const { puts } = fold(records, decoded.entry, { verify, isBootstrapRelay: false, meshId: MESH })
    demand(puts.size === 0 || originals.has(fromUtf8(encodeEntry(decoded.entry))), 'a changed entry counts for nothing')
    demand(log.state() === before, 'folding changes nothing by itself')
    return true
  }
  return { name: 'log entries', samples: log.entries.map(({ entry }) => encodeEntry(entry)), take }
}

function pairing(): FuzzTarget[] {
  const request = joinRequest(bob, inviteTerms('a').id)
  const info = encodeMeshInfo({ v: 1, owner: ann.id, name: 'home', mesh: MESH })
  const place = { network: 'private', bootstrap: ['127.0.0.1:49737'], localPort: null, trust: 'guest' } as const
  const long = { kind: 'long', ...place, root: new Uint8Array(16), invite: new Uint8Array(32) } as const
  const short = { kind: 'short', ...place, root: new Uint8Array(12), secret: new Uint8Array(14) } as const
  return [
    { name: 'join requests', samples: [encodeJoinData({ v: 1, request })], take: (bytes) => decodeJoinData(bytes).ok },
    { name: 'what an invite tells of its mesh', samples: [info], take: (bytes) => decodeMeshInfo(bytes).ok },
    {
      name: 'invite codes',
      samples: [long, short].map((code) => utf8(encodeInviteCode(code, hash))),
      take: (bytes) => decodeInviteCode(fromUtf8(bytes), hash).ok
    }
  ]
}

function cards(): FuzzTarget {
  const trust = { certificate: certificate({ issuer: actor('owner'), node: ann }).body, verify }
  const original = JSON.stringify(signedCard(ann, card).body)
  const read = (value: unknown): boolean => {
    const checked = checkSignedCard(value, trust)
    if (checked.ok) demand(JSON.stringify(checked.card) === original, 'only what its node signed is taken')
    return checked.ok
  }
  return { name: 'signed cards', samples: [json(signedCard(ann, card))], take: (bytes) => withJson(bytes, read) }
}

function payloads(): FuzzTarget {
  const samples = [
    envelope.payload,
    { requestId: 'req_1', attempt: 1, outcome: 'FAILED', error: { code: 'TIMEOUT', message: 'late' } },
    { requestId: 'req_1', attempt: 1, progress: { done: 1 } },
    { requestId: 'req_1', attempt: 1, waitingFor: 'approval' },
    { taskDescription: 'a', requiredCapabilities: ['text.stats'], estimatedComplexity: 'simple', deadlineMs: 1000 },
    { acceptedBy: 'text', estimatedCompletionMs: 10, slots: 2 }
  ]
  const read = (value: unknown): boolean =>
    Object.values(PAYLOADS).filter((schema) => schema.safeParse(value).success).length > 0
  return { name: 'payloads', samples: samples.map(json), take: (bytes) => withJson(bytes, read) }
}

/** Every reader of bytes that peers send. Each call starts anew. */
export function fuzzTargets(): readonly FuzzTarget[] {
  return [
    frames(),
    calls(),
    grpcRequests(),
    multiplexed(),
    envelopes(),
    relayedFrames(),
    envelopesOfJson(),
    gateMessages(),
    controls(),
    coordination(),
    logEntries(),
    ...pairing(),
    cards(),
    payloads()
  ]
}

const arbByte = fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xfc, 0xfd, 0xfe, 0xff), fc.integer({ min: 0, max: 255 }))
const arbRaw = fc.uint8Array({ maxLength: 300 })
/** Cuts `drop` bytes at a place and puts others there; several one after the other. */
const arbEdits = fc.array(
  fc.record({
    at: fc.nat(100_000),
    drop: fc.constantFrom(0, 0, 1, 1, 2, 8, 64, 5000),
    bytes: fc.array(arbByte, { maxLength: 9 })
  }),
  { minLength: 1, maxLength: 4 }
)
const DEEP = '['.repeat(60) + ']'.repeat(60)
/** Text that takes the place of a value in JSON. */
const arbValue = fc.oneof(
  fc.constantFrom(
    'null',
    '-1',
    '1e400',
    '9007199254740993',
    '""',
    '{}',
    '[]',
    'true',
    DEEP,
    '{"__proto__":{"a":1}}',
    '{"constructor":1}'
  ),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => JSON.stringify(text)),
  fc.json({ maxDepth: 2 }),
  fc.nat(3000).map((length) => JSON.stringify('x'.repeat(length)))
)
const VALUE = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\{\}|\[\]/g

function edited(
  sample: Uint8Array,
  edits: readonly { at: number; drop: number; bytes: readonly number[] }[]
): Uint8Array {
  let bytes = sample
  for (const edit of edits) {
    const at = edit.at % (bytes.byteLength + 1)
    bytes = Uint8Array.from([
      ...bytes.subarray(0, at),
      ...edit.bytes,
      ...bytes.subarray(Math.min(bytes.byteLength, at + edit.drop))
    ])
  }
  return bytes
}

/** Puts `value` in the place of one value (or key) of the JSON. */
function replaced(sample: Uint8Array, which: number, value: string): Uint8Array {
  const text = fromUtf8(sample)
  const places = [...text.matchAll(VALUE)]
  const place = places[which % Math.max(1, places.length)]
  if (place === undefined) return sample
  return utf8(text.slice(0, place.index) + value + text.slice(place.index + place[0].length))
}

/**
 * Bytes as a hostile peer may send them: raw, valid ones with edits, valid JSON with other values in it, two joined.
 */
export function hostileBytes(samples: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const small = samples.filter(({ byteLength }) => byteLength <= 8192)
  const arbSample = fc.constantFrom(...samples)
  const arbSmall = fc.constantFrom(...(small.length === 0 ? samples : small))
  return fc.oneof(
    { weight: 2, arbitrary: arbRaw },
    { weight: 4, arbitrary: fc.tuple(arbSmall, arbEdits).map(([sample, edits]) => edited(sample, edits)) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(arbSmall, fc.nat(500), arbValue)
        .map(([sample, which, value]) => replaced(sample, which, value))
    },
    { weight: 1, arbitrary: fc.tuple(arbSmall, arbSmall).map(([a, b]) => Uint8Array.from([...a, ...b])) },
    { weight: 1, arbitrary: arbSample }
  )
}

/** What fuzzing a reader gave. */
export interface FuzzCount {
  /** Inputs that were tried. */
  readonly inputs: number
  /** Those that were taken for valid. */
  readonly taken: number
  /** The input that took longest, and how long the fastest of three more readings of it took, in milliseconds. */
  readonly slowest: { readonly bytes: Uint8Array; readonly ms: number }
}

/** Gives a reader so many hostile inputs. @throws Error with seed and smallest input when it fails. */
export function fuzz(target: FuzzTarget, inputs: number): FuzzCount {
  let [tried, taken, longest] = [0, 0, 0]
  let slowest = new Uint8Array(0)
  const property = fc.property(hostileBytes(target.samples), (bytes) => {
    const from = performance.now()
    tried++
    if (target.take(bytes)) taken++
    const ms = performance.now() - from
    if (ms <= longest) return
    longest = ms
    slowest = bytes.slice()
  })
  fc.assert(property, { numRuns: inputs })
  // A pause of the machine is no slow reader: what counts is what is slow each time.
  return {
    inputs: tried,
    taken,
    slowest: { bytes: slowest, ms: Math.min(...[1, 2, 3].map(() => timed(target, slowest))) }
  }
}

function timed(target: FuzzTarget, bytes: Uint8Array): number {
  const from = performance.now()
  target.take(bytes)
  return performance.now() - from
}
