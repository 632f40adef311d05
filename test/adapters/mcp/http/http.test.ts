import http from 'node:http'
import { once } from 'node:events'
import test, { type Assert } from 'brittle'
import { HttpConnection } from '../../../../src/adapters/mcp/http/http-connection.js'
import {
  HttpSessions,
  MAX_SESSIONS,
  SESSION_IDLE_MS,
  type SessionCaller
} from '../../../../src/adapters/mcp/http/http-sessions.js'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { echo } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { serveMcpOverHttp } from '../../../support/mcp-http.js'
import { CLAIM, INITIALIZE, MODERN, modern, type Scene, scene, session } from '../../../support/mcp-http-scene.js'

test('the official clients of both SDKs work over HTTP, several at once', async (t: Assert) => {
  const { url } = await scene(t)
  const fresh = new Client({ name: 'v2', version: '1' })
  await fresh.connect(new StreamableHTTPClientTransport(url))
  const newest = new Client({ name: 'v2 modern', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await newest.connect(new StreamableHTTPClientTransport(url))
  const old = new OldClient({ name: 'v1', version: '1' })
  await old.connect(new OldTransport(url))
  t.is(newest.getNegotiatedProtocolVersion(), MODERN)
  for (const client of [fresh, newest, old]) {
    const { tools } = await client.listTools()
    t.ok(tools.some(({ name }) => name === 'text__do'))
    const results = await Promise.all([1, 2, 3].map((n) => client.callTool({ name: 'text.do', arguments: { n } })))
    t.alike(
      results.map((one) => JSON.parse((one.content as { text: string }[])[0]?.text ?? '')),
      [{ n: 1 }, { n: 2 }, { n: 3 }]
    )
    await client.close()
  }
})

test('a message that claims its version needs no session, and equal ids of different clients stay apart', async (t: Assert) => {
  const { send: post } = await scene(t)
  const answers = await Promise.all(
    [1, 2, 3].map((n) => post('POST', ...modern(7, 'tools/call', { name: 'text__do', arguments: { n } })))
  )
  for (const [at, { status, headers, text }] of answers.entries()) {
    t.is(status, 200)
    t.is(headers['content-type'], 'application/json')
    const { id, result } = JSON.parse(text) as { id: number; result: { content: { text: string }[] } }
    t.is(id, 7)
    t.alike(JSON.parse(result.content[0]?.text ?? ''), { n: at + 1 })
  }
})

test('headers that are missing or say something else than the body are refused', async (t: Assert) => {
  const { send: post } = await scene(t)
  const [body, headers] = modern(1, 'tools/call', { name: 'text__do', arguments: {} })
  const without = (name: string): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))
  const wrong = [
    without('mcp-protocol-version'),
    without('mcp-method'),
    without('mcp-name'),
    { ...headers, 'mcp-method': 'tools/list' },
    { ...headers, 'mcp-name': 'health' },
    { ...headers, 'mcp-name': '=?base64?////?=' },
    { ...headers, 'mcp-protocol-version': '2025-06-18' }
  ]
  for (const one of wrong) {
    const { status, text } = await post('POST', body, one)
    t.is(status, 400)
    t.is((JSON.parse(text) as { error: { code: number } }).error.code, -32_020, text)
  }
  const encoded = `=?base64?${Buffer.from('text__do').toString('base64')}?=`
  t.is((await post('POST', body, { ...headers, 'mcp-name': encoded })).status, 200)
})

test('a method absent from the claimed version is 404, and an unsupported version is 400 with the supported ones', async (t: Assert) => {
  const { send: post } = await scene(t)
  const removed = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']
  for (const method of [...removed, 'no/such']) {
    const { status, text } = await post('POST', ...modern(1, method))
    const { id, error } = JSON.parse(text) as { id: number; error: { code: number } }
    t.alike([status, id, error.code], [404, 1, -32_601], method)
  }
  const params = { uri: 'a2a://audit' }
  t.is((await post('POST', ...modern(1, 'resources/subscribe', params))).status, 404, 'also with params that fit')
  for (const method of ['server/discover', 'tools/list']) {
    const claim = { ...CLAIM, 'io.modelcontextprotocol/protocolVersion': 'v999' }
    const body = { jsonrpc: '2.0', id: 2, method, params: { _meta: claim } }
    const { status, text } = await post('POST', body, { 'mcp-protocol-version': 'v999', 'mcp-method': method })
    const { id, error } = JSON.parse(text) as { id: number; error: { code: number; data: Record<string, unknown> } }
    t.alike(
      [status, id, error.code, error.data['supported'], error.data['requested']],
      [400, 2, -32_022, [MODERN], 'v999'],
      method
    )
  }
  const here = { send: post } as Scene
  const old = await post(
    'POST',
    { jsonrpc: '2.0', id: 3, method: 'no/such' },
    { 'mcp-session-id': await session(here) }
  )
  t.is(old.status, 200, 'an older client gets it in the answer alone')
})

test('bytes that are no message get an answer of the protocol, never a page', async (t: Assert) => {
  const { send: post } = await scene(t)
  const rows: readonly [string, unknown, Readonly<Record<string, string>>, number, number][] = [
    ['no JSON', '{', {}, 400, -32_700],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400, -32_700],
    ['a batch', [INITIALIZE], {}, 400, -32_600],
    ['a text', '"hello"', {}, 400, -32_600],
    ['no message', {}, {}, 400, -32_600],
    ['another content type', '{}', { 'content-type': 'text/plain' }, 415, -32_000],
    ['nothing that is accepted', INITIALIZE, { accept: 'text/html' }, 406, -32_000],
    ['before the handshake', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, {}, 400, -32_002],
    ['an unknown session', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'mcp-session-id': 'none' }, 404, -32_001]
  ]
  for (const [what, body, headers, status, code] of rows) {
    const answer = await post('POST', body, headers)
    const { error } = JSON.parse(answer.text) as { error: { code: number; data: { correlationId: string } } }
    t.alike([answer.status, error.code, answer.headers['content-type']], [status, code, 'application/json'], what)
    t.ok(error.data.correlationId.length > 0)
  }
})

test('a session belongs to its caller alone, reports changes on one stream, and ends', async (t: Assert) => {
  const here = await scene(t)
  const { world, owner, url, send: post } = here
  const id = await session(here)
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
  t.is((await post('POST', list, { 'mcp-session-id': id })).status, 200)
  t.is((await post('POST', list, { 'mcp-session-id': id, authorization: 'Bearer two' })).status, 404)
  const stream = http.request(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, agent: false })
  stream.end()
  const [events] = (await once(stream, 'response')) as [http.IncomingMessage]
  t.is((await post('GET', undefined, { 'mcp-session-id': id })).status, 409)
  owner.source.set([echo('text'), echo('late')])
  const told = once(events.setEncoding('utf8'), 'data')
  await world.pass(2000)
  t.ok(String((await told)[0]).includes('notifications/tools/list_changed'))
  const ended = once(events, 'end')
  t.is((await post('DELETE', undefined, { 'mcp-session-id': id })).status, 204)
  await ended
  t.is((await post('POST', list, { 'mcp-session-id': id })).status, 404)
  t.is((await post('DELETE', undefined, { 'mcp-session-id': id })).status, 404)
})

test('a client that hangs up has its call canceled, and one that cancels in its session too', async (t: Assert) => {
  const here = await scene(t)
  const { world, slow, url } = here
  const began = async (): Promise<void> => {
    while (slow.open.length === 0) {
      await new Promise((resolve) => setImmediate(resolve))
      await world.settle()
    }
  }
  const ended = async (): Promise<void> => {
    while (slow.open.length > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      await world.settle()
    }
  }
  const [body, headers] = modern(1, 'tools/call', { name: 'slow__do', arguments: {} })
  const request = http.request(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    agent: false
  })
  request.on('error', () => {})
  request.end(JSON.stringify(body))
  await began()
  request.destroy()
  await ended()
  const id = await session(here)
  const call = { jsonrpc: '2.0', id: 'mine', method: 'tools/call', params: { name: 'slow__do', arguments: {} } }
  const other = http.request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': id },
    agent: false
  })
  other.end(JSON.stringify(call))
  const answered = once(other, 'response')
  await began()
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'mine' } }
  t.is((await here.send('POST', cancel, { 'mcp-session-id': id })).status, 202)
  await ended()
  const [response] = (await answered) as [http.IncomingMessage]
  t.is(response.statusCode, 204)
  response.resume()
  const lost = http.request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'mcp-session-id': id },
    agent: false
  })
  lost.on('error', () => {})
  lost.end(JSON.stringify(call))
  await began()
  const closed = new Promise((resolve) => lost.once('close', resolve))
  lost.destroy()
  await closed
  // An answered request on another connection: the server knows that the first one is gone.
  t.is((await here.send('POST', { jsonrpc: '2.0', id: 2, method: 'ping' }, { 'mcp-session-id': id })).status, 200)
  t.is((await here.send('POST', cancel, { 'mcp-session-id': id })).status, 202)
  await ended()
  t.pass('a client that lost its connection can still cancel')
})

test('a cancellation without a session cancels nothing: its id may be that of another client', async (t: Assert) => {
  const { world, slow, send: post } = await scene(t)
  const call = post('POST', ...modern(1, 'tools/call', { name: 'slow__do', arguments: {} }))
  while (slow.open.length === 0) {
    await new Promise((resolve) => setImmediate(resolve))
    await world.settle()
  }
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, _meta: CLAIM } }
  t.is(
    (await post('POST', cancel, { 'mcp-protocol-version': MODERN, 'mcp-method': 'notifications/cancelled' })).status,
    202
  )
  await world.settle()
  t.is(slow.open.length, 1)
  slow.finish({ done: true })
  t.ok((await call).text.includes('done'))
})

test('callers are forgotten once they are idle, and there are never more than fit', (t: Assert) => {
  const clock = new ManualClock()
  let made = 0
  const sessions = new HttpSessions({ clock, newId: () => `id ${made++}`, connect: () => new HttpConnection() })
  const caller = (name: string): SessionCaller => ({
    principal: { kind: 'token', name, tier: 0, sandboxId: null, scopes: [] },
    onTokenEnd: () => () => {}
  })
  const first = sessions.shared(caller('first'))
  t.is(sessions.shared(caller('first')), first)
  const { principal } = caller('first')
  t.is(
    sessions.find(`shared ${JSON.stringify(principal)}`, { principal, onTokenEnd: () => () => {} }),
    null,
    'it is no session'
  )
  for (let at = 0; at < MAX_SESSIONS; at++) {
    clock.advance(1)
    t.ok(sessions.shared(caller(`${at}`)) !== null)
  }
  t.ok(first?.isClosed, 'the one idle longest was dropped')
  clock.advance(2 * SESSION_IDLE_MS)
  t.ok(sessions.shared(caller('0')) !== null)
  return sessions.close()
})

test('official clients call a tool two hops away, which a node between carries', async (t: Assert) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  const c = await world.member('c', { agents: [echo('far')] })
  // No place for a link: what they say to each other goes by way of the one between.
  a.links.withoutPlace = [c.id]
  await world.link(a, b)
  await world.link(b, c)
  await world.pass(5000)
  const url = await serveMcpOverHttp(t, world, a)
  const fresh = new Client({ name: 'v2', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await fresh.connect(new StreamableHTTPClientTransport(url))
  const old = new OldClient({ name: 'v1', version: '1' })
  await old.connect(new OldTransport(url))
  for (const client of [fresh, old]) {
    const { tools } = await client.listTools()
    t.ok(tools.some(({ name }) => name === 'far_at_c__do'))
    let isDone = false
    const call = client.callTool({ name: 'far_at_c__do', arguments: { n: 1 } }).finally(() => (isDone = true))
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve))
      await world.settle()
    }
    t.alike(JSON.parse(((await call).content as { text: string }[])[0]?.text ?? ''), { n: 1 })
    await client.close()
  }
  t.ok(b.counted('messages_passed_on', 'request') >= 2)
})
