import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { fromBase64, toBase64 } from '../../src/kit/bytes.js'
import { holds } from '../support/holds.js'

test('bytes come back from base64 as they went in', async (t) => {
  await holds(
    t,
    fc.property(fc.uint8Array(), (bytes) => {
      assert.deepEqual([...(fromBase64(toBase64(bytes)) ?? [])], [...bytes])
    })
  )
})

test('text that is no base64 gives null', (t) => {
  for (const text of ['%%%%', 'AAA', 'AA==\n', 'AB==', 'a b=', '-_-_']) t.is(fromBase64(text), null, text)
})
