import test, { type Assert } from 'brittle'
import { boundedCheck, schemaCost } from '../../../src/kit/schema/cost.js'
import type { Check } from '../../../src/kit/sign.js'

const WRONG: Check = () => [{ path: '', message: 'wrong' }]
const without = Number.POSITIVE_INFINITY

test('a check of which a schema of others could make a long one is left out', (t: Assert) => {
  const ways = Array.from({ length: 800 }, (_, i) => ({ const: i }))
  const schema = { type: 'object', properties: { a: { items: { anyOf: ways } } } }
  const check = boundedCheck(WRONG, schema)
  t.is(check({ a: [1, 2, 3] }).length, 1)
  t.is(check({ a: Array.from({ length: 20_000 }, () => 0) }).length, 0, '16 million ways')
  t.is(check({ a: Array.from({ length: 1_000_000 }, () => ({})) }).length, 0)
  t.is(
    boundedCheck(WRONG, { type: 'object' })({ a: Array.from({ length: 100_000 }, () => 0) }).length,
    1,
    'a plain one is cheap'
  )
  t.is(boundedCheck(WRONG, false)('x').length, 1)
})

test('the cost of a schema is that of all its parts, references followed as the compiler does', (t: Assert) => {
  t.is(schemaCost({ type: 'object' }), 1)
  t.is(schemaCost({ $defs: { a: { enum: [1, 2, 3] } }, properties: { x: { $ref: '#/$defs/a' } } }), 12)
  t.ok(
    schemaCost({ items: { required: Array.from({ length: 500 }, String) } }) > 500,
    'names that are looked for count'
  )
  t.is(schemaCost({ $ref: '#' }), without)
  // The compiler decodes the URI first, then the pointer.
  const loop = { $ref: '#/$defs/a%7E1b' }
  t.is(schemaCost({ $defs: { 'a/b': loop, 'a~1b': {} }, properties: { x: loop } }), without)
})
