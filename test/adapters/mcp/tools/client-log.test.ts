import test, { type Assert } from 'brittle'
import type { Client } from '@modelcontextprotocol/client'
import type { ToolContext } from '../../../../src/adapters/mcp/server/tool.js'
import { call, CLAIM, McpScene, request } from '../../../support/mcp.js'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** A tool that writes a line of every level. */
function chatty(): McpScene {
  const scene = new McpScene()
  scene.tool('chat', (_args, { log }) => {
    for (const level of LEVELS) log(level, `a line: ${level}`, { secret: level })
    return Promise.resolve('done')
  })
  return scene
}

/** What a client is told; it comes before the answer. */
function linesOf(client: Client): string[] {
  const told: string[] = []
  client.setNotificationHandler(
    'notifications/message',
    ({ params: { level, data } }) => void told.push(`${level} ${JSON.stringify(data)}`)
  )
  return told
}

test('a client with a handshake gets the lines of tools from the level that it requested, and none before', async (t: Assert) => {
  const scene = chatty()
  const [client, other] = [await scene.client(t, 'legacy'), await scene.client(t, 'legacy')]
  const [told, untold] = [linesOf(client), linesOf(other)]
  await client.callTool({ name: 'chat' })
  t.alike(told, [], 'it did not ask')
  await client.setLoggingLevel('warning')
  await client.callTool({ name: 'chat' })
  await other.callTool({ name: 'chat' })
  t.alike(told, ['warning "a line: warn"', 'error "a line: error"'])
  t.alike(untold, [])
  await client.setLoggingLevel('emergency')
  await client.callTool({ name: 'chat' })
  t.is(told.length, 2)
  t.is(scene.logs.filter(({ message }) => message.startsWith('a line: ')).length, 16, 'the node has all of them')
})

test('since MCP 2026-07-28 each request names its level, or gets no lines', async (t: Assert) => {
  const client = chatty().connect(t)
  await client.ask(call(1, 'chat', {}, CLAIM))
  await client.ask(call(2, 'chat', {}, { ...CLAIM, 'io.modelcontextprotocol/logLevel': 'error' }))
  t.alike(
    client.told.map(({ params }) => params),
    [{ level: 'error', data: 'a line: error' }]
  )
  const absent = await client.ask(request(3, 'logging/setLevel', { level: 'debug', _meta: CLAIM }))
  t.is(absent.error?.code, -32_601)
})

test('a level that is none is refused', async (t: Assert) => {
  const client = chatty().connect(t)
  await client.open()
  for (const params of [{}, { level: 'loud' }, { level: 3 }, undefined]) {
    t.is((await client.ask(request(JSON.stringify(params ?? null), 'logging/setLevel', params))).error?.code, -32_602)
  }
  await client.ask(call('call', 'chat'))
  t.alike(client.told, [])
})

test('lines that nobody could read are not sent: too many at once, too long, after the end', async (t: Assert) => {
  const scene = new McpScene()
  let late: ToolContext['log'] = () => {}
  scene.tool('flood', (_args, { log }) => {
    late = log
    for (let line = 0; line < 10_000; line++) log('info', `line ${line}`)
    return Promise.resolve(null)
  })
  scene.tool('long', (_args, { log }) => {
    log('info', 'x'.repeat(100_000))
    return Promise.resolve(null)
  })
  const client = scene.connect(t)
  await client.open()
  await client.ask(request('level', 'logging/setLevel', { level: 'debug' }))
  await client.ask(call('flood', 'flood'))
  t.is(client.told.length, 64)
  late('error', 'after the end')
  await client.ask(call('long', 'long'))
  t.is(client.told.length, 65)
  t.is((client.told[64]['params'] as { data: string }).data.length, 4096)
})
