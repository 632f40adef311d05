import test from 'brittle'
import fc from 'fast-check'
import {
  decodeGateMessage,
  encodeGateMessage,
  type GateMessage,
  meshProof
} from '../../../../src/adapters/mesh/links/hello.js'
import { ERROR_CODES, type ErrorCode } from '../../../../src/kit/errors.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { shown } from '../../../../src/kit/text.js'
import { holds } from '../../../support/holds.js'
import { actor, certificate, hash, keyText } from '../../../support/membership.js'

const chain = [certificate({ issuer: actor('owner'), node: actor('ann') })]
const chains = fc.constantFrom(null, [], chain, [...chain, ...chain])
const codes = fc.constantFrom(...(Object.keys(ERROR_CODES) as ErrorCode[]))
const messages: fc.Arbitrary<GateMessage> = fc.oneof(
  fc.record({
    type: fc.constant('hello' as const),
    version: fc.integer({ min: 1, max: 1000 }),
    maxFrameBytes: fc.integer({ min: 1, max: 2 ** 32 }),
    software: fc.string({ maxLength: 64 }),
    proof: fc.string({ maxLength: 64 })
  }),
  fc.record({ type: fc.constant('credentials' as const), chain: chains, grant: chains }),
  fc.constant({ type: 'passed' as const }),
  fc.record({ type: fc.constant('refused' as const), code: codes, reason: fc.string({ maxLength: 512 }) }),
  fc.record({
    type: fc.constant('refused' as const),
    code: codes,
    reason: fc.constant('x'),
    inviteId: fc.constant(keyText('invite'))
  })
)

test('every message decodes to its value, with displayed texts made harmless', async (t) => {
  const property = fc.property(messages, (message) => {
    const read = decodeGateMessage(encodeGateMessage(message))
    const expected = { ...message }
    if ('software' in expected) Object.assign(expected, { software: shown(expected.software, 64) })
    if ('reason' in expected) Object.assign(expected, { reason: shown(expected.reason) })
    return JSON.stringify(read) === JSON.stringify(expected)
  })
  await holds(t, property)
})

test('no bytes make the decoder throw, and it is a message or null that comes out', async (t) => {
  const json = fc.jsonValue({ maxDepth: 5 }).map((value) => utf8(JSON.stringify(value)))
  const broken = fc.tuple(messages, fc.nat(), fc.integer({ min: 0, max: 255 })).map(([message, place, byte]) => {
    const bytes = encodeGateMessage(message)
    bytes[place % bytes.byteLength] = byte
    return bytes
  })
  const types = ['hello', 'credentials', 'passed', 'refused']
  const property = fc.property(fc.oneof(fc.uint8Array({ maxLength: 2000 }), json, broken), (bytes) => {
    const read = decodeGateMessage(bytes)
    return read === null || types.includes(read.type)
  })
  await holds(t, property, 1000)
})

test('messages that are too large, too deep or more than they should be are no messages', (t) => {
  const good = { type: 'credentials', chain, grant: null }
  t.ok(decodeGateMessage(utf8(JSON.stringify(good))))
  const bad: Record<string, unknown> = {
    'a key too many': { ...good, more: 1 },
    'a chain of nine': { ...good, chain: Array.from({ length: 9 }, () => chain[0]) },
    'an unknown code': { type: 'refused', code: 'WHATEVER', reason: '' },
    'a reason without end': { type: 'refused', code: 'FORBIDDEN', reason: 'x'.repeat(600) },
    'a name for a proof': { type: 'hello', version: 1, maxFrameBytes: 1, software: 'x', proof: 'x'.repeat(100) },
    'no version': { type: 'hello', maxFrameBytes: 1, software: 'x', proof: '' }
  }
  for (const [what, message] of Object.entries(bad)) t.is(decodeGateMessage(utf8(JSON.stringify(message))), null, what)
  const large = utf8(JSON.stringify({ ...good, chain: null, padding: 'x'.repeat(70_000) }))
  t.is(decodeGateMessage(large), null)
})

test('a proof depends on both secrets, on the stream and on the end that makes it', (t) => {
  const bytes = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
  const parts = { meshKey: bytes(1), encryptionKey: bytes(2), handshakeHash: bytes(3), isInitiator: true }
  const proofs = [
    parts,
    { ...parts, meshKey: bytes(9) },
    { ...parts, encryptionKey: bytes(9) },
    { ...parts, handshakeHash: bytes(9) },
    { ...parts, isInitiator: false }
  ].map((one) => meshProof(one, hash))
  t.is(new Set(proofs).size, 5)
  t.is(meshProof({ ...parts }, hash), proofs[0])
})
