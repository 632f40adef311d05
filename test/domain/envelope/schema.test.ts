import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES, type A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import {
  A2AEnvelopeSchema,
  A2AMessageTypeSchema,
  envelopeFromJson,
  envelopeToJson
} from '../../../src/domain/envelope/schema.js'
import { arbA2AEnvelope } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'

const base: A2AEnvelope = {
  id: 'm1',
  schemaVersion: 1,
  sender: 'a@n',
  recipient: 'b@n',
  type: 'request',
  timestamp: 1,
  payload: null
}

test('Feature: a2a-mcp-protocols, Property 7: A2A Envelope serialization round trip', async (t) => {
  await holds(
    t,
    fc.property(arbA2AEnvelope({ bytes: true }), (one) => {
      assert.deepStrictEqual(envelopeFromJson(envelopeToJson(one)), { ok: true, envelope: one })
    }),
    300
  )
})

test('Feature: a2a-mcp-protocols, Property 9: Message type validation at the edges', async (t) => {
  for (const type of MESSAGE_TYPES) t.is(A2AEnvelopeSchema.safeParse({ ...base, type }).success, true, type)
  await holds(
    t,
    fc.property(
      fc.string().filter((type) => !MESSAGE_TYPES.includes(type as 'request')),
      (type) => {
        assert.equal(A2AMessageTypeSchema.safeParse(type).success, false)
        assert.equal(A2AEnvelopeSchema.safeParse({ ...base, type }).success, false)
        assert.equal(envelopeFromJson(JSON.stringify({ ...base, type })).ok, false)
      }
    )
  )
})

test('a foreign schema version is refused with the expected and the actual one', (t) => {
  t.alike(envelopeFromJson(JSON.stringify({ ...base, schemaVersion: 3 })), {
    ok: false,
    code: 'SCHEMA_VERSION_MISMATCH',
    reason: 'schemaVersion: expected 1, got 3'
  })
})

test('an envelope whose bounds the wire would refuse is refused at the edges too', (t) => {
  for (const bad of [
    { id: '' },
    { sender: 's'.repeat(200) },
    { timestamp: 0.5 },
    { metadata: { tier: 1, justification: 'j'.repeat(2000) } }
  ]) {
    t.is(envelopeFromJson(JSON.stringify({ ...base, ...bad })).ok, false, JSON.stringify(Object.keys(bad)))
  }
})

test('no text makes the reader throw', async (t) => {
  const mixed = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((value) => JSON.stringify({ ...base, payload: value, attachments: value }))
  )
  await holds(
    t,
    fc.property(mixed, (text) => {
      const read = envelopeFromJson(text)
      assert.ok(read.ok || read.reason.length > 0)
    }),
    500
  )
})

test('attachments that point nowhere or hold no base64 are refused', (t) => {
  const withAttachment = (pointer: string, base64: string): string =>
    JSON.stringify({ ...base, payload: { a: null, b: 1 }, attachments: [{ pointer, base64 }] })
  t.alike(envelopeFromJson(withAttachment('/a', 'AQ==')), {
    ok: true,
    envelope: { ...base, payload: { a: new Uint8Array([1]), b: 1 } }
  })
  for (const [pointer, base64] of [
    ['/b', 'AQ=='],
    ['/c', 'AQ=='],
    ['/a', '%'],
    ['/__proto__', 'AQ==']
  ] as const) {
    t.is(envelopeFromJson(withAttachment(pointer, base64)).ok, false, pointer)
  }
})
