import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { decodeWhole, encodeWhole, envelopeOf, type RelayableMessage } from '../../../src/domain/channel/frames.js'
import {
  decodeRelayed,
  encodeRelayed,
  isSignedByOrigin,
  MAX_RELAY_HEAD_BYTES,
  passedOn,
  type RelayedFrame,
  relayedId,
  signRelayed
} from '../../../src/domain/channel/relayed.js'
import { holds } from '../../support/holds.js'
import { actor, hash, MESH, verify } from '../../support/membership.js'

const [ann, bob, cay, eve] = [actor('ann'), actor('bob'), actor('cay'), actor('eve')]
const binding = { mesh: MESH, firstHop: bob.id, hash }

function signed(content: Uint8Array, timestamp = 1): RelayedFrame {
  return signRelayed({ origin: ann.id, target: cay.id, timestamp, content }, { ...binding, sign: ann.sign })
}

/** Is it of the origin that it names, for this mesh and first hop? */
function isOfOrigin(frame: RelayedFrame, changes: object = {}): boolean {
  return isSignedByOrigin(frame, { ...binding, verify, ...changes })
}

const arbContent = fc.uint8Array({ maxLength: 300 })

test('content that a node signed is its own after any relays, unchanged', async (t) => {
  const property = fc.property(arbContent, fc.nat(8), fc.nat(), (content, length, timestamp) => {
    let frame = signed(content, timestamp)
    const keys = Array.from({ length }, (_, at) => actor(`hop${at}`).id)
    for (const key of keys) frame = passedOn(frame, key)
    const bytes = encodeRelayed(frame)
    assert.ok(bytes.byteLength <= MAX_RELAY_HEAD_BYTES + content.byteLength)
    const read = decodeRelayed(bytes)
    assert.ok(read !== null && isOfOrigin(read))
    assert.deepEqual({ ...read, content: [...read.content] }, { ...frame, content: [...content] })
    assert.equal(relayedId(read), relayedId(signed(content, timestamp)), 'it keeps its name on the way')
  })
  await holds(t, property, 100)
})

test('any changed bit outside of its hops makes it the frame of nobody', async (t) => {
  const property = fc.property(arbContent, fc.nat(), fc.nat(7), (content, place, bit) => {
    const bytes = encodeRelayed(signed(content))
    const at = place % bytes.byteLength
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
    const read = decodeRelayed(bytes)
    assert.ok(read === null || !isOfOrigin(read))
  })
  await holds(t, property, 500)
})

test('a signature binds origin, target, time, mesh and first hop', (t) => {
  const frame = signed(new Uint8Array([1, 2]))
  t.is(isOfOrigin(frame), true)
  for (const changes of [{ mesh: eve.id }, { firstHop: eve.id }]) t.is(isOfOrigin(frame, changes), false)
  for (const changes of [{ origin: eve.id }, { target: eve.id }, { timestamp: 2 }, { origin: 'no key' }])
    t.is(isOfOrigin({ ...frame, ...changes }), false)
  t.not(relayedId(signed(new Uint8Array([1, 2]), 2)), relayedId(frame), 'sent again it has another name')
})

test('bytes that are no relayed frame are none, and nothing throws', async (t) => {
  const property = fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
    const read = decodeRelayed(bytes)
    assert.ok(read === null || (read.hops.length <= 8 && Number.isSafeInteger(read.timestamp)))
    const message = decodeWhole(bytes)
    assert.ok(typeof message === 'string' || ['envelope', 'reliable', 'control'].includes(message.kind))
  })
  await holds(t, property, 500)
  t.is(
    decodeRelayed(encodeRelayed({ ...signed(new Uint8Array(3)), hops: Array.from({ length: 9 }, () => bob.id) })),
    null,
    'nine hops'
  )
})

test('envelopes, messages of lanes and control messages are relayed as they are, and nothing else', (t) => {
  const frame = {
    source: 'a',
    target: 'b',
    seq: 2,
    base: 1,
    messageId: 'm',
    requestId: null,
    envelope: new Uint8Array(70_000)
  }
  const messages: RelayableMessage[] = [
    { kind: 'envelope', bytes: new Uint8Array(70_000) },
    { kind: 'reliable', frame },
    { kind: 'reliable', frame: { ...frame, envelope: null } },
    { kind: 'control', name: 'cancel', body: { requestId: 'r#1' } }
  ]
  for (const message of messages) {
    const read = decodeWhole(encodeWhole(message))
    t.ok(typeof read !== 'string' && read.kind === message.kind)
    t.ok(typeof read !== 'string' && Buffer.compare(encodeWhole(read), encodeWhole(message)) === 0)
  }
  t.alike(
    messages.map((message) => envelopeOf(message)?.byteLength ?? null),
    [70_000, 70_000, null, null]
  )
  for (const kind of [1, 2, 3, 6, 7, 8]) t.is(decodeWhole(new Uint8Array([kind, 1])), 'a frame that is not relayed')
  t.is(decodeWhole(new Uint8Array([5])), 'a message of a lane is malformed')
})
