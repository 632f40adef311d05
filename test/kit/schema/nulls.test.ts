import test from 'brittle'
import fc from 'fast-check'
import { A2A_NULLS, MCP_NULLS, NullFreeEvents, withoutNulls, withoutNullsText } from '../../../src/kit/schema/nulls.js'
import { holds } from '../../support/holds.js'

const rules = { data: new Set(['data']) }

/** Adds a null member to each object outside of `data`. */
function withNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNulls)
  if (typeof value !== 'object' || value === null) return value
  return {
    ...Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === 'data' ? one : withNulls(one)])),
    'absent?': null
  }
}

test('null is absent in foreign JSON: members go, data and lists stay, and clean JSON is not copied', async (t) => {
  const json = fc.jsonValue().filter((value) => withoutNulls(value, rules) === value)
  await holds(
    t,
    fc.property(json, fc.jsonValue(), (value, data) => {
      const clean = { value: value ?? 0, data: data ?? 1, list: [null] }
      return (
        JSON.stringify(withoutNulls(withNulls(clean), rules)) === JSON.stringify(clean) &&
        withoutNulls(clean, rules) === clean
      )
    })
  )
  t.alike(
    withoutNulls(
      {
        parts: [
          { text: 'a', data: null },
          { data: null, url: null }
        ]
      },
      A2A_NULLS
    ),
    {
      parts: [{ text: 'a' }, { data: null }]
    }
  )
  const failed = { jsonrpc: '2.0', id: 7, error: { code: -32603, message: 'no', data: null } }
  const batch = { parts: [{ data: null }], errors: [{ code: 'X', data: null }] }
  t.alike(
    withoutNulls(failed, A2A_NULLS),
    { jsonrpc: '2.0', id: 7, error: { code: -32603, message: 'no' } },
    'data of an error is absent'
  )
  t.alike(withoutNulls(batch, A2A_NULLS), { parts: [{ data: null }], errors: [{ code: 'X' }] })
  t.alike(withoutNulls({ error: { code: 1, data: { a: null } } }, A2A_NULLS), { error: { code: 1, data: { a: null } } })
  t.alike(
    withoutNulls(
      { jsonrpc: '2.0', id: null, error: null, result: { _meta: null, structuredContent: { a: null } } },
      MCP_NULLS
    ),
    {
      jsonrpc: '2.0',
      id: null,
      result: { structuredContent: { a: null } }
    }
  )
})

test('events of a stream lose their nulls however the stream is cut', async (t) => {
  const stream =
    ': beat\r\n\r\nid: 1\ndata: {"a":null,"b":1}\n\ndata:{"error":null}\rdata: null\n\ndata: no JSON null\n\ndata: {"c":null}'
  const clean = ': beat\r\n\r\nid: 1\ndata:{"b":1}\n\ndata:{}\rdata: null\n\ndata: no JSON null\n\ndata:{}'
  await holds(
    t,
    fc.property(fc.array(fc.nat({ max: stream.length })), (cuts) => {
      const lines = new NullFreeEvents(rules)
      const at = [0, ...cuts.sort((a, b) => a - b), stream.length]
      const text = at.slice(1).map((end, index) => lines.push(stream.slice(at[index], end)))
      return text.join('') + lines.end() === clean
    })
  )
  const deep = `${'{"a":'.repeat(100_000)}null${'}'.repeat(100_000)}`
  t.is(withoutNullsText(deep, rules), deep, 'JSON too deep to be copied stays')
})
