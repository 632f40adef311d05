import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import { decodeEnvelope, encodeEnvelope } from '../../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION, type A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { isOfOrigin, passedOn, signOrigin } from '../../../src/domain/envelope/origin.js'
import { arbA2AEnvelope } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'
import { readOf } from '../../support/chain.js'
import { actor, hash, MESH, verify } from '../../support/membership.js'

const [ann, bob, eve] = [actor('ann'), actor('bob'), actor('eve')]
const binding = { mesh: MESH, firstHop: bob.id, hash }

/** As its node makes it, before it goes anywhere. */
const arbFresh = arbA2AEnvelope().map((envelope): A2AEnvelope => {
  const { hops: _hops, signature: _signature, ...claims } = envelope.metadata ?? { tier: 1 as const }
  return { ...envelope, metadata: claims }
})

/** Is it Ann's, as these bytes say? */
function isAnns(bytes: Uint8Array, changes: object = {}): boolean {
  const read = decodeEnvelope(bytes)
  return read.ok && isOfOrigin(read, bytes, { ...binding, origin: ann.id, verify, ...changes })
}

test('what a node signed is its own wherever it has been, with its payload as it was', async (t) => {
  const property = fc.property(arbFresh, fc.nat(8), (envelope, length) => {
    const plain = encodeEnvelope(envelope)
    let bytes = signOrigin(plain, { ...binding, sign: ann.sign })
    const keys = Array.from({ length }, (_, at) => actor(`hop${at}`).id)
    for (const key of keys) bytes = passedOn(readOf(bytes), bytes, key)
    assert.ok(isAnns(bytes))
    const { header, payload } = readOf(bytes)
    const { hops, signature, ...claims } = header.metadata ?? { tier: 1 as const }
    assert.deepEqual(hops, keys)
    assert.equal(signature?.length, 103)
    const { header: before, payload: payloadBefore } = readOf(plain)
    assert.deepEqual({ ...header, metadata: claims }, before)
    assert.deepEqual(payload(), payloadBefore())
  })
  await holds(t, property, 100)
})

test('any changed bit that is not of the way makes it the message of nobody', async (t) => {
  const property = fc.property(arbFresh, fc.nat(), fc.nat(7), (envelope, place, bit) => {
    const bytes = signOrigin(encodeEnvelope(envelope), { ...binding, sign: ann.sign })
    const changed = bytes.slice()
    const at = place % changed.byteLength
    changed[at] = (changed[at] ?? 0) ^ (1 << bit)
    const read = decodeEnvelope(changed)
    if (!read.ok || !isAnns(changed)) return
    const [one, other] = [readOf(bytes), read]
    const { hops: _one, ...claims } = one.header.metadata ?? { tier: 1 as const }
    const { hops: _other, ...changedClaims } = other.header.metadata ?? { tier: 1 as const }
    assert.deepEqual({ ...other.header, metadata: changedClaims }, { ...one.header, metadata: claims }, 'only the way differs')
    assert.deepEqual(other.payload(), one.payload())
  })
  await holds(t, property, 500)
})

test('a signature binds node, mesh and first hop', (t) => {
  const envelope = {
    id: 'm',
    schemaVersion: SCHEMA_VERSION,
    sender: 'a@x',
    recipient: 'b@y',
    type: 'request',
    timestamp: 1,
    payload: 1
  } as const
  const bytes = signOrigin(encodeEnvelope({ ...envelope, metadata: { tier: 1 } }), { ...binding, sign: ann.sign })
  t.is(isAnns(bytes), true)
  for (const changes of [{ origin: eve.id }, { mesh: eve.id }, { firstHop: eve.id }, { origin: 'no key' }])
    t.is(isAnns(bytes, changes), false)
  t.is(isAnns(encodeEnvelope({ ...envelope, metadata: { tier: 1 } })), false)
  t.is(isAnns(encodeEnvelope(envelope)), false)
})

test('a header without room for the way is not signed, nor carried on', (t) => {
  const bytes = encodeEnvelope({
    id: 'm',
    schemaVersion: SCHEMA_VERSION,
    sender: 'a@x',
    recipient: 'b@y',
    type: 'request',
    timestamp: 1,
    payload: Object.fromEntries(Array.from({ length: 62 }, (_, at) => [`${'k'.repeat(125)}${at}`, new Uint8Array(1)])),
    metadata: { tier: 1 }
  })
  try {
    signOrigin(bytes, { ...binding, sign: ann.sign })
    t.fail('it was signed')
  } catch (error) {
    t.is(error instanceof NodeError ? error.code : '', 'PAYLOAD_TOO_LARGE')
  }
})
