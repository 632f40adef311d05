import http from 'node:http'
import { once } from 'node:events'
import test, { type Assert } from 'brittle'
import { Client, type ProgressCallback, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { serveConformance } from './endpoint.js'
import { PIXEL, SILENCE } from './media.js'

async function endpoint(t: Assert): Promise<URL> {
  const { url, close } = await serveConformance()
  t.teardown(close)
  return url
}

/** A client of the newest version of the protocol, one of the last with a handshake, and one of the SDK before. */
async function clients(t: Assert, url: URL): Promise<{ readonly newest: Client; readonly all: readonly (Client | OldClient)[] }> {
  const newest = new Client({ name: 'newest', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const shaken = new Client({ name: 'shaken', version: '1' })
  await newest.connect(new StreamableHTTPClientTransport(url))
  await shaken.connect(new StreamableHTTPClientTransport(url))
  const old = new OldClient({ name: 'old', version: '1' })
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
  return client instanceof Client ? await client.callTool(params, options) : await client.callTool(params, undefined, options)
}

async function contentOf(client: Client | OldClient, name: string): Promise<unknown> {
  return (await call(client, name)).content
}

const IMAGE = { type: 'image', data: PIXEL.toString('base64'), mimeType: 'image/png' }

test('every client gets the content of every kind that the official runner asks tools for', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    t.alike(await contentOf(client, 'test_simple_text'), [{ type: 'text', text: 'This is a simple text response for testing.' }])
    t.alike(await contentOf(client, 'test_image_content'), [IMAGE])
    t.alike(await contentOf(client, 'test_audio_content'), [{ type: 'audio', data: SILENCE.toString('base64'), mimeType: 'audio/wav' }])
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

test('a tool with progress tells each step in its order, and its schema of 2020-12 comes through whole', async (t: Assert) => {
  const { all } = await clients(t, await endpoint(t))
  for (const client of all) {
    const steps: unknown[] = []
    await call(client, 'test_tool_with_progress', { onprogress: ({ progress, total }) => void steps.push(`${progress}/${total}`) })
    t.alike(steps, ['0/100', '50/100', '100/100'])
    const { tools } = await client.listTools()
    t.ok(
      tools.some(({ name }) => name === 'text__do'),
      'beside the tools of the node'
    )
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema as Record<string, unknown>
    t.is(schema['$schema'], 'https://json-schema.org/draft/2020-12/schema')
    t.alike(Object.keys(schema).sort(), ['$defs', '$schema', 'additionalProperties', 'allOf', 'else', 'if', 'properties', 'then', 'type'])
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
    const read = async (uri: string): Promise<Record<string, unknown> | undefined> => (await client.readResource({ uri })).contents[0]
    t.is((await read('test://static-text'))?.['text'], 'This is the content of the static text resource.')
    t.is((await read('test://static-binary'))?.['blob'], IMAGE.data)
    const data = JSON.parse(String((await read('test://template/123/data'))?.['text'])) as unknown
    t.alike(data, { id: '123', templateTest: true, data: 'Data for ID: 123' })
    await t.exception(() => client.readResource({ uri: 'test://nothing' }), /not found/i)
    const { prompts } = await client.listPrompts()
    t.is(prompts.filter(({ name }) => name.startsWith('test_')).length, 4)
    const messages = async (name: string, args?: Record<string, string>): Promise<readonly unknown[]> =>
      (await client.getPrompt({ name, ...(args === undefined ? {} : { arguments: args }) })).messages.map(({ content }) => content)
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

test('a subscription tells the changes that it asked for, and no others', async (t: Assert) => {
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

test('what the runtime does not offer is neither announced nor answered', async (t: Assert) => {
  const { newest, all } = await clients(t, await endpoint(t))
  for (const client of all) t.alike(Object.keys(client.getServerCapabilities() ?? {}).sort(), ['prompts', 'resources', 'tools'])
  const told: unknown[] = []
  newest.setNotificationHandler('notifications/message', (one) => void told.push(one))
  await call(newest, 'test_tool_with_logging')
  t.alike(told, [], 'lines of a tool go to the log of the node')
  const { tools } = await newest.listTools()
  t.absent(tools.some(({ name }) => /^test_(sampling|elicitation|input_required)/.test(name)))
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
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }
}

/** Sends one call of the newest version by hand. */
async function statusOf(url: URL, body: unknown, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const standard = { 'content-type': 'application/json', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }
  const request = http.request(url, { method: 'POST', agent: false, headers: { ...standard, ...headers } })
  request.end(JSON.stringify(body))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  return response.statusCode
}
