import http from 'node:http'
import { once } from 'node:events'
import test, { type Assert } from 'brittle'
import {
  Client,
  type ClientCapabilities,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type ElicitResult,
  type ListRootsResult,
  type ProgressCallback,
  StreamableHTTPClientTransport
} from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema
} from '@modelcontextprotocol/sdk/types.js'
import { serveConformance } from './endpoint.js'
import { PIXEL, SILENCE } from './media.js'

async function endpoint(t: Assert): Promise<URL> {
  const { url, close } = await serveConformance()
  t.teardown(close)
  return url
}

/** A client that takes every question. */
const QUESTIONS = { elicitation: {}, sampling: {}, roots: {} } as const
/** What it is asked, in this order, by the tools that ask more than one thing. */
const ASKED_AT_ONCE = ['What is your name?', 'Generate a greeting', 'roots']
const ASKED_LAST = ['Step 2: What is your favorite color?', 'roots', 'What context should the prompt use?']

/** Lets a client answer every question. Returns what it was asked. */
function answering(client: Client | OldClient): readonly string[] {
  const asked: string[] = []
  const form = ({ message }: { readonly message: string }): ElicitResult => {
    asked.push(message)
    return { action: 'accept', content: { name: 'Ada', context: 'a test' } }
  }
  const sample = ({ messages }: CreateMessageRequestParams): CreateMessageResult => {
    asked.push((messages[0].content as { readonly text: string }).text)
    return { role: 'assistant', model: 'test', content: { type: 'text', text: 'a sample' } }
  }
  const roots = (): ListRootsResult => {
    asked.push('roots')
    return { roots: [{ uri: 'file:///home' }] }
  }
  if (client instanceof Client) {
    client.setRequestHandler('elicitation/create', ({ params }) => form(params))
    client.setRequestHandler('sampling/createMessage', ({ params }) => sample(params))
    client.setRequestHandler('roots/list', roots)
  } else {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => form(params))
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => sample(params as CreateMessageRequestParams))
    client.setRequestHandler(ListRootsRequestSchema, roots)
  }
  return asked
}

/** The lines that a client is told from now on. */
function linesOf(client: Client | OldClient): readonly unknown[] {
  const told: unknown[] = []
  if (client instanceof Client)
    client.setNotificationHandler('notifications/message', ({ params }) => void told.push(params.data))
  else client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void told.push(params.data))
  return told
}

/** A client of the newest version of the protocol, one of the last with a handshake, and one of the SDK before. */
async function clients(
  t: Assert,
  url: URL,
  capabilities: ClientCapabilities = {}
): Promise<{ readonly newest: Client; readonly all: readonly (Client | OldClient)[] }> {
  const newest = new Client({ name: 'newest', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } })
  const shaken = new Client({ name: 'shaken', version: '1' }, { capabilities })
  await newest.connect(new StreamableHTTPClientTransport(url))
  await shaken.connect(new StreamableHTTPClientTransport(url))
  const old = new OldClient({ name: 'old', version: '1' }, { capabilities: { ...capabilities } })
  await old.connect(new OldTransport(url))
  t.is(newest.getNegotiatedProtocolVersion(), '2026-07-28')
  const all = [newest, shaken, old]
  t.teardown(
    async () => {
      for (const client of all) await client.close()
    },
    { order: -1 }
  )
  return { newest, all }
}

interface Called {
  readonly [key: string]: unknown
  readonly content?: unknown
  readonly isError?: unknown
}

async function call(
  client: Client | OldClient,
  name: string,
  { args = {}, onprogress }: { readonly args?: Record<string, unknown>; readonly onprogress?: ProgressCallback } = {}
): Promise<Called> {
  const options = onprogress === undefined ? {} : { onprogress }
  const params = { name, arguments: args }
  return client instanceof Client
    ? await client.callTool(params, options)
    : await client.callTool(params, undefined, options)
}

async function contentOf(client: Client | OldClient, name: string): Promise<unknown> {
  return (await call(client, name)).content
}

const IMAGE = { type: 'image', data: PIXEL.toString('base64'), mimeType: 'image/png' }

test('every client gets the content of every kind that the official runner asks tools for', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    t.alike(await contentOf(client, 'test_simple_text'), [
      { type: 'text', text: 'This is a simple text response for testing.' }
    ])
    t.alike(await contentOf(client, 'test_image_content'), [IMAGE])
    t.alike(await contentOf(client, 'test_audio_content'), [
      { type: 'audio', data: SILENCE.toString('base64'), mimeType: 'audio/wav' }
    ])
    const text = 'This is an embedded resource content.'
    t.alike(await contentOf(client, 'test_embedded_resource'), [
      { type: 'resource', resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text } }
    ])
    const mixed = (await contentOf(client, 'test_multiple_content_types')) as readonly { readonly type: string }[]
    t.alike(
      mixed.map(({ type }) => type),
      ['text', 'image', 'resource']
    )
    const failed = await call(client, 'test_error_handling')
    t.ok(failed.isError)
    t.ok(JSON.stringify(failed.content).includes('intentionally returns an error'))
  }
})

test('a tool with progress reports each step in its order, and its schema of 2020-12 comes through whole', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    const steps: unknown[] = []
    await call(client, 'test_tool_with_progress', {
      onprogress: ({ progress, total }) => void steps.push(`${progress}/${total}`)
    })
    t.alike(steps, ['0/100', '50/100', '100/100'])
    const { tools } = await client.listTools()
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema as Record<string, unknown>
    t.is(schema['$schema'], 'https://json-schema.org/draft/2020-12/schema')
    t.alike(Object.keys(schema).sort(), [
      '$defs',
      '$schema',
      'additionalProperties',
      'allOf',
      'else',
      'if',
      'properties',
      'then',
      'type'
    ])
    t.absent((await call(client, 'json_schema_2020_12_tool', { args: { email: 'a@b' } })).isError)
    const wrong = await call(client, 'json_schema_2020_12_tool', { args: { contactMethod: 'phone', email: 'a@b' } })
    t.ok(wrong.isError, 'the condition of the schema holds')
  }
})

test('the resources and prompts that the official runner reads are there', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    const { resources } = await client.listResources()
    for (const uri of ['test://static-text', 'test://static-binary', 'test://watched-resource']) {
      t.ok(resources.some((one) => one.uri === uri && one.name.length > 0))
    }
    const { resourceTemplates } = await client.listResourceTemplates()
    t.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === 'test://template/{id}/data'))
    const read = async (uri: string): Promise<Record<string, unknown> | undefined> =>
      (await client.readResource({ uri })).contents[0]
    t.is((await read('test://static-text'))?.['text'], 'This is the content of the static text resource.')
    t.is((await read('test://static-binary'))?.['blob'], IMAGE.data)
    const data = JSON.parse(String((await read('test://template/123/data'))?.['text'])) as unknown
    t.alike(data, { id: '123', templateTest: true, data: 'Data for ID: 123' })
    await t.exception(() => client.readResource({ uri: 'test://nothing' }), /not found/i)
    const { prompts } = await client.listPrompts()
    t.is(prompts.filter(({ name }) => name.startsWith('test_')).length, 5)
    const messages = async (name: string, args?: Record<string, string>): Promise<readonly unknown[]> =>
      (await client.getPrompt({ name, ...(args === undefined ? {} : { arguments: args }) })).messages.map(
        ({ content }) => content
      )
    t.alike(await messages('test_simple_prompt'), [{ type: 'text', text: 'This is a simple prompt for testing.' }])
    t.alike(await messages('test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' }), [
      { type: 'text', text: "Prompt with arguments: arg1='hello', arg2='world'" }
    ])
    const uri = 'test://example-resource'
    const [embedded] = await messages('test_prompt_with_embedded_resource', { resourceUri: uri })
    t.is((embedded as { resource: { uri: string } }).resource.uri, uri)
    t.alike((await messages('test_prompt_with_image'))[0], IMAGE)
  }
})

test('a subscription reports the changes that it asked for, and no others', async (t: Assert) => {
  const { newest } = await clients(t, await endpoint(t))
  const told: string[] = []
  let heard = (): void => {}
  for (const method of ['notifications/tools/list_changed', 'notifications/prompts/list_changed'] as const) {
    newest.setNotificationHandler(method, () => {
      told.push(method)
      heard()
    })
  }
  const subscription = await newest.listen({ promptsListChanged: true })
  const first = new Promise<void>((resolve) => (heard = resolve))
  await newest.callTool({ name: 'test_trigger_tool_change', arguments: {} })
  await newest.callTool({ name: 'test_trigger_prompt_change', arguments: {} })
  await first
  t.alike(told, ['notifications/prompts/list_changed'])
  t.ok((await newest.listPrompts()).prompts.some(({ name }) => name === 'test_passing_prompt'))
  t.ok((await newest.listTools()).tools.some(({ name }) => name === 'test_passing_tool'))
  await subscription.close()
})

test('arguments that a client repeats in headers are served; headers that say something else, or nothing, are refused', async (t: Assert) => {
  const url = await endpoint(t)
  const { newest } = await clients(t, url)
  await newest.listTools()
  for (const region of ['eu', 'Grüße', ' padded ', '=?base64?eu?=']) {
    const { content } = await call(newest, 'test_param_headers', { args: { region, count: 3 } })
    t.alike(content, [{ type: 'text', text: JSON.stringify({ region, count: 3 }) }])
  }
  const body = callOf('test_param_headers', { region: 'eu' })
  for (const headers of [{}, { 'mcp-param-region': 'us' }, { 'mcp-param-region': '=?base64?ZXV?=' }]) {
    t.is(await statusOf(url, body, { ...headers, 'mcp-name': 'test_param_headers' }), 400)
  }
  t.is(await statusOf(url, body, { 'mcp-param-region': 'eu', 'mcp-name': 'test_param_headers' }), 200)
})

test('every client that takes questions is asked by the tools and the prompt that ask', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t), QUESTIONS)
  for (const client of all) {
    const asked = answering(client)
    const said = async (name: string, args: Record<string, unknown> = {}): Promise<string> =>
      JSON.stringify(await call(client, name, { args }))
    t.ok((await said('test_sampling', { prompt: 'a joke' })).includes('a sample'))
    t.ok((await said('test_elicitation', { message: 'who?' })).includes('Ada'))
    t.ok((await said('test_elicitation_sep1034_defaults')).includes('Ada'))
    t.ok((await said('test_elicitation_sep1330_enums')).includes('Ada'))
    t.ok((await said('test_input_required_result_multiple_inputs')).includes('state-ok'))
    t.ok((await said('test_input_required_result_multi_round')).includes('Ada'))
    t.ok((await said('test_input_required_result_list_roots')).includes('file:///home'))
    const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' })
    t.alike(messages[0].content, { type: 'text', text: 'Context: a test' })
    t.alike(asked, [
      'a joke',
      'who?',
      'Check these',
      'Choose',
      ...ASKED_AT_ONCE,
      'Step 1: What is your name?',
      ...ASKED_LAST
    ])
  }
})

test('a client without elicitation gets no question, and the tool is informed', async (t: Assert) => {
  const url = await endpoint(t)
  const { newest, all } = await clients(t, url)
  for (const client of all) {
    const capabilities = Object.keys(client.getServerCapabilities() ?? {}).sort()
    t.alike(capabilities, ['completions', 'logging', 'prompts', 'resources', 'tools'])
    if (client !== newest) t.ok((await call(client, 'test_elicitation', { args: { message: 'who?' } })).isError)
  }
  await t.exception(() => call(newest, 'test_elicitation', { args: { message: 'who?' } }), /elicitation/)
  const name = 'test_missing_capability'
  t.is(await statusOf(url, callOf(name, {}), { 'mcp-name': name }), 400)
})

test('lines of a tool go to a client that requested them, and to no other', async (t: Assert) => {
  const { newest, all } = await clients(t, await endpoint(t))
  for (const client of all) {
    const told = linesOf(client)
    await call(client, 'test_tool_with_logging')
    t.alike(told, [])
    if (client === newest) continue
    await client.setLoggingLevel('info')
    await call(client, 'test_tool_with_logging')
    t.alike(told, ['Tool execution started', 'Tool processing data', 'Tool execution completed'])
  }
})

test('arguments of prompts are completed for every client', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' } as const
    const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 'par' } })
    t.alike(completion, { values: ['paris', 'park', 'party'], total: 3, hasMore: false })
  }
})

test('a client with a handshake that reads no stream is not asked, and need not wait', async (t: Assert) => {
  const url = await endpoint(t)
  const initialize = {
    protocolVersion: '2025-11-25',
    capabilities: QUESTIONS,
    clientInfo: { name: 'raw', version: '1' }
  }
  const json = { accept: 'application/json' }
  const { headers } = await post(url, { jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }, json)
  const session = { ...json, 'mcp-session-id': String(headers['mcp-session-id']) }
  await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, session)
  const params = { name: 'test_elicitation', arguments: { message: 'who?' } }
  const { body } = await post(url, { jsonrpc: '2.0', id: 2, method: 'tools/call', params }, session)
  t.ok(body.includes('"isError":true') && body.includes('reads no stream'), body)
})

test('a page that reached the endpoint by a name of its own is refused', async (t: Assert) => {
  const url = await endpoint(t)
  const body = callOf('test_simple_text', {})
  const name = { 'mcp-name': 'test_simple_text' }
  for (const headers of [{ host: 'evil.example' }, { origin: 'http://evil.example' }]) {
    t.is(await statusOf(url, body, { ...name, ...headers }), 403)
  }
  t.is(await statusOf(url, body, { ...name, host: url.host, origin: url.origin }), 200)
})

function callOf(name: string, args: Record<string, unknown>): unknown {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {}
  }
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }
}

/** Sends one call of the newest version by hand. */
async function statusOf(
  url: URL,
  body: unknown,
  headers: Readonly<Record<string, string>>
): Promise<number | undefined> {
  return (await post(url, body, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', ...headers }))
    .status
}

interface Posted {
  readonly status: number | undefined
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** Sends a message by hand. */
async function post(url: URL, message: unknown, headers: Readonly<Record<string, string>>): Promise<Posted> {
  const request = http.request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers }
  })
  request.end(JSON.stringify(message))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const body = Buffer.concat((await response.toArray()) as Buffer[]).toString()
  return { status: response.statusCode, headers: response.headers, body }
}
