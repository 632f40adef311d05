import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  CALL_ENDS,
  type CallPart,
  decodeCall,
  encodeCall,
  MAX_CALL_ANSWER_BYTES,
  MAX_CALL_PARAMETERS_BYTES,
  MAX_CALL_PATH_BYTES,
  MAX_CALL_REQUEST_BYTES
} from '../../../src/domain/channel/call.js'
import { holds } from '../../support/holds.js'

const id = fc.maxSafeNat()
const body = fc.uint8Array({ maxLength: 200 })
// The reader lets in no name that means something to the language (kit/json.ts).
const name = fc.stringMatching(/^[a-z0-9-]{1,20}$/).filter((text) => text !== 'constructor' && text !== 'prototype')
const parameters = fc.dictionary(name, fc.string({ maxLength: 30 }), {
  maxKeys: 8,
  noNullPrototype: true
})
const arbPart: fc.Arbitrary<CallPart> = fc.oneof(
  fc.record({
    type: fc.constant('request' as const),
    id,
    path: fc.stringMatching(/^\/[ -~]{0,40}$/),
    parameters,
    body
  }),
  fc.record({ type: fc.constant('answer' as const), id, body }),
  fc.record({ type: fc.constant('item' as const), id, generation: fc.option(fc.nat()), body }),
  fc.record({ type: fc.constant('end' as const), id, how: fc.constantFrom(...CALL_ENDS) }),
  fc.record({ type: fc.constant('credit' as const), id, bytes: fc.maxSafeNat() }),
  fc.record({ type: fc.constant('hangup' as const), id })
)

const plain = (part: CallPart | null): unknown =>
  part !== null && 'body' in part ? { ...part, body: Buffer.from(part.body).toString('hex') } : { ...part }

test('any part of a call is read as it was written', async (t) => {
  await holds(
    t,
    fc.property(arbPart, (part) => assert.deepEqual(plain(decodeCall(encodeCall(part))), plain(part))),
    500
  )
})

test('no bytes make the reader of calls throw, and a part that is cut short or too long is none', async (t) => {
  await holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => void decodeCall(bytes)),
    500
  )
  await holds(
    t,
    fc.property(arbPart, fc.nat(), (part, cut) => {
      const bytes = encodeCall(part)
      const head = decodeCall(bytes.subarray(0, cut % bytes.byteLength))
      // What is left of a body is a shorter body.
      if (!('body' in part)) assert.equal(head, null)
      if (!('body' in part)) assert.equal(decodeCall(Buffer.concat([bytes, Buffer.of(0)])), null)
    }),
    300
  )
})

test('a call beyond its bounds is none: its path, its parameters, its body', (t) => {
  const request = { type: 'request', id: 1, path: '/a2a', parameters: {}, body: new Uint8Array(1) } as const
  const isRead = (part: CallPart): boolean => decodeCall(encodeCall(part)) !== null
  t.ok(isRead({ ...request, path: `/${'x'.repeat(MAX_CALL_PATH_BYTES - 1)}` }))
  t.absent(isRead({ ...request, path: `/${'x'.repeat(MAX_CALL_PATH_BYTES)}` }))
  t.absent(isRead({ ...request, path: 'a2a' }), 'a path begins with a slash')
  t.absent(isRead({ ...request, parameters: { x: 'y'.repeat(MAX_CALL_PARAMETERS_BYTES) } }))
  t.absent(isRead({ ...request, parameters: { x: 1 } as never }), 'parameters are texts')
  t.absent(isRead({ ...request, parameters: [] as never }))
  t.absent(
    isRead({ ...request, parameters: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`n${at}`, ''])) })
  )
  t.absent(isRead({ ...request, parameters: { constructor: '' } }), 'a name that means something to the language')
  const upper = decodeCall(encodeCall({ ...request, parameters: { 'A2A-Version': '1.0' } }))
  t.alike(
    upper !== null && 'parameters' in upper ? upper.parameters : null,
    { 'a2a-version': '1.0' },
    'in any case of their names'
  )
  t.ok(isRead({ ...request, body: new Uint8Array(MAX_CALL_REQUEST_BYTES) }))
  t.absent(isRead({ ...request, body: new Uint8Array(MAX_CALL_REQUEST_BYTES + 1) }))
  t.ok(isRead({ type: 'answer', id: 1, body: new Uint8Array(MAX_CALL_ANSWER_BYTES) }))
  t.absent(isRead({ type: 'item', id: 1, generation: 0, body: new Uint8Array(MAX_CALL_ANSWER_BYTES + 1) }))
})
