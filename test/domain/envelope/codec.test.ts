import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  decodeEnvelope,
  decodePayload,
  decodeStored,
  encodeEnvelope,
  encodeStored
} from '../../../src/domain/envelope/codec.js'
import { MESSAGE_TYPES, type A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { NodeError } from '../../../src/kit/errors.js'
import { utf8 } from '../../../src/kit/ids.js'
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

function envelope(payload: unknown, rest: Partial<A2AEnvelope> = {}): A2AEnvelope {
  return { ...base, ...rest, payload }
}

function roundTrip(one: A2AEnvelope): unknown {
  const decoded = decodeEnvelope(encodeEnvelope(one))
  assert.ok(decoded.ok)
  const payload = decoded.payload()
  assert.ok(payload.ok)
  return { ...decoded.header, payload: payload.value }
}

function messageOf(run: () => unknown): string {
  try {
    run()
    return ''
  } catch (error) {
    return error instanceof NodeError && error.code === 'PAYLOAD_TOO_LARGE' ? error.message : String(error)
  }
}

function codeOf(run: () => unknown): string {
  try {
    run()
    return 'none'
  } catch (error) {
    return error instanceof NodeError ? error.code : String(error)
  }
}

/** The encoding with one piece of text replaced by another of the same length, as a hostile sender could. */
function patched(one: A2AEnvelope, from: string, to: string): Uint8Array {
  const bytes = Buffer.from(encodeEnvelope(one))
  assert.equal(from.length, to.length)
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) bytes.write(to, at)
  return bytes
}

function payloadReason(bytes: Uint8Array): string | null {
  const decoded = decodeEnvelope(bytes)
  if (!decoded.ok) return decoded.reason
  const payload = decoded.payload()
  return payload.ok ? null : payload.reason
}

test('every envelope comes back from its bytes as it went in, byte arrays included', async (t) => {
  await holds(
    t,
    fc.property(arbA2AEnvelope({ bytes: true }), (one) => {
      assert.deepStrictEqual(roundTrip(one), one)
    }),
    500
  )
})

test('long strings and byte arrays anywhere in the payload travel beside the JSON', (t) => {
  const long = 'ü'.repeat(20_000)
  const payload = { 'a/b~c': [1, { text: long }], file: new Uint8Array(70_000).fill(7), short: 'x' }
  t.alike(roundTrip(envelope(payload)), envelope(payload))
  t.is(payload['a/b~c'].length, 2, 'the payload itself is left alone')
  t.alike(roundTrip(envelope(long)), envelope(long))
  t.alike(roundTrip(envelope(new Uint8Array([1, 2]))), envelope(new Uint8Array([1, 2])))
  t.alike(roundTrip(envelope([new Uint8Array(0)])), envelope([new Uint8Array(0)]))
})

test('a string may be far longer than the JSON may be', (t) => {
  const text = 'y'.repeat(3_000_000)
  t.alike(roundTrip(envelope({ text })), envelope({ text }))
})

test('a long string with a lone surrogate survives', (t) => {
  const text = `${'z'.repeat(17_000)}\ud800`
  t.alike(roundTrip(envelope({ text })), envelope({ text }))
})

test('long strings beyond the 64th stay in the JSON, and byte arrays have the first claim', (t) => {
  const texts = Array.from({ length: 66 }, (_, i) => `${i}`.padEnd(16_385, '.'))
  t.alike(roundTrip(envelope(texts.slice(0, 65))), envelope(texts.slice(0, 65)))
  const mixed = [...texts.slice(0, 10), ...Array.from({ length: 60 }, () => new Uint8Array(3))]
  t.alike(roundTrip(envelope(mixed)), envelope(mixed))
})

test('an absent payload stays absent and a null stays null', (t) => {
  t.alike(roundTrip(envelope(undefined)), envelope(undefined))
  t.alike(roundTrip(envelope(null)), envelope(null))
})

test('a small request takes little more than its fields', (t) => {
  const one = envelope({ text: 'x'.repeat(200) }, { metadata: { tier: 1 }, correlationId: 'c'.repeat(40) })
  t.is(encodeEnvelope(one).byteLength < 320, true)
})

test('the refusal of a large message names its limit and another form to send', (t) => {
  const instead = /send several messages$/
  const keys = Array.from({ length: 60 }, (_, at) => [`${at}`.padEnd(200, 'k'), new Uint8Array(1)] as const)
  for (const [name, payload, limit] of [
    ['texts', { ret: Array<string>(2000).fill('x'.repeat(1000)) }, 1_048_576],
    ['objects', Array.from({ length: 1500 }, () => ({ text: 'x'.repeat(900) })), 1_048_576],
    ['numbers', Array.from({ length: 300_000 }, (_, at) => 100_000 + at), 1_048_576],
    ['a key', { ['k'.repeat(3_145_728)]: 1 }, 1_048_576],
    ['texts without a UTF-8 form', Array<string>(70).fill('\ud800'.repeat(17_000)), 1_048_576],
    ['one text', 'z'.repeat(17_000_000), 16_777_216],
    ['byte arrays', Array.from({ length: 65 }, () => new Uint8Array(1)), 64],
    ['keys of byte arrays', Object.fromEntries(keys), 8192]
  ] as const) {
    const message = messageOf(() => encodeEnvelope(envelope(payload)))
    const kind = limit === 1_048_576 ? 'tools.maxPayloadBytes' : 'fixed limit'
    t.ok(message.includes(String(limit)) && message.includes(kind), `${name}: ${message}`)
    t.ok(instead.test(message), name)
  }
  t.alike(roundTrip(envelope({ ret: 'x'.repeat(2_000_000) })), envelope({ ret: 'x'.repeat(2_000_000) }))
})

test('JSON above 1 MiB goes to a reader that takes it, with its texts and bytes, and no reader parses more than it takes', (t) => {
  const MIB = 1_048_576
  const numbers = Array.from({ length: 300_000 }, (_, at) => 100_000 + at)
  const texts = Array<string>(70).fill('\ud800'.repeat(4000))
  for (const payload of [
    numbers,
    { rows: Array.from({ length: 3000 }, (_, at) => ({ at, text: 'x'.repeat(400) })) },
    { numbers, long: 'y'.repeat(20_000), bytes: new Uint8Array(100), null: null },
    { '~json': 'mine', numbers },
    { numbers, list: Array.from({ length: 80 }, () => 'z'.repeat(17_000)) },
    { numbers, list: Array.from({ length: 63 }, () => new Uint8Array(3)) },
    { numbers, texts }
  ]) {
    const bytes = encodeEnvelope(envelope(payload), () => 8 * MIB)
    const decoded = decodeEnvelope(bytes)
    t.alike(decoded.ok && decoded.payload(8 * MIB), { ok: true, value: payload })
    const refused = decodeEnvelope(bytes)
    const reading = refused.ok ? refused.payload(MIB) : null
    t.ok(reading?.ok === false && reading.isTooLarge === true && reading.reason.includes('tools.maxPayloadBytes'))
    t.alike(decodeStored(encodeStored(payload)), { ok: true, value: payload })
    t.is(decodePayload(encodeStored(payload)).ok, false)
    for (const takes of [MIB, MIB + 1])
      t.is(
        codeOf(() => encodeEnvelope(envelope(payload), () => takes)),
        'PAYLOAD_TOO_LARGE'
      )
  }
  const bytes = Array.from({ length: 64 }, () => new Uint8Array(1))
  t.is(
    codeOf(() => encodeEnvelope(envelope({ numbers, bytes }), () => 8 * MIB)),
    'PAYLOAD_TOO_LARGE',
    'no attachment is left for the JSON'
  )
  t.alike(
    encodeEnvelope(envelope({ a: 1 }), () => 8 * MIB),
    encodeEnvelope(envelope({ a: 1 })),
    'as before below 1 MiB'
  )
})

test('an envelope that is too large is refused before it is sent', (t) => {
  const many = Array.from({ length: 65 }, () => new Uint8Array(1))
  const deepKeys = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [`${i}`.padEnd(200, 'k'), new Uint8Array(1)])
  )
  t.is(
    codeOf(() => encodeEnvelope(envelope(new Uint8Array(16 * 1_048_576)))),
    'PAYLOAD_TOO_LARGE'
  )
  t.is(
    codeOf(() => encodeEnvelope(envelope('z'.repeat(17_000_000)))),
    'PAYLOAD_TOO_LARGE'
  )
  t.is(
    codeOf(() => encodeEnvelope(envelope(Array.from({ length: 600_000 }, () => 1)))),
    'PAYLOAD_TOO_LARGE'
  )
  t.is(
    codeOf(() => encodeEnvelope(envelope(many))),
    'PAYLOAD_TOO_LARGE'
  )
  t.is(
    codeOf(() => encodeEnvelope(envelope(deepKeys))),
    'PAYLOAD_TOO_LARGE',
    'pointers count as header'
  )
})

test('an invalid envelope is refused before it is sent', (t) => {
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  const bad: Record<string, A2AEnvelope> = {
    'empty id': envelope(1, { id: '' }),
    'long id': envelope(1, { id: 'i'.repeat(65) }),
    'lone surrogate': envelope(1, { id: '\udc00' }),
    sender: envelope(1, { sender: 's'.repeat(129) }),
    type: envelope(1, { type: 'shout' as 'request' }),
    timestamp: envelope(1, { timestamp: 1.5 }),
    negative: envelope(1, { timestamp: -1 }),
    tier: envelope(1, { metadata: { tier: 4 as 3 } }),
    justification: envelope(1, { metadata: { tier: 3, justification: 'ü'.repeat(513) } }),
    hops: envelope(1, { metadata: { tier: 3, hops: ['not a key'] } }),
    cyclic: envelope(cyclic),
    deep: envelope(JSON.parse('['.repeat(40) + ']'.repeat(40))),
    bigint: envelope({ big: 1n }),
    function: envelope(() => 1),
    forbidden: envelope(JSON.parse('{"__proto__":1}'))
  }
  for (const [name, one] of Object.entries(bad))
    t.is(
      codeOf(() => encodeEnvelope(one)),
      'INVALID_ENVELOPE',
      name
    )
  t.is(
    codeOf(() => encodeEnvelope(envelope(1, { schemaVersion: 2 }))),
    'SCHEMA_VERSION_MISMATCH'
  )
})

test('no bytes make the decoder throw', async (t) => {
  const valid = arbA2AEnvelope({ bytes: true }).map((one) => encodeEnvelope(one))
  const damaged = fc
    .tuple(valid, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 8 }))
    .map(([bytes, flips]) => {
      const copy = Buffer.from(bytes)
      for (const [at, value] of flips) copy[at % copy.length] = value
      return copy
    })
  const random = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from([1, ...bytes]))
  await holds(
    t,
    fc.property(fc.oneof(damaged, random, fc.uint8Array()), (bytes) => {
      const decoded = decodeEnvelope(bytes)
      if (decoded.ok) decoded.payload()
      else assert.ok(decoded.reason.length > 0)
    }),
    3000
  )
})

test('an encoding cut short is refused', async (t) => {
  await holds(
    t,
    fc.property(arbA2AEnvelope(), fc.nat(), (one, at) => {
      const bytes = encodeEnvelope(one)
      assert.equal(decodeEnvelope(bytes.subarray(0, at % bytes.byteLength)).ok, false)
    })
  )
})

test('a foreign schema version is refused with the expected and the actual one, and the id', (t) => {
  const bytes = Buffer.from(encodeEnvelope(base))
  bytes[2] = 7
  t.alike(decodeEnvelope(bytes), {
    ok: false,
    code: 'SCHEMA_VERSION_MISMATCH',
    reason: 'schemaVersion: expected 1, got 7',
    id: 'm1'
  })
  bytes[0] = 9
  t.alike(decodeEnvelope(bytes), {
    ok: false,
    code: 'SCHEMA_VERSION_MISMATCH',
    reason: 'wire version: expected 1, got 9',
    id: null
  })
})

test('Feature: a2a-mcp-protocols, Property 9: Message type validation', async (t) => {
  for (const type of MESSAGE_TYPES) t.alike(roundTrip(envelope(1, { type })), envelope(1, { type }))
  await holds(
    t,
    fc.property(fc.integer({ min: MESSAGE_TYPES.length, max: 255 }), (number) => {
      const bytes = Buffer.from(encodeEnvelope(base))
      bytes[1] = number
      const decoded = decodeEnvelope(bytes)
      assert.ok(!decoded.ok && decoded.code === 'INVALID_ENVELOPE' && decoded.id === 'm1')
    })
  )
})

test('an attachment is put only where an own member is null', (t) => {
  const one = envelope({ aaaaaaaaa: new Uint8Array([1]), list: [null], other: 'text' })
  t.is(payloadReason(encodeEnvelope(one)), null)
  for (const pointer of [
    '/__proto__',
    '/undefined',
    '/other/0/1',
    '/list/0001',
    '/list/leng',
    'aaaaaaaaaa',
    '/list/1000'
  ]) {
    t.is(payloadReason(patched(one, '/aaaaaaaaa', pointer)), 'an attachment points to no empty position', pointer)
  }
  const climbing = envelope({ ['a'.repeat(19)]: new Uint8Array([1]) })
  t.is(
    payloadReason(patched(climbing, `/${'a'.repeat(19)}`, '/__proto__/__proto__')),
    'an attachment points to no empty position',
    'the null above all'
  )
  const twice = envelope({ a: new Uint8Array(1), b: new Uint8Array(1) })
  t.is(payloadReason(patched(twice, '/b', '/a')), 'an attachment points to no empty position')
})

test('a payload with a forbidden key is refused when it is read', (t) => {
  const one = envelope({ aaaaaaaaa: 1 })
  const bytes = patched(one, 'aaaaaaaaa', '__proto__')
  t.is(decodeEnvelope(bytes).ok, true, 'the header is sound')
  t.is(payloadReason(bytes), 'the key __proto__ is not allowed')
})

test('the payload is parsed once and does not share memory with the frame', (t) => {
  const bytes = encodeEnvelope(envelope({ file: new Uint8Array([1, 2, 3]) }))
  const decoded = decodeEnvelope(bytes)
  assert.ok(decoded.ok)
  const first = decoded.payload()
  t.is(decoded.payload(), first)
  bytes.fill(0)
  t.alike(first, { ok: true, value: { file: new Uint8Array([1, 2, 3]) } })
})

test('a header that claims more than 8 KiB is not read', (t) => {
  const head = Buffer.from([1, 0, 1, 0xfd, 0x00, 0x30])
  const decoded = decodeEnvelope(Buffer.concat([head, Buffer.from(utf8('x'.repeat(20_000)))]))
  t.alike(decoded, { ok: false, code: 'INVALID_ENVELOPE', reason: 'the header is cut short or malformed', id: null })
})
