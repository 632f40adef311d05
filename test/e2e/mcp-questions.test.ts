import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema
} from '@modelcontextprotocol/sdk/types.js'
import type { Reply } from '../../src/ports/node-api.js'
import { serving } from '../support/mcp-clients.js'
import { localMesh, type LocalNode, ROOT, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

type LocalMesh = Awaited<ReturnType<typeof localMesh>>

const SCRIPT = path.join(ROOT, 'test/support/mcp/asking-server.mjs')
const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} }
const ROOTS = { roots: [{ uri: 'file:///work', name: 'work' }] }
const SAID = { role: 'assistant', model: 'm', content: { type: 'text', text: 'hello' } } as const

/** A module that asks the person of its caller. */
const AGENTS: Readonly<Record<string, string>> = {
  'clerk.md': [
    '---',
    'name: clerk',
    'description: asks for a name',
    'a2a:',
    '  version: 0.1.0',
    '  capabilities: [{ id: clerk.ask, description: asks, input: {}, output: {} }]',
    '  runtime: { type: module, path: ./clerk.mjs }',
    '---',
    ''
  ].join('\n'),
  'clerk.mjs': `const form = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
export default {
  async run(_task, ctx) {
    ctx.log('asking')
    return await ctx.ask('Which name?', form)
  }
}`
}

/** A client with answers to every question; it keeps the texts of forms, and log lines. */
interface AskedClient {
  readonly asked: string[]
  readonly lines: unknown[]
  call(name: string): Promise<unknown>
  /** The first text of a prompt. */
  prompt(name: string): Promise<unknown>
}

interface Scene {
  readonly mesh: LocalMesh
  readonly a: LocalNode
  readonly b: LocalNode
}

/** A node that imports a server of each protocol, and another one beyond a link. */
async function scene(t: Assert): Promise<Scene> {
  const mesh = await localMesh(t)
  const home = await mesh.dir()
  const servers = ['old', 'new'].map(
    (era) => `    ${era}: { command: ${JSON.stringify([process.execPath, SCRIPT, era])}, env: { NODE_PATH: '' } }\n`
  )
  fs.writeFileSync(path.join(home, 'config.yaml'), `mcp:\n  servers:\n${servers.join('')}`)
  fs.mkdirSync(path.join(home, 'agents'))
  for (const [name, text] of Object.entries(AGENTS)) fs.writeFileSync(path.join(home, 'agents', name), text)
  const a = await mesh.start('a', { home })
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  for (const node of [a, b]) for (const agent of ['old@a', 'new@a', 'clerk@a']) await untilAgent(node, agent)
  return { mesh, a, b }
}

function contentOf(result: unknown): unknown {
  const { content, isError } = result as { readonly content: unknown; readonly isError?: boolean }
  const [first] = content as readonly { text: string }[]
  if (isError === true) throw new Error(first?.text)
  return JSON.parse(first?.text ?? 'null')
}

function textOf({ messages }: { readonly messages: readonly { readonly content: unknown }[] }): unknown {
  return (messages[0]?.content as { readonly text?: unknown } | undefined)?.text
}

/** The official client of SDK v1: the protocol with a handshake. */
async function oldClient(t: Assert, mesh: LocalMesh, node: LocalNode): Promise<AskedClient> {
  const [asked, lines]: [string[], unknown[]] = [[], []]
  const client = new OldClient({ name: 'old', version: '1.0.0' }, { capabilities: CAPABILITIES })
  client.setRequestHandler(ElicitRequestSchema, ({ params: { message } }) => {
    asked.push(message)
    return { action: 'accept', content: { name: 'Ada' } }
  })
  client.setRequestHandler(CreateMessageRequestSchema, () => SAID)
  client.setRequestHandler(ListRootsRequestSchema, () => ROOTS)
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void lines.push(params))
  await client.connect(new OldStdioTransport(serving(mesh, node)))
  t.teardown(() => client.close(), { order: -1 })
  await client.setLoggingLevel('info')
  return {
    asked,
    lines,
    call: async (name) => contentOf(await client.callTool({ name, arguments: {} })),
    prompt: async (name) => textOf(await client.getPrompt({ name }))
  }
}

/** The official client of SDK v2: the protocol without one. */
async function newClient(t: Assert, mesh: LocalMesh, node: LocalNode): Promise<AskedClient> {
  const [asked, lines]: [string[], unknown[]] = [[], []]
  const client = new Client(
    { name: 'new', version: '1.0.0' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' } }
  )
  client.setRequestHandler('elicitation/create', ({ params: { message } }) => {
    asked.push(message)
    return { action: 'accept', content: { name: 'Ada' } }
  })
  client.setRequestHandler('sampling/createMessage', () => SAID)
  client.setRequestHandler('roots/list', () => ROOTS)
  client.setNotificationHandler('notifications/message', ({ params }) => {
    const { level, data, logger } = params
    lines.push({ level, data, ...(logger === undefined ? {} : { logger }) })
  })
  await client.connect(new StdioClientTransport(serving(mesh, node)))
  t.is(client.getProtocolEra(), 'modern')
  t.teardown(() => client.close(), { order: -1 })
  const meta = { 'io.modelcontextprotocol/logLevel': 'info' }
  return {
    asked,
    lines,
    call: async (name) => contentOf(await client.callTool({ name, arguments: {}, _meta: meta })),
    prompt: async (name) => textOf(await client.getPrompt({ name }))
  }
}

test('questions and log lines of an imported server reach the client of each protocol, here and one hop away', async (t: Assert) => {
  const { mesh, a, b } = await scene(t)
  for (const [node, suffix] of [
    [a, ''],
    [b, '_at_a']
  ] as const)
    for (const open of [oldClient, newClient]) {
      const client = await open(t, mesh, node)
      const said = await client.call(`clerk${suffix}__ask`)
      t.alike(said, { name: 'Ada' }, `${open.name}: a module asks`)
      t.alike([client.asked, client.lines], [['clerk@a: Which name?'], [{ level: 'info', data: 'asking' }]])
      t.is(await client.prompt(`new${suffix}__greeting`), 'Hello Ada', `${open.name}: a prompt asks`)
      t.is(client.asked.at(-1), 'new@a: Which name?\nOne word.')
      for (const server of ['old', 'new']) {
        const where = `${open.name} at ${node === a ? 'a' : 'b'}, server ${server}`
        const call = async (tool: string): Promise<unknown> => await client.call(`${server}${suffix}__${tool}`)
        client.asked.length = 0
        client.lines.length = 0
        t.alike(await call('form'), { action: 'accept', content: { name: 'Ada' } }, `${where}: form`)
        t.alike(
          client.asked,
          [`${server}@a: Which name?\nOne word.`],
          `${where}: the form names the agent and its node`
        )
        t.alike(await call('twice'), { action: 'accept', content: { name: 'Ada' } }, `${where}: two forms`)
        t.is(client.asked.length, 3)
        t.alike(await call('model'), SAID, `${where}: model`)
        t.alike(await call('folders'), ROOTS, `${where}: folders`)
        t.is(await call('talks'), 'done')
        const line = (level: string): unknown => ({ level, data: { level }, logger: server })
        t.alike(client.lines, [line('info'), line('error')], `${where}: log`)
      }
    }
  for (const [node, name] of [
    [a, 'new__model'],
    [b, 'new_at_a__model']
  ] as const)
    t.alike(await refusal(t, serving(mesh, node), name), [-32_021, { requiredCapabilities: { sampling: {} } }])
})

/** Code and data of the error that a client without a model gets from a tool that needs one. */
async function refusal(t: Assert, server: ReturnType<typeof serving>, name: string): Promise<unknown> {
  const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'auto' } } as const
  const client = new Client({ name: 'new', version: '1.0.0' }, options)
  await client.connect(new StdioClientTransport(server))
  t.teardown(() => client.close(), { order: -1 })
  const refused: unknown = await client.callTool({ name, arguments: {} }).catch((error: unknown) => error)
  const { code, data } = refused as { readonly code?: unknown; readonly data?: unknown }
  return [code, data]
}

test('without a client the owner of the calling node answers, or declines', async (t: Assert) => {
  const { b } = await scene(t)
  const call = async (run: (id: string) => Promise<void>): Promise<Reply> => {
    const reply = b.api.call('message.call', { agent: 'clerk@a', capability: 'clerk.ask', input: {} })
    let id: string | undefined
    await untilTrue(async () => {
      const { approvals } = await b.api.call('approvals.list', {})
      id = approvals[0]?.id
      return id !== undefined
    }, 'the question waits')
    await run(id ?? '')
    return await reply
  }
  const answered = await call(async (id) => {
    const shown = await b.cli(['approvals', 'show', id])
    t.ok(/clerk@a: Which name\?/.test(shown.stdout) && shown.stderr.includes('--content'))
    const bare = await b.cli(['approvals', 'allow', id])
    t.ok(bare.code !== 0, 'a form needs content')
    const unfit = await b.cli(['approvals', 'allow', id, '--content', '{"name":1}'])
    t.ok(unfit.code !== 0, 'and content that fits')
    const { code } = await b.cli(['approvals', 'allow', id, '--content', '{"name":"Bob"}'])
    t.is(code, 0)
  })
  t.alike(answered.payload, { name: 'Bob' })
  const declined = await call(async (id) => void (await b.api.call('approvals.deny', { id })))
  t.alike([declined.outcome, declined.payload], ['COMPLETED', null])
  const asked = await b.api.call('message.call', { agent: 'old@a', capability: 'mcp_old_model', input: {} })
  t.is(asked.outcome, 'FAILED', 'nobody has a model')
  const folders = await b.api.call('message.call', { agent: 'old@a', capability: 'mcp_old_folders', input: {} })
  t.alike(folders.payload, { roots: [] })
  const { approvals } = await b.api.call('approvals.list', {})
  t.is(approvals.length, 0)
})
