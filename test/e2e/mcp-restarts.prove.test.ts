import fs from 'node:fs/promises'
import path from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import test, { type Assert } from 'brittle'
import { connect } from '../../src/client.js'
import { isRunning } from '../support/agents/eventually.js'
import { payloadOf } from '../support/mcp.js'
import { BIN, testMesh, type TestMesh, untilAgent, untilTrue } from '../support/nodes.js'

/** The parts that all official clients share. */
interface AnyClient {
  tools(): Promise<readonly string[]>
  call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>>
  ping(): Promise<unknown>
}

/** An agent that waits for a file. */
const WAITER = `---
name: waiter
description: Waits for a file.
a2a:
  capabilities:
    - id: waiter.wait
      input: { type: object, properties: { file: { type: string } }, required: [file] }
  runtime:
    type: command
    command: [node, -e, "const timer = setInterval(() => require('fs').existsSync(process.argv[1]) && clearInterval(timer), 50)", "{input.file}"]
---
`

interface Serving {
  readonly home: string
  readonly args?: readonly string[]
  readonly mode?: 'auto' | 'legacy'
  readonly onChanged?: () => void
}

function transport(
  mesh: TestMesh,
  { home, args = [] }: Serving
): ConstructorParameters<typeof StdioClientTransport>[0] {
  const words = [BIN, '--home', home, 'mcp', 'serve', ...args]
  return { command: process.execPath, args: words, env: { ...mesh.env }, stderr: 'ignore' }
}

async function newClient(t: Assert, mesh: TestMesh, serving: Serving): Promise<AnyClient & { readonly sdk: Client }> {
  const { mode = 'legacy', onChanged = () => {} } = serving
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode }, listChanged: { tools: { onChanged } } }
  )
  await client.connect(new StdioClientTransport(transport(mesh, serving)))
  t.teardown(() => client.close(), { order: -1 })
  return {
    sdk: client,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args) => payloadOf({ result: await client.callTool({ name, arguments: args }) }),
    ping: () => client.listPrompts()
  }
}

async function oldClient(t: Assert, mesh: TestMesh, serving: Serving): Promise<AnyClient> {
  const client = new OldClient({ name: 'test', version: '1.0.0' })
  await client.connect(new OldStdioTransport(transport(mesh, serving)))
  t.teardown(() => client.close(), { order: -1 })
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args) => payloadOf({ result: await client.callTool({ name, arguments: args }) }),
    ping: () => client.ping()
  }
}

test('clients over stdio go on after a kill and a restart of the node, with 8 calls of each in flight', async (t: Assert) => {
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  const first = await mesh.start('a', { home })
  await fs.writeFile(path.join(home, 'agents', 'waiter.md'), WAITER)
  await untilAgent(first, 'waiter@a')
  const serving = { home, args: ['--no-start'] }
  let changes = 0
  const clients = [
    await newClient(t, mesh, { ...serving, onChanged: () => void changes++ }),
    await newClient(t, mesh, { ...serving, mode: 'auto' }),
    await oldClient(t, mesh, serving)
  ]
  const file = path.join(await mesh.dir(), 'never')
  const inFlight = clients.flatMap((client) => Array.from({ length: 8 }, () => client.call('waiter__wait', { file })))
  const before = await Promise.all(clients.map((client) => client.tools()))
  for (const tools of before) t.ok(tools.includes('waiter__wait') && tools.includes('text__stats'))
  first.kill('SIGKILL')
  for (const answer of await Promise.all(inFlight)) {
    const { code, retryable } = answer['details'] as { code: string; retryable: boolean }
    t.alike([code, retryable], ['NODE_NOT_RUNNING', true])
  }
  t.alike(await Promise.all(clients.map((client) => client.tools())), before, 'the lists of the last time')
  const waiting = clients.map((client) => client.call('text__stats', { text: 'one two' }))
  await mesh.start('a', { home })
  for (const { words } of await Promise.all(waiting)) t.is(words, 2, 'calls in between wait for the node')
  await untilTrue(() => changes > 0, 'the client is notified')
  for (const client of clients) {
    await client.ping()
    t.is((await client.call('text__stats', { text: 'a' }))['words'], 1)
  }
  const many = Array.from({ length: 200 }, (_, i) => clients[0]?.call('text__stats', { text: 'a '.repeat(i) }))
  for (const [words, answer] of (await Promise.all(many)).entries()) if (answer?.['words'] !== words) t.fail(`${words}`)
})

test('two clients that start before any node share one, which ends after the last of them', async (t: Assert) => {
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  t.teardown(() => mesh.run(['--home', home, 'stop']), { order: -2 })
  const [one, other] = await Promise.all(
    ['--embed', '--embed'].map((flag) => newClient(t, mesh, { home, args: [flag, '--network', 'local'] }))
  )
  const counted = await Promise.all([one, other].map((client) => client?.call('text__stats', { text: 'one two' })))
  t.alike(
    counted.map((answer) => answer?.['words']),
    [2, 2]
  )
  const api = connect({ home })
  const { pid } = await api.call('node.info', {})
  await one?.sdk.close()
  t.is((await other?.call('text__stats', { text: 'a' }))?.['words'], 1)
  t.is((await api.call('node.info', {})).pid, pid)
  await other?.sdk.close()
  await untilTrue(() => !isRunning(pid), 'the node ends')

  // A person who starts it, too, keeps it.
  const third = await newClient(t, mesh, { home, args: ['--network', 'local'] })
  t.is((await third.call('text__stats', { text: 'a' }))['words'], 1)
  t.is((await mesh.run(['--home', home, 'start', '--detach'])).code, 0)
  await third.sdk.close()
  const kept = await api.call('node.info', {})
  t.ok((await fs.readdir(path.join(home, 'run'))).includes('stays-after-clients'))
  t.ok(isRunning(kept.pid))
})

test('no node is started where the config or the command says so', async (t: Assert) => {
  const mesh = await testMesh(t)
  for (const [args, config] of [
    [['--no-start'], ''],
    [[], 'mcp: { startNode: false }\n']
  ] as const) {
    const home = path.join(await mesh.dir(), 'a')
    await fs.mkdir(home, { mode: 0o700 })
    await fs.writeFile(path.join(home, 'config.yaml'), config)
    const { call } = await newClient(t, mesh, { home, args })
    const { details, message } = await call('text__stats', { text: 'a' })
    t.is((details as { code: string }).code, 'NODE_NOT_RUNNING')
    t.is(String(message).includes('mcp.startNode'), config !== '')
    t.absent((await fs.readdir(home)).includes('store'))
  }
})

test('clients over HTTP go on after a kill and a restart of the node, without another handshake', async (t: Assert) => {
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  const first = await mesh.start('a', { home, args: ['--http', '0'] })
  const { token } = await first.json<{ token: string }>(['a2a', 'token', 'create'])
  const url = new URL('/mcp', first.info.http ?? '')
  const headers = { authorization: `Bearer ${token}` }
  const old = new OldClient({ name: 'old', version: '1.0.0' })
  const clients = [
    new Client({ name: 'handshake', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } }),
    new Client({ name: 'claims', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  ]
  t.teardown(() => Promise.all([old, ...clients].map((client) => client.close())), { order: -1 })
  await old.connect(new OldHttpTransport(url, { requestInit: { headers } }))
  for (const client of clients)
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }))
  const stats = { name: 'text__stats', arguments: { text: 'one two' } }
  const words = async (): Promise<unknown[]> => {
    const results = await Promise.all([old.callTool(stats), ...clients.map((client) => client.callTool(stats))])
    return results.map((result) => payloadOf({ result })['words'])
  }
  t.alike(await words(), [2, 2, 2])
  first.kill('SIGKILL')
  await first.exited
  await mesh.start('a', { home, args: ['--http', url.port] })
  t.alike(await words(), [2, 2, 2])
})
