import test from 'brittle'
import fc from 'fast-check'
import {
  canonicalJson,
  isRecord,
  JSON_LIMITS,
  jsonCopy,
  jsonFault,
  jsonSyntaxReason,
  parseJson
} from '../../src/kit/json.js'
import { holds } from '../support/holds.js'

/** The same value with the members of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, item]) => [name, shuffled(item)])
  )
}

function nested(levels: number): unknown {
  let value: unknown = 0
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { inner: value }
  return value
}

function sameText(written: string, copy: unknown): boolean {
  return JSON.stringify(copy) === written
}

function sharesObject(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return false
  if (one === other) return true
  return Object.keys(other).some((key) =>
    sharesObject((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key])
  )
}

test('canonical JSON parses back to the same value', async (t) => {
  await holds(
    t,
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      return canonicalJson(JSON.parse(canonicalJson(value))) === canonicalJson(plain)
    })
  )
})

test('canonical JSON does not depend on the order of members', async (t) => {
  await holds(
    t,
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      return canonicalJson(shuffled(plain)) === canonicalJson(plain)
    })
  )
})

test('canonical JSON sorts members by UTF-16 units and has no white space (RFC 8785, 3.2.3)', (t) => {
  const value = {
    '\u20ac': 'Euro',
    '\r': 'CR',
    '\ufb33': 'Dalet',
    1: 'One',
    '\ud83d\ude00': 'Grin',
    '\u0080': 'Control',
    '\u00f6': 'o'
  }
  const names = Object.keys(JSON.parse(canonicalJson(value)) as object)
  t.alike(names, ['1', '\r', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'])
  t.is(canonicalJson({ b: [1, { d: null, c: true }], a: 'x y' }), '{"a":"x y","b":[1,{"c":true,"d":null}]}')
})

test('canonical JSON writes numbers as ECMAScript does', (t) => {
  t.is(canonicalJson([333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, -0]), '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]')
})

test('members that are undefined are left out, elements become null', (t) => {
  t.is(canonicalJson({ a: undefined, b: 1 }), '{"b":1}')
  t.is(canonicalJson([undefined]), '[null]')
})

test('values without a JSON form are refused', async (t) => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 1n, () => 1, undefined, Symbol('s')]) {
    await t.exception.all(() => canonicalJson(value), /no JSON form/)
    await t.exception.all(() => canonicalJson({ value: [value === undefined ? 1n : value] }), /no JSON form/)
  }
})

test('values within the limits have no fault', async (t) => {
  await holds(
    t,
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const plain = JSON.stringify(value)
      return /__proto__|constructor|prototype/.test(plain) || jsonFault(value) === null
    })
  )
  t.is(jsonFault(nested(32)), null)
  t.is(jsonFault(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]))), null)
  t.is(jsonFault('x'.repeat(1_048_576)), null)
  t.is(jsonFault(Array.from({ length: 5000 }, () => 'item')), null)
})

test('one level, one key, one character more is a fault', (t) => {
  t.is(jsonFault(nested(33)), 'nested deeper than 32')
  t.is(
    jsonFault(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`k${i}`, i]))),
    'an object with more than 1000 keys'
  )
  t.is(jsonFault({ deep: ['x'.repeat(1_048_577)] }), 'a string longer than 1048576')
})

test('depth is bounded without recursion: a million levels are a fault, not a crash', (t) => {
  t.is(jsonFault(nested(1_000_000)), 'nested deeper than 32')
})

test('keys that reach into prototypes are a fault at any place', (t) => {
  for (const text of ['{"__proto__":1}', '[{"a":{"constructor":1}}]', '{"prototype":{}}']) {
    t.ok(jsonFault(JSON.parse(text))?.includes('is not allowed'), text)
  }
})

test('a number that no JSON can be written of is a fault at any place', (t) => {
  for (const text of ['1e999', '[1,-1e999]', '{"a":{"b":[1e400]}}'])
    t.is(jsonFault(JSON.parse(text)), 'a number that is not finite', text)
  t.is(jsonFault([1e308, -0, 5e-324]), null)
})

test('a copy equals the value read back from its JSON, and shares nothing with the original', async (t) => {
  await holds(
    t,
    fc.property(fc.anything({ withDate: true, withNullPrototype: true, maxDepth: 4 }), (value) => {
      const written = JSON.stringify(value)
      const copy = jsonCopy(value)
      return written === undefined ? copy === undefined : sameText(written, copy) && !sharesObject(value, copy)
    }),
    500
  )
})

test('a value without a JSON form has no copy, and bytes stay bytes', (t) => {
  const circular: unknown[] = []
  circular.push({ circular })
  const throwing = Object.defineProperty({}, 'a', {
    enumerable: true,
    get: () => {
      throw new Error('mine')
    }
  })
  for (const value of [circular, throwing, 1n, { a: [1n] }, () => 1, Symbol('s'), undefined, nested(100_000)])
    t.is(jsonCopy(value), undefined)
  const bytes = Buffer.from('abc')
  const copy = jsonCopy({ bytes }) as { bytes: Uint8Array }
  t.ok(copy.bytes instanceof Uint8Array && copy.bytes !== bytes)
  t.alike([...copy.bytes], [...bytes])
  const odd = JSON.parse('{"__proto__":{"a":1}}') as unknown
  t.is(JSON.stringify(jsonCopy(odd)), '{"__proto__":{"a":1}}')
  t.alike(jsonCopy({ a: Number.NaN, b: undefined, c: [undefined, () => 1], d: new Date(0) }), {
    a: null,
    c: [null, null],
    d: '1970-01-01T00:00:00.000Z'
  })
})

test('bytes are one value, however long', (t) => {
  t.is(jsonFault({ file: new Uint8Array(2_000_000) }), null)
  t.is(isRecord(new Uint8Array(1)), false)
})

test('the reason why a text is not JSON names the place and no text of the engine', (t) => {
  const reasonOf = (text: string): string => {
    try {
      return `parsed ${JSON.stringify(JSON.parse(text))}`
    } catch (error) {
      return jsonSyntaxReason(error)
    }
  }
  t.is(reasonOf('{"a":'), 'it ends too early')
  t.is(reasonOf('"a'), 'it ends too early')
  t.is(reasonOf('{a:1}'), 'there is a fault at character 2')
  t.is(reasonOf('hello'), '"h" is not expected there')
  t.is(jsonSyntaxReason(null), 'its syntax is wrong')
})

test('parsing what others wrote never throws', async (t) => {
  await holds(
    t,
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
      const parsed = parseJson(text)
      return parsed.ok ? jsonFault(parsed.value) === null : parsed.reason.length > 0
    }),
    1000
  )
  t.alike(parseJson('{'), { ok: false, reason: 'not JSON' })
  t.alike(parseJson('{"a":1}'), { ok: true, value: { a: 1 } })
  t.alike(parseJson('[[[]]]', { ...JSON_LIMITS, maxDepth: 2 }), { ok: false, reason: 'nested deeper than 2' })
})
