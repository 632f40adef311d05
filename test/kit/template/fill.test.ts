import test from 'brittle'
import fc from 'fast-check'
import assert from 'node:assert/strict'
import {
  FILLED_MAX,
  VALUES_MAX,
  fillTemplate,
  type Lookup,
  malformedIn,
  referencesIn,
  referenceText,
  valueAt
} from '../../../src/kit/template/fill.js'
import { holds } from '../../support/holds.js'

const values: Record<string, unknown> = {
  a: { n: 1, list: ['x', { deep: null }], 'a/b': 'slash' },
  text: 'hello',
  bytes: new Uint8Array([1, 2])
}
const lookup: Lookup = ({ name, pointer, facet }) =>
  facet === 'status' ? 'completed' : Object.hasOwn(values, name) ? valueAt(values[name], pointer) : undefined

test('a string that is nothing but a reference becomes the value, inside a longer one it becomes text', (t) => {
  const template = {
    whole: '{a/list}',
    part: 'n={a/n}, {text}',
    deep: ['{a/list/1/deep}', 7],
    status: '{a:status}',
    key: '{a/a~1b}'
  }
  const filled = {
    whole: ['x', { deep: null }],
    part: 'n=1, hello',
    deep: [null, 7],
    status: 'completed',
    key: 'slash'
  }
  t.alike(fillTemplate(template, lookup), { ok: true, value: filled })
  t.alike(fillTemplate('{bytes}', lookup), { ok: true, value: values['bytes'] })
})

test('braces that name nothing are text, and doubled ones are the text itself', (t) => {
  t.alike(fillTemplate(['{}', '{ a }', '{"a":1}', '{{a}}', 'x{{a/n}}y'], lookup), {
    ok: true,
    value: ['{}', '{ a }', '{"a":1}', '{a}', 'x{a/n}y']
  })
})

test('only own members are reached: nothing of a prototype is a value', (t) => {
  for (const pointer of [
    '__proto__',
    'constructor',
    'toString',
    'list/length',
    'list/-1',
    'list/01',
    'n/toFixed',
    'list/__proto__'
  ]) {
    t.alike(
      fillTemplate(`{a/${pointer}}`, lookup),
      { ok: false, reason: `there is no value at {a/${pointer}}` },
      pointer
    )
  }
  const hostile = JSON.parse('{"__proto__": "{text}"}') as unknown
  const filled = fillTemplate(hostile, lookup)
  assert.ok(filled.ok)
  t.is(Object.getPrototypeOf(filled.value), Object.prototype)
  t.is((filled.value as { text?: unknown }).text, undefined)
})

test('a template that would become larger than its bound is refused, however little it says', (t) => {
  values['big'] = 'x'.repeat(1024 * 1024)
  const template = 'y{big}'.repeat(FILLED_MAX / (1024 * 1024) + 1)
  t.is(fillTemplate(template, lookup).ok, false)
  t.ok(fillTemplate('y{big}', lookup).ok)
})

test('a value that is named often counts as often as it is named, whole or in parts', (t) => {
  values['big'] = { part: 'x'.repeat(1024 * 1024) }
  const often = (text: string, count: number): string[] => Array.from({ length: count }, () => text)
  t.ok(fillTemplate(often('{big}', 10), lookup).ok)
  t.is(fillTemplate(often('{big}', VALUES_MAX / (1024 * 1024)), lookup).ok, false)
  t.is(fillTemplate({ all: often('{big/part}', VALUES_MAX / (1024 * 1024)) }, lookup).ok, false)
})

test('filling any template twice gives the same, and every reference of it is found', async (t) => {
  const name = fc.constantFrom('a', 'text', 'nobody')
  const reference = fc.record({
    name,
    pointer: fc.array(fc.constantFrom('n', 'list', '0', 'a/b', '~', 'x'), { maxLength: 3 }),
    facet: fc.constantFrom('result', 'status', 'error')
  })
  const leaf = fc.oneof(
    fc.string(),
    reference.map((one) => referenceText(one as never)),
    fc.tuple(fc.string(), reference).map(([text, one]) => `${text}${referenceText(one as never)}`),
    fc.integer()
  )
  const template = fc.oneof(leaf, fc.array(leaf), fc.dictionary(fc.string(), leaf))
  await holds(
    t,
    fc.property(template, (one) => {
      const seen: string[] = []
      const filled = fillTemplate(one, (at) => {
        seen.push(referenceText(at))
        return lookup(at)
      })
      assert.deepEqual(fillTemplate(one, lookup), filled)
      const all = referencesIn(one).map((found) => referenceText(found.reference))
      if (filled.ok) assert.deepEqual(seen, all)
      else assert.ok(all.length > 0)
    })
  )
})

test('texts in braces that begin with a known name but are no reference are found, with their paths', (t) => {
  const isKnown = (name: string): boolean => name === 'a'
  const found = (template: unknown): string[] => malformedIn(template, isKnown).map(({ text }) => text)
  const malformed = ['{a.n}', '{ a }', '{a }', '{a[0]}', '{a:size}', '{a/n m}', '{a.n.m[2]}']
  for (const text of malformed) t.alike(found(`x ${text} y`), [text], text)
  t.alike(malformedIn({ list: [1, { deep: '{a.n}' }] }, isKnown), [{ text: '{a.n}', path: ['list', 1, 'deep'] }])
  for (const text of ['{a}', '{a/n}', '{a:status}', '{b.n}', '{{a.n}}', '{}', '{"a":1}', '{a = 1}', 'a.n', '{a{a}.n}'])
    t.alike(found(text), [], text)
  t.alike(malformedIn({ '{a.n}': 1 }, isKnown), [], 'keys stay as they are')
})

test('malformed references are found in linear time', (t) => {
  const isKnown = (): boolean => true
  for (const piece of ['{', '{a', '{a.', '{ ', ' ', '{a:', 'a']) {
    const text = piece.repeat(200_000)
    const started = performance.now()
    malformedIn(text, isKnown)
    malformedIn(`{a${text}`, isKnown)
    t.ok(performance.now() - started < 5000, `${piece} repeated`)
  }
})
