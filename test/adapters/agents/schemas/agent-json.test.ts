import test from 'brittle'
import fc from 'fast-check'
import { agentJsonText, toAgentJson } from '../../../../src/adapters/agents/schemas/agent-json.js'
import { holds } from '../../../support/holds.js'

test('bytes anywhere in a value become base64 text', (t) => {
  const value = {
    a: new Uint8Array([1, 2]),
    list: [Buffer.from('hi'), 'x'],
    deep: { b: { c: new Uint8Array() } },
    keep: 1
  }
  t.alike(toAgentJson(value), { a: 'AQI=', list: ['aGk=', 'x'], deep: { b: { c: '' } }, keep: 1 })
  t.is(toAgentJson(new Uint8Array([255])), '/w==')
})

test('parts without bytes are shared, not copied', (t) => {
  const part = { x: [1, { y: null }] }
  t.is(toAgentJson(part), part)
  const converted = toAgentJson({ part, raw: new Uint8Array([0]) }) as { part: unknown }
  t.is(converted.part, part)
})

test('bytes that lie deep take no longer than others: nothing is looked at twice for each level above it', (t) => {
  const bytes = new Uint8Array([1])
  let looks = 0
  let value: unknown = {
    get a() {
      looks++
      return bytes
    }
  }
  for (let depth = 1; depth < 12; depth++) value = { a: value }
  t.alike(JSON.parse(JSON.stringify(toAgentJson(value))), JSON.parse('{"a":'.repeat(12) + '"AQ=="' + '}'.repeat(12)))
  t.ok(looks <= 4, `${looks} looks`)
})

test('a view into a larger buffer gives its own bytes only', (t) => {
  t.is(toAgentJson(new Uint8Array([9, 1, 2, 9]).subarray(1, 3)), 'AQI=')
})

test('plain JSON is left as it is', async (t) => {
  await holds(
    t,
    fc.property(fc.jsonValue(), (value) => toAgentJson(value) === value || Number.isNaN(value))
  )
})

test('as text, bytes are base64 for every kind of array, and a value without a JSON form is reported apart', async (t) => {
  t.is(agentJsonText({ a: Buffer.from('hi'), b: new Uint8Array([1]) }), '{"a":"aGk=","b":"AQ=="}')
  t.is(agentJsonText(Buffer.from('hi')), '"aGk="')
  t.is(
    agentJsonText(() => 1),
    undefined
  )
  await t.exception.all(() => agentJsonText(1n))
})
