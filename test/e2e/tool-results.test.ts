import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { Client } from '@modelcontextprotocol/client'
import type { Reply } from '../../src/ports/node-api.js'
import { mcpClient } from '../support/mcp-clients.js'
import { localMesh, type LocalNode, ROOT, untilAgent, untilOnline } from '../support/nodes.js'

const SCRIPT = path.join(ROOT, 'test/support/mcp/imported-server.mjs')
const PICTURE = Buffer.alloc(3000, 'pixel').toString('base64')
const SUM = { type: 'object', required: ['sum'], properties: { sum: { type: 'number' } } }

/** Results as servers write them, by the names of their tools. */
const RESULTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  words: { content: [{ type: 'text', text: 'plain words' }] },
  pretty: { content: [{ type: 'text', text: '{\n  "big": 12345678901234567890,\n  "one": 1.0\n}' }] },
  quoted: { content: [{ type: 'text', text: '"in quotes"' }] },
  nothing: { content: [] },
  several: {
    content: [
      { type: 'text', text: 'first', annotations: { audience: ['user'], priority: 0.5 } },
      { type: 'image', data: PICTURE, mimeType: 'image/png', annotations: { priority: 1 } },
      { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'demo://one', name: 'one', mimeType: 'text/plain', description: 'the first' },
      { type: 'resource', resource: { uri: 'demo://two', mimeType: 'text/plain', text: 'inside' } },
      { type: 'resource', resource: { uri: 'demo://three', mimeType: 'image/png', blob: PICTURE } }
    ],
    _meta: { 'demo/cost': 3 }
  },
  structured: { content: [{ type: 'text', text: 'the sum is five' }], structuredContent: { sum: 5 } },
  broken: {
    content: [
      { type: 'text', text: 'line one\nline two' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    ],
    isError: true
  }
}

/** A program and a module that give what they are asked for. */
const AGENTS: Readonly<Record<string, string>> = {
  'painter.md': [
    '---',
    'name: painter',
    'description: gives its input back',
    'a2a:',
    '  version: 0.1.0',
    '  capabilities: [{ id: painter.draw, description: draws, input: {}, output: {} }]',
    `  runtime: { type: command, command: [${process.execPath}, -e, "process.stdin.on('data', (line) => console.log(JSON.stringify(JSON.parse(line).input.result)))"] }`,
    '---',
    ''
  ].join('\n'),
  'singer.md': [
    '---',
    'name: singer',
    'description: gives its input back',
    'a2a:',
    '  version: 0.1.0',
    '  capabilities: [{ id: singer.sing, description: sings, input: {}, output: {} }]',
    '  runtime: { type: module, path: ./singer.mjs }',
    '---',
    ''
  ].join('\n'),
  'singer.mjs': 'export default { run: ({ input }) => input.result }\n'
}

interface Scene {
  readonly a: LocalNode
  readonly b: LocalNode
  /** MCP clients of the importing node and of the other one, each with the tool's name there. */
  readonly clients: readonly { readonly where: string; readonly client: Client; nameOf(tool: string): string }[]
}

/** A node that imports the scripted server, another one, and an official client at each. */
async function scene(t: Assert): Promise<Scene> {
  const mesh = await localMesh(t)
  const home = await mesh.dir()
  const tools = [...Object.keys(RESULTS), 'steps', 'ticks', 'huge'].map((name) => ({
    name,
    inputSchema: { type: 'object' },
    ...(name === 'structured' ? { outputSchema: SUM } : {})
  }))
  fs.writeFileSync(path.join(home, 'plan'), JSON.stringify({ tools, results: RESULTS }))
  const command = JSON.stringify([process.execPath, SCRIPT, path.join(home, 'plan')])
  fs.writeFileSync(path.join(home, 'config.yaml'), `mcp:\n  servers:\n    demo:\n      command: ${command}\n`)
  fs.mkdirSync(path.join(home, 'agents'))
  for (const [name, text] of Object.entries(AGENTS)) fs.writeFileSync(path.join(home, 'agents', name), text)
  const a = await mesh.start('a', { home })
  await untilAgent(a, 'demo@a')
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  await untilAgent(b, 'demo@a')
  const [here, there] = [await mcpClient(t, mesh, a), await mcpClient(t, mesh, b)]
  const clients = [
    { where: 'here', client: here.sdk, nameOf: (tool: string) => `demo__${tool}` },
    { where: 'one hop away', client: there.sdk, nameOf: (tool: string) => `demo_at_a__${tool}` }
  ]
  return { a, b, clients }
}

function partsOf(name: string): object {
  const { content, structuredContent } = RESULTS[name] ?? {}
  return { content, ...(structuredContent === undefined ? {} : { structuredContent }) }
}

test('a result of an imported server reaches an MCP client here and one hop away as the server wrote it', async (t: Assert) => {
  const { b, clients } = await scene(t)
  for (const { where, client, nameOf } of clients) {
    const { tools } = await client.listTools()
    const listed = tools.find(({ name }) => name === nameOf('structured'))
    t.alike(listed?.outputSchema, SUM, `${where}: the output schema is listed`)
    for (const [tool, { content, structuredContent, isError = false, _meta: meta }] of Object.entries(RESULTS)) {
      const result = await client.callTool({ name: nameOf(tool), arguments: {} })
      t.alike(result.content, content, `${where}: content of ${tool}`)
      t.alike(result.structuredContent, structuredContent, `${where}: structured content of ${tool}`)
      t.is(result.isError ?? false, isError, `${where}: error of ${tool}`)
      const { _meta: given } = result
      if (meta !== undefined) t.is(given?.['demo/cost'], 3, `${where}: _meta of ${tool}`)
    }
    const called = await client.callTool({
      name: 'a2a_call',
      arguments: { agent: 'demo@a', capability: 'mcp_demo_several' }
    })
    t.alike(called.content, RESULTS['several']?.['content'], `${where}: content by a2a_call`)
    for (const capability of ['painter.draw', 'singer.sing'])
      for (const name of ['several', 'broken', 'structured']) {
        const input = { result: RESULTS[name] }
        const given = await client.callTool({ name: 'a2a_call', arguments: { capability, input } })
        const { content, structuredContent, isError } = given
        t.alike(
          { content, ...(structuredContent === undefined ? {} : { structuredContent }) },
          partsOf(name),
          `${where}: ${name} of ${capability}`
        )
        t.is(isError ?? false, name === 'broken', `${where}: error ${name} of ${capability}`)
      }
    const said = await client.callTool({
      name: 'a2a_call',
      arguments: { capability: 'painter.draw', input: { result: 'words' } }
    })
    t.alike(said.content, [{ type: 'text', text: 'words' }], `${where}: a text is no JSON`)
  }
  const plain = await b.json<Reply>(['call', 'demo@a', 'mcp_demo_words', '{}'])
  t.is(plain.payload, 'plain words', 'another caller gets the plain value')
  const failed = await b.cli(['call', 'demo@a', 'mcp_demo_broken', '{}', '--json'])
  t.is(failed.code, 1, 'a result that is an error fails the call')
})

/** The progress that a client reads from now on. Its own handler misses reports that it reads with their answer. */
function reportsOf({ transport }: Client): [progress: unknown, total: unknown][] {
  const reports: [unknown, unknown][] = []
  const pass = transport?.onmessage
  if (transport === undefined || pass === undefined) throw new Error('the client is not connected')
  const onmessage: typeof pass = (message, extra) => {
    if ('method' in message && message.method === 'notifications/progress')
      reports.push([message.params?.['progress'], message.params?.['total']])
    pass(message, extra)
  }
  Object.assign(transport, { onmessage })
  return reports
}

test('the last report of progress comes before the answer, and at least ten come in a second', async (t: Assert) => {
  const { clients } = await scene(t)
  for (const { where, client, nameOf } of clients) {
    const reported = reportsOf(client)
    const call = async (name: string, args: Readonly<Record<string, unknown>>): Promise<void> => {
      reported.length = 0
      await client.callTool({ name: nameOf(name), arguments: { ...args } }, { onprogress: () => {} })
    }
    for (let i = 0; i < 10; i++) {
      await call('steps', {})
      t.alike(reported.at(-1), [3, 3], `${where}: the last of quick reports, time ${i + 1}`)
    }
    await call('ticks', { count: 200, everyMs: 10 })
    t.alike(reported.at(-1), [200, 200], where)
    t.ok(reported.length >= 20, `${where}: ${reported.length} reports in 2 s`)
  }
})

test('a result of an imported server beyond 10,000 tokens is a link that its client reads in pages', async (t: Assert) => {
  const { clients } = await scene(t)
  for (const { where, client, nameOf } of clients) {
    const { content } = await client.callTool({ name: nameOf('huge'), arguments: { bytes: 100_000 } })
    t.ok(JSON.stringify(content).length < 5000, `${where}: few tokens`)
    const link = content.find(({ type }) => type === 'resource_link')
    let read = ''
    for (let uri = link?.type === 'resource_link' ? link.uri : undefined; uri !== undefined; ) {
      const [page, next]: readonly { uri: string; text?: string }[] = (await client.readResource({ uri })).contents
      read += page?.text ?? ''
      uri = next?.uri
    }
    t.is(read, 'x'.repeat(100_000), where)
  }
})
