import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import {
  type ClientToolDeps,
  mcpClientTool,
  ToolExecutionError
} from '../../../../src/adapters/mcp/tools/client-tool.js'
import { NO_CLIENT } from '../../../../src/adapters/mcp/tools/client-ask.js'
import type { ToolContext } from '../../../../src/adapters/mcp/server/tool.js'
import { structuredErrorOf } from '../../../../src/adapters/mcp/server/structured-error.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { httpServer } from '../../../support/mcp/imported-http-server.js'
import { importedScene, toolsOf } from '../../../support/mcp/imported-scene.js'

const CONTEXT: ToolContext = {
  runId: 'run',
  correlationId: 'thread',
  log: () => {},
  client: NO_CLIENT,
  lines: null,
  abortSignal: new AbortController().signal,
  progress: () => {}
}
const PROMPTED = {
  name: 'echo',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
}

async function scene(
  t: Assert
): Promise<{ readonly url: string; readonly parts: ClientToolDeps; run(args: object): Promise<unknown> }> {
  const server = await httpServer(t, { tools: [PROMPTED] })
  const imported = await importedScene(t, [
    {
      name: 'web',
      plan: { tools: [] },
      address: { kind: 'http', url: server.url, headers: {} },
      spec: { url: server.url, transport: 'http' }
    },
    { name: 'demo', plan: { tools: toolsOf('add', 'fail') } }
  ])
  await Promise.all([imported.ready('web'), imported.ready('demo')])
  const parts: ClientToolDeps = {
    serverOf: (text) => imported.imported.named(text),
    servers: () => imported.imported.list(),
    compileSchema: createSchemaCompiler(),
    chooser: null,
    refusals: () => Promise.resolve(new Map()),
    call: async ({ agent, capability, input }) => {
      const outcome = await imported.call(agent, capability.slice(`mcp_${agent}_`.length), input)
      if (outcome.ok) return outcome
      return { ok: false, error: new NodeError(outcome.code, outcome.message, { data: outcome.data }).toBody() }
    }
  }
  const tool = mcpClientTool(parts)
  return { url: server.url, parts, run: (args) => tool.handler(args as Record<string, unknown>, CONTEXT) }
}

async function faultOf(run: Promise<unknown>): Promise<ToolExecutionError> {
  const error = await run.then(
    () => null,
    (caught: unknown) => caught
  )
  if (error instanceof ToolExecutionError) return error
  throw new Error(`no ToolExecutionError: ${String(error)}`)
}

test('the client tool runs a tool of a configured server, by its address or its name, and gives text', async (t: Assert) => {
  const { url, run } = await scene(t)
  t.is(await run({ serverUrl: url, prompt: 'hello' }), 'echo: hello')
  t.is(await run({ serverUrl: 'web', tool: 'echo', arguments: { text: 'hi' } }), 'echo: hi')
  t.is(await run({ serverUrl: 'demo', tool: 'add', arguments: { a: 1, b: 2 } }), '{"sum":3}')
})

test('any other address is refused before anything is reached', async (t: Assert) => {
  const { url, run } = await scene(t)
  const other = await httpServer(t, { tools: [PROMPTED] })
  for (const serverUrl of [
    other.url,
    `${url}/`,
    url.toUpperCase(),
    'http://169.254.169.254/',
    'file:///etc/passwd',
    'weB'
  ]) {
    const error = await faultOf(run({ serverUrl, prompt: 'x' }))
    t.is(error.code, 'SERVER_NOT_CONFIGURED', serverUrl)
    t.alike(error.data.available, ['web', 'demo'])
  }
  t.alike(other.seen, [])
})

test('an unknown tool is answered with the list of tools', async (t: Assert) => {
  const { run } = await scene(t)
  const unknown = await faultOf(run({ serverUrl: 'demo', tool: 'ad' }))
  t.is(unknown.code, 'TOOL_NOT_FOUND')
  t.ok(/did you mean add/.test(unknown.message))
  t.alike(unknown.data.available, ['add', 'fail'])
  t.is((await faultOf(run({ serverUrl: 'demo', prompt: 'x' }))).code, 'TOOL_NOT_CHOSEN')
  t.is((await faultOf(run({ serverUrl: 'demo', tool: 'add', prompt: 'x' }))).code, 'TOOL_NOT_CHOSEN')
})

test('a tool that is not offered is answered with the reason, also that its server is not there', async (t: Assert) => {
  const { parts } = await scene(t)
  const [web, demo] = parts.servers()
  if (web === undefined || demo === undefined) throw new Error('there are two servers')
  const down = { ...web, state: 'failed' as const, tools: [], lastError: 'connect ECONNREFUSED' }
  const partly = {
    ...demo,
    tools: demo.tools.map((tool) =>
      tool.name === 'add' ? { ...tool, offered: false, reason: 'not accepted yet' } : tool
    )
  }
  const tool = mcpClientTool({ ...parts, serverOf: (text) => (text === 'web' ? down : partly) })
  const messageOf = async (args: object): Promise<string> =>
    (await faultOf(tool.handler(args as Record<string, unknown>, CONTEXT))).message
  const why = 'web offers no tool now (failed: connect ECONNREFUSED)'
  t.is(await messageOf({ serverUrl: 'web', tool: 'echo' }), why)
  t.is(await messageOf({ serverUrl: 'web', prompt: 'x' }), why)
  t.is(
    await messageOf({ serverUrl: 'demo', tool: 'add' }),
    'demo does not offer "add": not accepted yet; there is fail'
  )
})

test('a tool that fails is a ToolExecutionError with its text and retryAfter', async (t: Assert) => {
  const { run } = await scene(t)
  const error = await faultOf(run({ serverUrl: 'demo', tool: 'fail' }))
  t.is(error.code, 'TASK_FAILED')
  t.is(error.message, 'the disk is full')
  t.is(error.data.retryAfter, 7)
  t.is(error.data.error?.code, 'TASK_FAILED')
})

test('the input of the client tool is checked', async (t: Assert) => {
  const { parts } = await scene(t)
  const { validator, definition } = mcpClientTool(parts)
  t.is(definition.name, 'mcp_client')
  t.alike(validator({ serverUrl: 'web', prompt: 'x' }), [])
  for (const args of [{}, { serverUrl: 7 }, { serverUrl: 'web', other: 1 }, { serverUrl: 'web', arguments: [] }])
    t.ok(validator(args).length > 0)
})

test('a call that fails through the client tool is reported as the direct call is', async (t: Assert) => {
  const { parts } = await scene(t)
  for (const error of [
    new NodeError('TIMEOUT', 'too slow', { data: { taskId: 'task_1' } }),
    new NodeError('ESCALATION_REQUIRED', 'too powerful', { next: ['a2a-node call x'] }),
    new NodeError('OVERLOADED', 'later', { data: { retryAfter: 3 } }),
    new NodeError('TASK_FAILED', 'busy', { retryable: true })
  ]) {
    const tool = mcpClientTool({ ...parts, call: () => Promise.resolve({ ok: false, error: error.toBody() }) })
    const thrown = await faultOf(Promise.resolve(tool.handler({ serverUrl: 'web', prompt: 'x' }, CONTEXT)))
    t.is(thrown.code, error.code)
    t.alike(structuredErrorOf(thrown), structuredErrorOf(error), error.code)
  }
  const { code, details } = structuredErrorOf(
    await faultOf(mcpClientTool(parts).handler({ serverUrl: 'none' }, CONTEXT))
  )
  t.alike(
    [code, details?.['code'], details?.['retryable'], details?.['next']],
    ['NOT_FOUND', 'SERVER_NOT_CONFIGURED', false, ['a2a-node tools ls', 'a2a-node config path']]
  )
})
