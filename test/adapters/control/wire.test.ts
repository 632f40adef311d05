import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { codeOf } from '../../contracts/node-api.js'
import { fromWire, toWire } from '../../../src/adapters/control/wire.js'

const bytes = fc.uint8Array({ maxLength: 50 }).map((one) => new Uint8Array(one))
const key = fc.oneof(
  fc.constantFrom('$bytes', '$$bytes', '$$$bytes', 'bytes', 'x'),
  fc.string({ maxLength: 5 }).filter((one) => one !== '__proto__')
)
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    bytes,
    tie('array'),
    tie('object')
  ),
  array: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true })
}))

test('every value, bytes and look-alikes included, survives the way through JSON', (t: Assert) => {
  let bytesSeen = 0
  fc.assert(
    fc.property(value, (one) => {
      if (one instanceof Uint8Array) bytesSeen++
      const back = fromWire(JSON.parse(JSON.stringify(toWire(one))))
      return fc.stringify(back) === fc.stringify(one)
    }),
    { numRuns: 500 }
  )
  t.ok(bytesSeen > 0)
})

test('values without bytes are not copied', (t: Assert) => {
  const plain = { a: [1, { b: 'x' }], c: null }
  t.is(toWire(plain), plain)
  t.is(fromWire(plain), plain)
})

test('a $bytes that is no base64 is USAGE', async (t: Assert) => {
  for (const wrong of [5, null, 'a', '####', 'YQ=', { $bytes: 'YQ==' }]) {
    t.is(await codeOf(Promise.resolve().then(() => fromWire({ $bytes: wrong }))), 'USAGE', JSON.stringify(wrong))
  }
  t.alike(fromWire({ $bytes: 'YQ==' }), new Uint8Array([97]))
})
