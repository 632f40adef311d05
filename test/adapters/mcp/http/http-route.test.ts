import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import test, { type Assert } from 'brittle'
import { CLAIM } from '../../../support/mcp.js'
import { readBody } from '../../../../src/adapters/http/body.js'
import { skippedBody } from '../../../../src/adapters/http/skipped-body.js'
import type { McpHttpCall } from '../../../../src/adapters/mcp/http/http-route.js'
import { HttpError } from '../../../../src/adapters/http/http-error.js'
import { World } from '../../../support/fake-node.js'
import { mcpServiceOf } from '../../../support/mcp-http.js'
import { INITIALIZE, modern, scene, session } from '../../../support/mcp-http-scene.js'
import type { InvocationRecord } from '../../../../src/ports/tool-calls.js'

interface Refusal {
  readonly id: unknown
  readonly error: { readonly code: number; readonly message: string; readonly data: Readonly<Record<string, unknown>> }
}

interface Bearer {
  readonly authorization: string
}

const SLOW = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'slow__do', arguments: {} } }

test('an initialize that is refused leaves no session', async (t: Assert) => {
  const { send: post, tokens } = await scene(t)
  const refused = await post('POST', { ...INITIALIZE, params: { protocolVersion: 1 } })
  t.is((JSON.parse(refused.text) as Refusal).error.code, -32_602)
  t.is(refused.headers['mcp-session-id'], undefined)
  t.is(tokens.listenerCount('one'), 0, 'and nothing is kept for one')
  t.ok((await post('POST', INITIALIZE)).headers['mcp-session-id'])
  t.is(tokens.listenerCount('one'), 1)
})

test('a session refuses the id of a request that is under way, as stdio does, and takes it again afterwards', async (t: Assert) => {
  const here = await scene(t)
  const { send: post, slow, working } = here
  const [mine, other] = [{ 'mcp-session-id': await session(here) }, { 'mcp-session-id': await session(here) }]
  const first = post('POST', SLOW, mine)
  await working(1)
  const { status, text } = await post('POST', { ...SLOW, method: 'tools/list' }, mine)
  const { id, error } = JSON.parse(text) as Refusal
  t.alike([status, id, error.code, error.data['requestId']], [400, null, -32_600, 7])
  t.is((await post('POST', { ...SLOW, id: '7', method: 'ping' }, mine)).status, 200, 'a text is another id')
  t.is((await post('POST', { ...SLOW, method: 'ping' }, other)).status, 200, 'and so is that of another session')
  slow.finish({ done: true })
  t.ok((await first).text.includes('done'))
  t.is((await post('POST', { ...SLOW, method: 'ping' }, mine)).status, 200)
})

test('a request refused before any server sees it has its correlation id, too', async (t: Assert) => {
  const here = await scene(t)
  const { send: post, slow, working } = here
  const mine = { 'mcp-session-id': await session(here) }
  const first = post('POST', SLOW, mine)
  await working(1)
  const params = { _meta: { correlationId: 'as named' } }
  const traced = { jsonrpc: '2.0', id: 7, method: 'ping', params }
  const [, headers] = modern(3, 'tools/list')
  const claimed = { jsonrpc: '2.0', id: 3, method: 'tools/list', params: { _meta: { ...CLAIM, ...params._meta } } }
  for (const [body, more] of [
    [traced, mine],
    [traced, { 'mcp-session-id': 'gone' }],
    [claimed, { ...headers, 'mcp-method': 'tools/call' }],
    [claimed, { ...headers, 'mcp-protocol-version': '2025-06-18' }]
  ] as const) {
    const { status, text } = await post('POST', body, more)
    t.alike([status >= 400, (JSON.parse(text) as Refusal).error.data['correlationId']], [true, 'as named'], text)
  }
  const { text } = await post('POST', { ...traced, params: { _meta: { correlationId: 7 } } }, mine)
  t.is(typeof (JSON.parse(text) as Refusal).error.data['correlationId'], 'string', 'else it has one of its own')
  slow.finish({})
  await first
})

test('a client that writes null for absent members is served over HTTP in both eras, from its handshake on', async (t: Assert) => {
  const { send: post } = await scene(t)
  const named = { name: 'old', version: '1', title: null }
  const params = { protocolVersion: '2025-11-25', capabilities: { roots: null }, clientInfo: named, _meta: null }
  const begun = await post('POST', { ...INITIALIZE, params })
  const mine = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
  t.alike(
    [
      begun.status,
      (await post('POST', { jsonrpc: '2.0', method: 'notifications/initialized', params: null }, mine)).status
    ],
    [200, 202]
  )
  for (const absent of [null, { cursor: null }, { _meta: null }, { _meta: { progressToken: null }, cursor: null }]) {
    const { status, text } = await post('POST', { jsonrpc: '2.0', id: 2, method: 'tools/list', params: absent }, mine)
    t.ok(status === 200 && text.includes('slow__do'), text)
  }
  const [body, headers] = modern(3, 'tools/list', { cursor: null })
  const { status, text } = await post('POST', { ...(body as object), error: null }, headers)
  t.ok(status === 200 && text.includes('slow__do'), text)
  const nobody = await post('POST', { jsonrpc: '2.0', id: null, method: 'ping' }, mine)
  t.alike(
    [nobody.status, (JSON.parse(nobody.text) as Refusal).error.code],
    [400, -32_600],
    'the null of an id stays one'
  )
})

test('a listen is refused where its stream is not accepted', async (t: Assert) => {
  const { send: post } = await scene(t)
  const [body, headers] = modern(3, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
  const { status, text } = await post('POST', body, { ...headers, accept: 'application/json' })
  const { id, error } = JSON.parse(text) as Refusal
  t.alike([status, id, /text\/event-stream/.test(error.message)], [406, 3, true])
})

test('a token that ends takes its sessions along, with the calls in them, and no other', async (t: Assert) => {
  const here = await scene(t)
  const { send: post, tokens, working } = here
  const mine = { 'mcp-session-id': await session(here) }
  const other = { authorization: 'Bearer two', 'mcp-session-id': await session(here, 'two') }
  const call = post('POST', SLOW, mine)
  await working(1)
  tokens.emit('one')
  await working(0)
  t.ok((await call).text.includes('Connection closed'), 'its answer is withheld')
  t.is((await post('POST', { ...SLOW, method: 'ping' }, mine)).status, 404)
  t.is((await post('POST', { ...SLOW, method: 'ping' }, other)).status, 200)
  t.is((await post('DELETE', undefined, other)).status, 204)
  t.is(tokens.listenerCount('two'), 0, 'an ended task waits for no token')
  t.is((await post('POST', ...modern(1, 'tools/list'))).status, 200)
})

test('a token that ends closes its calls and streams without a session, and their stored state', async (t: Assert) => {
  const { send: post, tokens, working } = await scene(t)
  const [listen, headers] = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
  const [stream, call] = [post('POST', listen, headers), post('POST', ...modern(2, 'tools/call', SLOW.params))]
  await working(1)
  t.is(tokens.listenerCount('one'), 1)
  tokens.emit('one')
  await working(0)
  t.ok((await call).text.includes('Connection closed'), 'the answer is withheld')
  t.ok((await stream).text.includes('Connection closed'), 'the stream ends')
  t.is(tokens.listenerCount('one'), 0)
})

test('of two tokens that differ only in their id neither gets into the session of the other or shares its connection', async (t: Assert) => {
  const here = await scene(t)
  const { send: post, tokens, slow, working } = here
  const [first, second] = ['one#a', 'one#b'].map((bearer) => ({ authorization: `Bearer ${bearer}` })) as [
    Bearer,
    Bearer
  ]
  const [ofFirst, ofSecond] = [
    { 'mcp-session-id': await session(here, 'one#a') },
    { 'mcp-session-id': await session(here, 'one#b') }
  ]
  const ping = { ...SLOW, method: 'ping' }
  for (const [bearer, id] of [
    [first, ofSecond],
    [second, ofFirst]
  ] as const) {
    const tries = [post('POST', ping, { ...bearer, ...id }), post('GET', undefined, { ...bearer, ...id })]
    for (const one of [...tries, post('DELETE', undefined, { ...bearer, ...id })]) t.is((await one).status, 404)
  }
  const [list, listing] = modern(7, 'tools/list')
  t.is((await post('POST', list, { ...listing, ...first })).status, 200)
  const [body, calling] = modern(7, 'tools/call', SLOW.params)
  const call = post('POST', body, { ...calling, ...second })
  await working(1)
  const held = ['one#a', 'one#b'].map((bearer) => tokens.listenerCount(bearer))
  t.alike(held, [2, 2], 'each has a session and a connection without one')
  tokens.emit('one#a')
  t.is(tokens.listenerCount('one#a'), 0)
  t.is((await post('POST', ping, { ...first, ...ofFirst })).status, 404)
  t.is((await post('POST', ping, { ...second, ...ofSecond })).status, 200)
  if (slow.open.length > 0) slow.finish({ done: true })
  t.ok((await call).text.includes('done'), 'the other is at work')
})

const callWith = (request: IncomingMessage, readIt: () => Promise<Buffer>): McpHttpCall => ({
  principal: { kind: 'token', name: 'one', tier: 0, sandboxId: null, scopes: ['read', 'send'] },
  onAbort: () => {},
  onTokenEnd: () => () => {},
  readBody: readIt,
  skipBody: (limits) => skippedBody(request, limits)
})

test('a body that is too large for any call is refused as one, unless its headers name another method', async (t: Assert) => {
  const world = new World(t)
  const records: InvocationRecord[] = []
  const service = mcpServiceOf(world, await world.owner(), { onCompleted: (record) => void records.push(record) })
  t.teardown(() => service.close())
  const refusedAs = async (headers: Readonly<Record<string, string>>): Promise<HttpError['shape']> => {
    const error = new HttpError(413, { code: 'PAYLOAD_TOO_LARGE', message: 'too large' })
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers }
    } as unknown as IncomingMessage
    const call = { ...callWith(request, () => Promise.reject(error)), skipBody: () => Promise.resolve(null) }
    await t.exception(service.handle(request, {} as ServerResponse, call))
    return error.shape
  }
  for (const [headers, tool] of [
    [{}, ''],
    [{ 'mcp-method': 'tools/call', 'mcp-name': 'text__do' }, 'text__do'],
    [{ 'mcp-method': 'tools/call', 'mcp-name': '=?base64?w6Q=?=' }, 'ä']
  ] as const) {
    const { error } = (await refusedAs(headers)) as unknown as Refusal
    const record = records.at(-1)
    t.alike([error.data['code'], record?.tool, record?.outcome], ['RESOURCE_EXHAUSTED', tool, 'tool_error'])
    t.alike([error.data['runId'], error.data['correlationId']], [record?.runId, record?.correlationId])
    t.ok(record?.runId)
  }
  t.is(await refusedAs({ 'mcp-method': 'tools/list' }), null)
  t.is(records.length, 3)
})

test('a call whose announced body is too large gets a tool result with its id, and is counted by its tool', async (t: Assert) => {
  const world = new World(t)
  const records: InvocationRecord[] = []
  const service = mcpServiceOf(world, await world.owner(), { onCompleted: (record) => void records.push(record) })
  const server = http.createServer((request, response) => {
    const call = callWith(request, () => readBody(request, 1000))
    service.handle(request, response, call).catch(({ status, shape }: HttpError) => {
      response.writeHead(status).end(JSON.stringify(shape))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(async () => {
    await service.close()
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const post = async (body: string, more: Readonly<Record<string, string>> = {}) => {
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...more }, body })
    return [answer.status, JSON.parse(await answer.text()) as Record<string, unknown>] as const
  }
  const params = { name: 'text__do', arguments: { text: 'x'.repeat(70_000) } }
  for (const [body, id, tool, more] of [
    [{ jsonrpc: '2.0', id: 42, method: 'tools/call', params }, 42, 'text__do', {}],
    [{ jsonrpc: '2.0', id: 'a', method: 'tools/call', params }, 'a', 'text__do', { 'mcp-method': 'tools/call' }],
    [{ method: 'tools/call', params, jsonrpc: '2.0', id: 7 }, 7, 'text__do', { 'mcp-name': 'other' }],
    [{ params: { arguments: params.arguments, name: 'x' }, method: 'tools/call', id: 8 }, 8, 'b', { 'mcp-name': 'b' }]
  ] as const) {
    const [status, answer] = await post(JSON.stringify(body), more)
    const result = answer['result'] as { isError: boolean; resultType: string; content: { text: string }[] }
    const { isError, content, resultType } = result
    t.is(resultType, 'complete', 'clients since 2026-07-28 require it')
    const { code } = JSON.parse(content[0]?.text ?? '') as { code: string }
    t.alike([status, answer['id'], isError, code], [200, id, true, 'RESOURCE_EXHAUSTED'])
    t.alike([records.at(-1)?.tool, records.at(-1)?.outcome], [tool, 'tool_error'])
  }
  t.is(records.length, 4)
  for (const [body, asked] of [
    [JSON.stringify({ id: 1, method: 'tools/list', params }), 1],
    [' '.repeat(2000), null]
  ] as const) {
    const [status, { id, error }] = await post(body)
    t.alike([status, id, (error as { code: number }).code], [413, asked, -32_600])
  }
})

test('a body that announces more than is read past is refused before any of it is read', async (t: Assert) => {
  const world = new World(t)
  const service = mcpServiceOf(world, await world.owner())
  t.teardown(() => service.close())
  const readsOf = async (bytes: string): Promise<number> => {
    const body = new PassThrough()
    let reads = 0
    body.on('newListener', (event) => {
      if (event !== 'data') return
      reads += 1
      body.destroy()
    })
    const headers = { 'content-type': 'application/json', 'content-length': bytes }
    const request = Object.assign(body, { method: 'POST', headers }) as unknown as IncomingMessage
    const error = new HttpError(413, { code: 'PAYLOAD_TOO_LARGE', message: 'too large' })
    const call = callWith(request, () => Promise.reject(error))
    await t.exception(service.handle(request, {} as ServerResponse, call), /too large/)
    return reads
  }
  t.is(await readsOf('33554432'), 1)
  for (const bytes of ['33554433', '9'.repeat(30)]) t.is(await readsOf(bytes), 0)
})
