import assert from 'node:assert/strict'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { A2AMetrics } from '../../src/node/observe/observability.js'
import type { InvocationRecord } from '../../src/ports/tool-calls.js'
import { ranHere } from '../support/command-line.js'
import { capability } from '../support/fake-agents.js'
import { holds } from '../support/holds.js'
import { apiOf, localNodes } from '../support/local-nodes.js'
import { parsePrometheus } from '../support/prometheus.js'

/** A call as it is made, the name under which it counts, and the code of its error; null for a result. */
const CALLS = [
  { name: 'calc__ok', args: { n: 1 }, tool: 'calc.ok', code: null },
  { name: 'calc.ok', args: { n: 2, text: '"quoted" \\ \n\u2028' }, tool: 'calc.ok', code: null },
  { name: 'calc__fails', args: {}, tool: 'calc.fails', code: 'TASK_FAILED' },
  { name: 'calc__ok', args: { n: 'no number' }, tool: 'calc.ok', code: 'INVALID_ARGUMENT' },
  { name: 'health', args: {}, tool: 'health', code: null },
  { name: 'no__such_tool', args: {}, tool: 'unknown', code: 'NOT_FOUND' }
] as const

type Made = (typeof CALLS)[number]

async function scene(t: Assert) {
  const { start, homeOf } = await localNodes(t)
  const node = await start('a', { name: 'a', settings: { 'http.listen': '127.0.0.1:0' } })
  await node.attach({
    id: 'calc',
    capabilities: [
      capability('calc.ok', { inputSchema: { type: 'object', properties: { n: { type: 'integer' } } } }),
      capability('calc.fails', { inputSchema: { type: 'object' } })
    ],
    run: ({ capability: id }) => {
      if (id === 'calc.fails') throw new Error('no')
      return { done: true }
    }
  })
  const { token } = await apiOf(node).call('token.create', { tier: 0, scopes: ['read', 'send', 'admin'] })
  const url = node.info.http ?? ''
  const client = new Client({ name: 'test', version: '1.0.0' })
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }))
  t.teardown(() => client.close(), { order: -1 })
  const cli = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ranHere(['--home', homeOf('a').home, ...args], {})
    assert.equal(code, 0, stderr)
    return stdout
  }
  const lines = async <T>(...args: string[]): Promise<T[]> =>
    (await cli(...args, '--json'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as T)
  const scraped = async (): Promise<string> => await (await fetch(`${url}/metrics`, { headers })).text()
  return { node, client, cli, lines, scraped }
}

/** Counts of the calls by tool: all, and those with an error. */
function counted(calls: readonly Made[]): Map<string, { calls: number; errors: number }> {
  const counts = new Map<string, { calls: number; errors: number }>()
  for (const { tool, code } of calls) {
    const { calls: all, errors } = counts.get(tool) ?? { calls: 0, errors: 0 }
    counts.set(tool, { calls: all + 1, errors: errors + (code === null ? 0 : 1) })
  }
  return counts
}

test('the operator sees the tool counts, times, errors and events that a program sees, and the numbers equal reality', {
  timeout: 120_000
}, async (t: Assert) => {
  const { node, client, cli, lines, scraped } = await scene(t)
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom(...CALLS), { minLength: 1, maxLength: 6 }),
    async (calls) => {
      node.observability.resetMetrics()
      const before = (await lines<InvocationRecord>('tools', 'calls')).length
      const eventsBefore = (await lines('events', '--type', 'tool-invocation')).length
      for (const { name, args } of calls) await client.callTool({ name, arguments: args })
      const [{ a2a }] = (await lines('metrics')) as [{ a2a: A2AMetrics }]
      assert.deepEqual(a2a, JSON.parse(JSON.stringify(node.observability.getMetrics())))
      const wanted = counted(calls)
      const errors = calls.filter(({ code }) => code !== null).length
      assert.deepEqual([a2a.totalToolInvocations, a2a.toolErrorCount], [calls.length, errors])
      assert.equal(a2a.tools.length, wanted.size)
      const [table, { samples }] = [await cli('metrics'), parsePrometheus((await scraped()).trimEnd())]
      for (const [tool, { calls: all, errors: failed }] of wanted) {
        const one = a2a.tools.find((other) => other.tool === tool)
        assert.deepEqual([one?.invocations, one?.errors, one?.timed], [all, failed, all])
        assert.ok(new RegExp(`^${tool.replace('.', '\\.')} +${all} +${failed} +\\d`, 'm').test(table), table)
        assert.equal(samples.get(`a2a_node_tool_invocations_total{tool="${tool}"}`), all)
        assert.equal(samples.get(`a2a_node_tool_errors_total{tool="${tool}"}`), failed)
        assert.equal(samples.get(`a2a_node_tool_seconds_sum{tool="${tool}"}`), (one?.totalDurationMs ?? 0) / 1000)
      }
      const records = (await lines<InvocationRecord>('tools', 'calls')).slice(before)
      assert.deepEqual(
        records.map((one) => [one.isUnknown === true ? 'unknown' : one.tool, one.arguments, one.error?.code ?? null]),
        calls.map(({ tool, args, code }) => [tool, args, code])
      )
      const took = records.reduce((sum, { durationMs }) => sum + durationMs, 0)
      assert.ok(Math.abs(a2a.averageToolDurationMs - took / calls.length) < 1e-6)
      const events = (await lines<{ data: { durationMs: number } }>('events', '--type', 'tool-invocation')).slice(
        eventsBefore
      )
      assert.deepEqual(
        events.map(({ data }) => data.durationMs),
        records.map(({ durationMs }) => durationMs)
      )
      const failed = await lines<{ data: { code: string } }>('events', '--type', 'tool-invocation', '--failed')
      const codes = calls.flatMap(({ code }) => (code === null ? [] : [code]))
      assert.deepEqual(errors === 0 ? [] : failed.slice(-errors).map(({ data }) => data.code), codes)
      const [last] = await lines<InvocationRecord>('tools', 'calls', '--failed', '--limit', '1')
      assert.equal(errors === 0 ? undefined : last?.error?.code, codes.at(-1))
    }
  )
  await holds(t, property, 30)
})

test('the operator sees the messages of a node, their routing time and their refusals, with the filters of events', async (t: Assert) => {
  const { node, lines, cli } = await scene(t)
  const program = await node.attach({ id: 'sender', tier: 3 })
  await node.attach({ id: 'strong', tier: 0 })
  node.observability.resetMetrics()
  await program.send({ recipient: 'calc', type: 'notification', payload: 1 }).catch(() => {})
  await program.send({ recipient: 'nobody', type: 'notification', payload: 1 }).catch(() => {})
  await program.send({ recipient: 'strong', type: 'notification', payload: 1 }).catch(() => {})
  const [{ a2a }] = (await lines('metrics')) as [{ a2a: A2AMetrics }]
  const metrics = node.observability.getMetrics()
  t.alike(a2a, JSON.parse(JSON.stringify(metrics)))
  const own = node.observability.getRecentEvents().filter(({ sender = '' }) => sender.startsWith('sender@'))
  t.is(metrics.errorCount, own.filter(({ success }) => success === false).length)
  t.ok(metrics.errorCount >= 2)
  type Line = { readonly type: string; readonly data: { readonly sender?: string; readonly success?: boolean } }
  const shownEvents = await lines<Line>('events', '--all', '--about', 'sender@a')
  t.alike(
    shownEvents.filter(({ type }) => type !== 'refusal').map(({ type, data }) => [type, data.success ?? null]),
    own.map(({ type, success = null }) => [type, success])
  )
  const failed = await lines<Line>('events', '--type', 'routing-decision', '--failed', '--about', 'sender@a')
  t.is(failed.length, metrics.errorCount)
  t.is((await lines('events', '--all', '--limit', '2')).length, 2)
  t.ok((await lines<Line>('events')).every(({ type }) => !type.startsWith('message-') && type !== 'routing-decision'))
  t.ok((await cli('metrics')).includes('mean routing time'))
})

test('the name of a tool for MCP clients finds its events and calls as its own name does, whichever the client used', {
  timeout: 120_000
}, async (t: Assert) => {
  const { node, client, lines } = await scene(t)
  const ids = [`${'long-'.repeat(14)}name`, 'v1/ok', 'name:of:colons']
  await node.attach({ id: 'wide', capabilities: ids.map((id) => capability(id)), run: () => ({ done: true }) })
  const { tools } = await client.listTools()
  const listed = tools.map(({ name, _meta }) => [String(_meta?.['a2a-node/name']), name] as const)
  const names = listed.filter(([canonical]) => canonical.startsWith('wide.') || canonical === 'calc.ok')
  t.is(names.length, ids.length + 1)
  for (const [canonical, published] of names) {
    t.not(published, canonical, 'clients see another name')
    for (const name of [canonical, published]) await client.callTool({ name, arguments: {} })
    for (const name of [canonical, published]) {
      t.is(
        (await lines('events', '--all', '--type', 'tool-invocation', '--about', name)).length,
        2,
        `events of ${name}`
      )
      t.is((await lines('tools', 'calls', '--tool', name)).length, 2, `calls of ${name}`)
    }
  }
  await client.callTool({ name: 'health', arguments: {} })
  const [health] = await lines<{ data: object }>('events', '--about', 'health', '--type', 'tool-invocation')
  t.absent('publishedName' in (health?.data ?? {}), 'one name is not given twice')
})
