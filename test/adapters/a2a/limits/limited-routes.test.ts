import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { IncomingMessage } from 'node:http'
import { faceOf, limited } from '../../../../src/adapters/a2a/limits/limited-routes.js'
import { limitRefusal } from '../../../../src/compose/open-gateway.js'
import { CallLimit } from '../../../../src/adapters/a2a/limits/rate-limit.js'
import type { HttpRoute, TokenCall } from '../../../../src/adapters/http/route.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { head, listening, RawConnection, statusesOf, TOKEN, WITH_TOKEN } from '../../http/raw-http.js'

const RPC = { jsonrpc: '2.0', id: 'seven', method: 'ListTasks', params: {} }
const INFO = {
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason: 'OVERLOADED',
  domain: 'a2a-protocol.org',
  metadata: { code: 'RATE_LIMITED', name: 'RATE_LIMIT_EXCEEDED', number: '-32030', retryAfter: '2' }
}
const message = 'too many requests: try again in 2 s'
const rest = { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message, details: [INFO] } }
const rpc = { code: -32603, message, data: [INFO] }
const oldRest = { ...rpc, data: INFO }

test('one limit binds all calls of a token, and each protocol reports it in its own form', async (t: Assert) => {
  const clock = new ManualClock()
  const told: string[] = []
  const how = {
    limit: new CallLimit({ perMinute: 30, burst: 2 }, clock),
    onCall: (face: string, isRefused: boolean) => told.push(`${face} ${isRefused}`),
    refusal: limitRefusal
  }
  const handle = limited<IncomingMessage, TokenCall>((_request, response) => response.writeHead(200).end('{}'), how)
  const places = [
    { path: '/mcp' },
    { path: '/agui' },
    { path: '/agents' },
    { path: '/a2a' },
    { prefix: '/agents/' },
    { prefix: '/a2a/' }
  ] as const
  const { port } = await listening(
    t,
    places.map((place): HttpRoute => ({ ...place, methods: ['GET', 'POST'], handle }))
  )
  const ask = async (path: string, body: string | null) => {
    const init = body === null ? {} : { method: 'POST', body }
    const headers = { authorization: `Bearer ${TOKEN}`, connection: 'close' }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers })
    return [response.status, response.headers.get('retry-after'), await response.json()]
  }
  t.alike(await ask('/agents/text', '{}'), [200, null, {}])
  t.alike(await ask('/a2a/tasks', null), [200, null, {}])
  for (const [path, body, answer] of [
    ['/agents/text', JSON.stringify(RPC), { jsonrpc: '2.0', id: 'seven', error: rpc }],
    ['/mcp', JSON.stringify(RPC), { jsonrpc: '2.0', id: 'seven', error: rpc }],
    ['/a2a', 'no JSON', { jsonrpc: '2.0', id: null, error: rpc }],
    ['/a2a', JSON.stringify({ ...RPC, pad: 'x'.repeat(70_000) }), { jsonrpc: '2.0', id: null, error: rpc }],
    ['/a2a/text', JSON.stringify(RPC), { jsonrpc: '2.0', id: 'seven', error: rpc }],
    ['/agents/text/message:send', '{}', rest],
    ['/a2a/tasks', null, rest],
    ['/agents/text/v1/tasks/t', null, oldRest],
    ['/a2a/text/card', null, rest],
    ['/agui', '{}', rest],
    ['/agents/text/agui', '{}', rest],
    ['/agents/text/run', '{}', { error: 'rate_limited', message, code: 'RATE_LIMITED' }]
  ] as const)
    t.alike(await ask(path, body), [429, '2', answer], path)
  clock.advance(2000)
  t.is((await ask('/agents', null))[0], 200)
  t.alike(told.slice(0, 3), ['rpc false', 'rest false', 'rpc true'])
})

test('a call beyond the limit is refused before its body has come, and its connection ends; a small body is read, and it goes on', async (t: Assert) => {
  const how = {
    limit: new CallLimit({ perMinute: 1, burst: 1 }, new ManualClock()),
    onCall: () => {},
    refusal: limitRefusal
  }
  const handle = limited<IncomingMessage, TokenCall>((_request, response) => response.writeHead(200).end('{}'), how)
  const { port } = await listening(t, [{ path: '/a2a', methods: ['GET', 'POST'], handle }])
  const post = (...headers: string[]): string => head('POST /a2a', { port, headers: [WITH_TOKEN, ...headers] })
  const body = JSON.stringify(RPC)
  const connection = new RawConnection(t, port).write(head('GET /a2a', { port, headers: [WITH_TOKEN] }))
  await connection.until('{}')
  const small = await connection.write(`${post(`Content-Length: ${body.length}`)}${body}`).until('"seven"')
  t.alike(statusesOf(small), [200, 429])
  t.absent(/connection: close/i.test(small))
  // Nothing of these bodies ever comes.
  for (const length of [
    'Content-Length: 1000000',
    'Transfer-Encoding: chunked',
    'Content-Length: 70000\r\nExpect: 100-continue'
  ]) {
    const large = await new RawConnection(t, port).write(post(length)).until('"id":null')
    t.alike(
      [statusesOf(large), /connection: close/i.test(large), /retry-after: 60/i.test(large)],
      [[429], true, true],
      length
    )
  }
  await connection.write(head('GET /a2a', { port, headers: [WITH_TOKEN, 'Connection: close'] })).end()
  t.is(statusesOf(connection.text).length, 3)
})

test('a call counts for one protocol, for any path', async (t: Assert) => {
  const path = fc.array(fc.constantFrom('/', 'mcp', 'a2a', 'agents', 'v1', 'agui', 'card', 'x', '%', 'run'), {
    maxLength: 8
  })
  const faces = new Set(['mcp', 'facade', 'rpc', 'rest', 'rest-old', 'agui', 'card'])
  await holds(
    t,
    fc.property(fc.constantFrom('GET', 'POST', ''), path, (method, parts) =>
      faces.has(faceOf(method, `/${parts.join('')}`))
    ),
    200
  )
})

test('a call passes exactly when the card states that one is left', async (t: Assert) => {
  const steps = fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 30 })
  const property = fc.property(
    fc.integer({ min: 1, max: 100 }),
    fc.integer({ min: 1, max: 6 }),
    steps,
    (perMinute, burst, pauses) => {
      const clock = new ManualClock()
      const limit = new CallLimit({ perMinute, burst }, clock)
      const by = { kind: 'token', name: 'a', id: 'tok_a' } as const
      for (const pause of pauses) {
        clock.advance(pause)
        const { callsLeft, callsAtOnce } = limit.left(by)
        if (callsAtOnce !== burst || (limit.take(by) === 0) !== callsLeft >= 1) return false
      }
      return true
    }
  )
  await holds(t, property, 200)
})
