import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { sizeOf } from '../../src/kit/size.js'
import { holds } from '../support/holds.js'

test('the size grows with every text, byte array and member', (t) => {
  t.ok(sizeOf('x'.repeat(1000)) >= 1000)
  t.ok(sizeOf(new Uint8Array(1000)) >= 1000)
  t.ok(sizeOf({ key: ['x'.repeat(500), { deep: 'y'.repeat(500) }] }) >= 1000)
  t.ok(sizeOf({ ['k'.repeat(1000)]: 1 }) >= 1000)
  t.ok(sizeOf(null) > 0)
})

test('a text with a character above U+00FF counts two bytes a character, as it holds', (t) => {
  t.ok(sizeOf(`${'x'.repeat(1000)}\u0100`) >= 2002)
  t.ok(sizeOf('\u00ff'.repeat(1000)) < 1100)
})

test('it is at least the texts of any JSON and within a factor of its JSON form', async (t) => {
  const property = fc.property(fc.jsonValue(), (value) => {
    const text = JSON.stringify(value).length
    const size = sizeOf(value)
    assert.ok(size <= 16 * (text + 1), `${size} for ${text}`)
    assert.ok(size * 6 >= text, `${size} for ${text}`)
  })
  await holds(t, property, 300)
})

test('depth does not overflow the stack', (t) => {
  let deep: unknown = 'x'
  for (let i = 0; i < 100_000; i++) deep = [deep]
  t.ok(sizeOf(deep) > 100_000)
})
