import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { canonicalJson } from '../../../src/kit/json.js'
import {
  MAX_TOOL_CALL_CHARS,
  MAX_TOOL_CALLS,
  MAX_TOOL_CALLS_CHARS,
  ToolCalls
} from '../../../src/node/observe/tool-calls.js'
import type { InvocationRecord } from '../../../src/ports/tool-calls.js'
import { holds } from '../../support/holds.js'
import { arbJson } from '../../support/mcp.js'

const OUTCOMES = [
  'success',
  'tool_error',
  'timeout',
  'late_completed',
  'aborted',
  'disconnected_completed',
  'protocol_error'
] as const
const arbValue = arbJson({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)
const arbRecord: fc.Arbitrary<InvocationRecord> = fc.record(
  {
    tool: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 }),
    isUnknown: fc.boolean(),
    arguments: arbValue,
    result: arbValue,
    error: fc.record(
      { code: fc.string(), message: fc.string(), details: arbValue },
      { requiredKeys: ['code', 'message'], noNullPrototype: true }
    ),
    durationMs: fc.double({ min: 0, max: 1e9, noNaN: true }).map(Math.abs),
    outcome: fc.constantFrom(...OUTCOMES),
    runId: fc.uuid(),
    correlationId: fc.string(),
    at: fc.nat()
  },
  { requiredKeys: ['tool', 'arguments', 'durationMs', 'outcome', 'correlationId', 'at'], noNullPrototype: true }
)

function recordOf(change: Partial<InvocationRecord> = {}): InvocationRecord {
  return { tool: 'a.b', arguments: {}, durationMs: 1, outcome: 'success', correlationId: 'c', at: 1, ...change }
}

test('a record of any tool call is stored, exported as JSON and read back as it was', async (t: Assert) => {
  const property = fc.property(fc.array(arbRecord, { maxLength: 8 }), (records) => {
    const calls = new ToolCalls()
    for (const record of records) calls.add(record)
    const exported = calls.list().map((one) => JSON.stringify(one))
    return canonicalJson(exported.map((text) => JSON.parse(text) as unknown)) === canonicalJson(records)
  })
  await holds(t, property, 300)
})

test('a later change of its arguments by a handler changes no record', (t: Assert) => {
  const calls = new ToolCalls()
  const args = { a: 1 }
  calls.add(recordOf({ arguments: args }))
  args.a = 2
  t.alike(calls.list()[0]?.arguments, { a: 1 })
})

test('records are bounded in number and size; of a large one the content is omitted, and says so', (t: Assert) => {
  const calls = new ToolCalls()
  for (let at = 0; at < MAX_TOOL_CALLS + 3; at++) calls.add(recordOf({ at }))
  t.alike([calls.list().length, calls.list()[0]?.at], [MAX_TOOL_CALLS, 3])
  const large = 'x'.repeat(MAX_TOOL_CALL_CHARS)
  calls.add(recordOf({ arguments: { large }, result: 1 }))
  t.alike(
    calls.list({ limit: 1 }),
    [{ ...recordOf(), arguments: undefined, omitted: ['arguments', 'result'] }].map(withoutUndefined)
  )
  const unread = Object.defineProperty(recordOf(), 'result', {
    enumerable: true,
    get: () => t.fail('a large result is not parsed')
  })
  calls.add(unread, MAX_TOOL_CALL_CHARS + 1)
  calls.add(recordOf({ error: { code: 'X', message: large }, outcome: 'tool_error' }))
  t.alike(calls.list({ limit: 1 })[0]?.omitted, ['arguments', 'details'])
  calls.add(
    recordOf({
      arguments: { large },
      error: { code: 'TIMEOUT', message: 'late', details: { a: 1 } },
      outcome: 'timeout'
    })
  )
  t.alike(
    calls.list({ limit: 1 })[0]?.error,
    { code: 'TIMEOUT', message: 'late' },
    'the operator still reads why it failed'
  )
  const some = 'x'.repeat(MAX_TOOL_CALL_CHARS / 2)
  for (let i = 0; i < MAX_TOOL_CALLS; i++) calls.add(recordOf({ arguments: some }))
  const chars = calls.list().reduce((sum, one) => sum + JSON.stringify(one).length, 0)
  t.ok(chars <= MAX_TOOL_CALLS_CHARS && chars > MAX_TOOL_CALLS_CHARS / 2, `${chars}`)
})

test('records are found by tool, failure and time', (t: Assert) => {
  const calls = new ToolCalls()
  calls.add(recordOf({ at: 1 }))
  calls.add(recordOf({ at: 2, tool: 'c.d', outcome: 'timeout' }))
  calls.add(recordOf({ at: 3, tool: 'c.d' }))
  const times = (...query: Parameters<ToolCalls['list']>): number[] => calls.list(...query).map(({ at }) => at)
  t.alike(times(), [1, 2, 3])
  t.alike(times({ tool: 'c.d' }), [2, 3])
  t.alike(times({ failed: true }), [2])
  t.alike(times({ since: 2 }), [2, 3])
  t.alike(times({ tool: 'c.d', limit: 1 }), [3])
})

function withoutUndefined<T extends object>(value: T): object {
  return JSON.parse(JSON.stringify(value)) as object
}
