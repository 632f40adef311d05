import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { ParamHeaders } from '../../../../src/adapters/mcp/http/param-headers.js'
import type { ToolSchema, RegisteredTool } from '../../../../src/adapters/mcp/server/tool.js'
import { arbJson } from '../../../support/mcp.js'
import { holds } from '../../../support/holds.js'

const SCHEMA: ToolSchema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    deep: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
    flag: { type: 'boolean', 'x-mcp-header': 'Flag' },
    list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'Lost' } },
    plain: { type: 'string' }
  }
}

function over(inputSchema: ToolSchema): ParamHeaders {
  const definition = { name: 't', description: '', inputSchema }
  const tool: RegisteredTool = { definition, handler: () => Promise.resolve(null), validator: () => [] }
  return new ParamHeaders({ find: (name) => Promise.resolve(name === 't' ? tool : undefined) })
}

test('headers that repeat arguments must say what these say, and only of arguments that are marked and given', async (t: Assert) => {
  const headers = over(SCHEMA)
  const hello = Buffer.from('Hello').toString('base64')
  const rows: readonly (readonly [Record<string, unknown>, Record<string, string>, boolean])[] = [
    [{ region: 'eu' }, { 'mcp-param-region': 'eu' }, true],
    [{ region: 'eu' }, { 'mcp-param-region': 'us' }, false],
    [{ region: 'eu' }, { 'mcp-param-region': 'EU' }, false],
    [{ region: 'eu' }, {}, false],
    [{}, {}, true],
    [{ region: null }, {}, true],
    [{ plain: 'x', list: ['y'] }, {}, true],
    [{ region: 'Hello' }, { 'mcp-param-region': `=?base64?${hello}?=` }, true],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }, false],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVs!!!bG8=?=' }, false],
    [{ region: hello }, { 'mcp-param-region': hello }, true],
    [{ region: `=?base64?${hello}` }, { 'mcp-param-region': `=?base64?${hello}` }, true],
    [{ deep: { count: 42 } }, { 'mcp-param-count': '42.0' }, true],
    [{ deep: { count: 42 } }, { 'mcp-param-count': '0x2a' }, false],
    [{ deep: { count: 42 } }, { 'mcp-param-count': '43' }, false],
    [{ flag: false }, { 'mcp-param-flag': 'false' }, true],
    [{ flag: false }, { 'mcp-param-flag': '0' }, false]
  ]
  for (const [args, given, isGood] of rows) {
    const fault = await headers.faultOf({ name: 't', arguments: args }, given)
    t.is(fault === null, isGood, JSON.stringify([args, given]))
    if (fault !== null) t.alike([fault.status, fault.code], [400, -32_020])
  }
  t.is(
    await headers.faultOf({ name: 'other', arguments: { region: 'eu' } }, {}),
    null,
    'a caller without a tool name gets this elsewhere'
  )
})

test('no schema, arguments and headers make it throw, and a client that repeats arguments faithfully passes', async (t) => {
  const marked = fc.record({
    type: fc.constantFrom('string', 'integer', 'boolean', 'number'),
    'x-mcp-header': arbJson({ maxDepth: 1 })
  })
  const schema = fc.record({ properties: fc.dictionary(fc.string(), fc.oneof(marked, arbJson())), rest: arbJson() })
  await holds(
    t,
    fc.asyncProperty(schema, arbJson(), fc.dictionary(fc.string(), fc.string()), async (given, args, headers) => {
      await over({ type: 'object', ...given }).faultOf({ name: 't', arguments: args }, headers)
    })
  )
  const text = fc.string({ unit: 'binary' }).filter((value) => Buffer.from(value).toString() === value)
  await holds(
    t,
    fc.asyncProperty(text, async (region) => {
      const said = `=?base64?${Buffer.from(region).toString('base64')}?=`
      const fault = await over(SCHEMA).faultOf({ name: 't', arguments: { region } }, { 'mcp-param-region': said })
      if (fault !== null) throw new Error(fault.message)
    })
  )
})
