import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { faultText, givenText, shapeText } from '../../../src/kit/schema/text.js'
import { holds } from '../../support/holds.js'

test('the shape of an object names its members, the optional ones, and alternatives of which it needs one', (t) => {
  const text = { type: 'string' }
  for (const [schema, shape] of [
    [
      { type: 'object', required: ['file'], properties: { limit: { type: 'integer' }, file: text } },
      '{"file": string, "limit"?: integer}'
    ],
    [
      { properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      '{"a"?: string, "b"?: string} with "a" or "b"'
    ],
    [{ type: 'object', required: ['any'] }, '{"any": anything}'],
    [{ type: 'object' }, '{...}'],
    [{ type: 'array', items: { enum: ['x', 1] } }, '["x" | 1, ...]'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ oneOf: [text, { const: 7 }] }, 'string | 7'],
    [{}, 'anything'],
    [true, 'anything'],
    [false, 'nothing'],
    [
      { type: 'object', properties: { a: { properties: { b: { properties: { c: { properties: { d: text } } } } } } } },
      '{"a"?: {"b"?: {"c"?: {...}}}}'
    ]
  ] as const)
    t.is(shapeText(schema), shape)
})

test('of many members and values the first are named, and the whole stays short', (t) => {
  const properties = Object.fromEntries([...Array(40).keys()].map((i) => [`m${i}`, { type: 'null' }]))
  t.ok(/^\{"m0"\?: null, .*"m11"\?: null, \.\.\.\}$/.test(shapeText({ properties })))
  t.is(shapeText({ enum: [...Array(40).keys()] }), '0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | ...')
})

test('any value at all has a shape of at most 300 characters on one line', async (t) => {
  const property = fc.property(fc.oneof(fc.jsonValue(), fc.anything()), (schema) => {
    const shape = shapeText(schema)
    assert.ok(shape.length > 0 && shape.length <= 300 && !shape.includes('\n'), shape)
  })
  await holds(t, property, 500)
})

test('faults and given values are reported briefly', (t) => {
  const faults = ['must have "a"', 'must be string', 'three', 'four'].map((message, i) => ({
    path: i === 0 ? '' : `/${i}`,
    message
  }))
  t.is(faultText(faults), 'it must have "a"; /1 must be string; /2 three')
  t.is(givenText({ a: ['b'] }), '{"a":["b"]}')
  t.is(givenText('x'.repeat(500)).length, 200)
  t.is(givenText(undefined), 'nothing')
})
