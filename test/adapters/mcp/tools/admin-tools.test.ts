import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { adminTools, type AdminCaller, type AdminDeps } from '../../../../src/adapters/mcp/tools/admin-tools.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { call, McpScene, payloadOf, request, type RawClient } from '../../../support/mcp.js'

const ON: AdminDeps['settings'] = {
  adminRegistrationEnabled: true,
  dynamicRegistrationEnabled: true,
  adminPolicy: 'local_stdio_only'
}
const STDIO: AdminCaller = { transport: 'stdio', hasToken: false }

async function connected(
  t: Assert,
  settings: AdminDeps['settings'],
  { caller = STDIO, elsewhere = false } = {}
): Promise<RawClient> {
  const compile = createSchemaCompiler()
  const registry = new ToolRegistry(compile)
  const [own, mesh] = [new ToolRegistry(compile), new ToolRegistry(compile)]
  for (const [into, names] of [
    [own, ['health']],
    [mesh, ['text.stats', 'mcp_lim_get_add']]
  ] as const)
    for (const name of elsewhere ? names : [])
      into.register({ name, description: '', inputSchema: { type: 'object' } }, () => Promise.resolve('its own'))
  const admin = adminTools({
    settings,
    caller,
    compile,
    registry,
    isTaken: (name) => catalog.isTaken(name),
    health: () => Promise.resolve({ status: 'healthy' }),
    sendMessage: (targetAgentId, message, { runId }) => Promise.resolve({ targetAgentId, message, runId })
  })
  const catalog: ToolCatalog = new ToolCatalog([own, admin, registry, mesh])
  const client = new McpScene({ tools: catalog }).connect(t)
  await client.open()
  return client
}

async function namesOf(client: RawClient): Promise<string[]> {
  const { result } = await client.ask(request('list', 'tools/list'))
  return ((result ?? {})['tools'] as { name: string }[]).map((one) => one.name)
}

const ECHO = { name: 'x.echo', description: 'says it again', toolType: 'echo' }

test('admin tools are there only when both settings say so', async (t: Assert) => {
  for (const adminRegistrationEnabled of [false, true])
    for (const dynamicRegistrationEnabled of [false, true]) {
      const client = await connected(t, { ...ON, adminRegistrationEnabled, dynamicRegistrationEnabled })
      const isOn = adminRegistrationEnabled && dynamicRegistrationEnabled
      t.alike(await namesOf(client), isOn ? ['admin__registerTool', 'admin__unregisterTool'] : [])
      const { code = null } = (payloadOf(await client.ask(call(1, 'admin/registerTool', ECHO))) ?? {}) as {
        code?: string
      }
      t.is(code, isOn ? null : 'NOT_FOUND')
    }
})

test('the policy decides who may use them', async (t: Assert) => {
  const callers: readonly AdminCaller[] = [
    STDIO,
    { transport: 'http', hasToken: true },
    { transport: 'http', hasToken: false },
    { transport: 'mesh', hasToken: true }
  ]
  const allowed = { deny_all: [], local_stdio_only: [callers[0]], token: [callers[1]] } as Record<string, AdminCaller[]>
  for (const adminPolicy of ['deny_all', 'local_stdio_only', 'token'] as const)
    for (const caller of callers) {
      const client = await connected(t, { ...ON, adminPolicy }, { caller })
      const answer = await client.ask(call(1, 'admin/registerTool', ECHO))
      const isAllowed = allowed[adminPolicy].includes(caller)
      t.is(answer.result?.['isError'], !isAllowed, `${adminPolicy} ${JSON.stringify(caller)}`)
      if (!isAllowed) t.is(payloadOf(answer)['code'], 'UNAUTHORIZED')
      t.is((await namesOf(client)).includes('x__echo'), isAllowed)
    }
})

test('each type of tool does what it says, and is gone once it is unregistered', async (t: Assert) => {
  const client = await connected(t, ON)
  const register = async (name: string, toolType: string): Promise<unknown> =>
    payloadOf(await client.ask(call(1, 'admin__registerTool', { name, description: '', toolType, version: '1' })))
  t.alike(await register('x.echo', 'echo'), { registered: 'x.echo' })
  t.alike(await register('x.health', 'health'), { registered: 'x.health' })
  t.alike(await register('x.proxy', 'agentProxy'), { registered: 'x.proxy' })
  t.alike(
    await client.notified(3),
    Array.from({ length: 3 }, () => ({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
  )
  t.alike(await namesOf(client), ['admin__registerTool', 'admin__unregisterTool', 'x__echo', 'x__health', 'x__proxy'])
  t.alike(payloadOf(await client.ask(call(1, 'x__echo', { message: 'hi' }))), { message: 'hi' })
  t.alike(payloadOf(await client.ask(call(1, 'x.health'))), { status: 'healthy' })
  t.is(payloadOf(await client.ask(call(1, 'x.health', { a: 1 })))['code'], 'INVALID_ARGUMENT')
  const sent = payloadOf(await client.ask(call(1, 'x.proxy', { targetAgentId: 'a@n', message: { b: 1 } })))
  t.alike([sent['targetAgentId'], sent['message']], ['a@n', { b: 1 }])
  for (const name of ['x.echo', 'x__health']) {
    t.is((await client.ask(call(1, 'admin/unregisterTool', { name }))).result?.['isError'], false)
    t.is(payloadOf(await client.ask(call(1, name)))['code'], 'NOT_FOUND')
  }
  t.is(payloadOf(await client.ask(call(1, 'admin/unregisterTool', { name: 'x.echo' })))['code'], 'NOT_FOUND')
})

test('a schema that a client names must be that of the type, byte by byte; other types and names that are taken are refused', async (t: Assert) => {
  const client = await connected(t, ON)
  const good = '{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}'
  const bad = [
    '{}',
    '{"type":"object"}',
    '{"properties":{"message":{"type":"string"}},"type":"object","required":["message"]}',
    '{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":true}'
  ]
  const codeOf = async (more: object): Promise<unknown> => {
    const answer = await client.ask(call(1, 'admin/registerTool', { ...ECHO, ...more }))
    return answer.result?.['isError'] === true ? payloadOf(answer)['code'] : null
  }
  for (const inputSchema of bad)
    t.is(await codeOf({ inputSchema: JSON.parse(inputSchema) as object }), 'INVALID_ARGUMENT', inputSchema)
  for (const toolType of ['shell', '', 'Echo', 'toString'])
    t.is(await codeOf({ toolType }), 'INVALID_ARGUMENT', toolType)
  t.is(await codeOf({ code: 'process.exit()' }), 'INVALID_ARGUMENT', 'no code is taken')
  t.is(await codeOf({ inputSchema: JSON.parse(good) as object }), null)
  t.is(await codeOf({}), 'INVALID_ARGUMENT', 'registered already')
})

test('a name that any tool of the caller has, or is shown under, cannot be registered', async (t: Assert) => {
  const client = await connected(t, ON, { elsewhere: true })
  const before = await namesOf(client)
  const taken = [
    'health',
    'text.stats',
    'text__stats',
    'text/stats',
    'mcp_lim_get_add',
    'admin__registerTool',
    'admin/unregisterTool'
  ]
  for (const name of taken) {
    const error = payloadOf(await client.ask(call(1, 'admin/registerTool', { ...ECHO, name })))
    const { code, data } = (error['details'] ?? {}) as { readonly code?: unknown; readonly data?: unknown }
    t.alike(
      [error['code'], code, data],
      ['INVALID_ARGUMENT', 'CONFLICT', { reason: 'DUPLICATE_TOOL', tool: name }],
      name
    )
  }
  t.alike(await namesOf(client), before)
  for (const name of ['health', 'text.stats', 'mcp_lim_get_add'])
    t.is(payloadOf(await client.ask(call(1, name))), 'its own', name)
  const count = client.answers.length
  client.write(...['x.echo', 'x/echo'].map((name) => call(name, 'admin/registerTool', { ...ECHO, name })))
  const both = (await client.heard(count + 2)).slice(count)
  t.alike(
    both.map(({ id, result }) => [id, result?.['isError']]),
    [
      ['x.echo', false],
      ['x/echo', true]
    ],
    'two at once'
  )
})
