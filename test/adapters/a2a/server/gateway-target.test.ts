import test, { type Assert } from 'brittle'
import { gatewayFault, gatewayTarget, isRpcRequest } from '../../../../src/adapters/a2a/server/gateway-target.js'

test('each URL of the gateway has one protocol, one agent and one path below it', (t: Assert) => {
  for (const [asked, face, agent, path] of [
    ['POST /mcp', 'mcp', null, '/mcp'],
    ['POST /agui', 'agui', null, '/agui'],
    ['POST /agents/text/agui', 'agui', 'text', '/agui'],
    ['POST /agents/text', 'rpc', 'text', ''],
    ['POST /a2a', 'rpc', null, ''],
    ['POST /a2a/text', 'rpc', 'text', ''],
    ['POST /a2a/agui', 'rpc', 'agui', ''],
    ['GET /a2a/tasks', 'rest', null, '/tasks'],
    ['GET /a2a/text/tasks', 'rest', 'text', '/tasks'],
    ['GET /agents/text/v1/tasks', 'rest-old', 'text', '/v1/tasks'],
    ['GET /a2a/v1/card', 'card', null, '/v1/card'],
    ['GET /a2a/text/card', 'card', 'text', '/card'],
    ['GET /agents', 'facade', null, '/agents'],
    ['GET /agents/text', 'facade', null, '/agents/text'],
    ['POST /v1/agents/text/run', 'facade', null, '/v1/agents/text/run']
  ] as const) {
    const [method = '', url = ''] = asked.split(' ')
    const target = gatewayTarget(method, url)
    t.alike([target?.face, target?.agent, target?.path], [face, agent, path], asked)
  }
  t.is(gatewayTarget('POST', '/agents//tasks'), null, 'the URL of no agent')
})

test('the listener refuses a request in the form of the protocol at its URL', (t: Assert) => {
  const error = { status: 413, code: 'PAYLOAD_TOO_LARGE', message: 'too large' }
  const refused = (method: string, path: string): unknown => gatewayFault(error, { method, path })
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: error.code, domain: 'a2a-protocol.org' }
  const rpc = { code: -32_600, message: 'too large', data: [info] }
  t.alike(refused('POST', '/a2a/text'), { jsonrpc: '2.0', id: null, error: rpc })
  t.alike(refused('POST', '/agents/text/v1/message:send'), { ...rpc, data: info })
  t.alike(refused('POST', '/agents/text/message:send'), {
    error: { code: 413, status: 'INVALID_ARGUMENT', message: 'too large', details: [info] }
  })
  t.alike(refused('POST', '/agents/text/run'), {
    error: 'payload_too_large',
    message: 'too large',
    code: 'PAYLOAD_TOO_LARGE'
  })
  t.is(refused('POST', '/agents//tasks'), null)
})

test('an answer of JSON-RPC has the id of the body that was read; no other answer reads one', (t: Assert) => {
  const error = { status: 401, code: 'UNAUTHORIZED', message: 'no', headers: {} }
  const idAt = (path: string, body: string | null): unknown =>
    (gatewayFault(error, { method: 'POST', path, body: body === null ? null : Buffer.from(body) }) as { id?: unknown })
      .id
  for (const path of ['/a2a', '/a2a/text', '/agents/text', '/mcp']) {
    t.ok(isRpcRequest({ method: 'POST', path }), path)
    t.absent(isRpcRequest({ method: 'GET', path }), path)
    for (const [body, id] of [
      ['{"id":"seven"}', 'seven'],
      ['{"id":7,"id":8}', 8],
      ['{"id":1e400}', null],
      ['{"id":[7]}', null],
      ['[{"id":7}]', null],
      ['{"id":7', null],
      ['', null],
      ['\ud800', null],
      [`${'{"a":'.repeat(10_000)}7${'}'.repeat(10_000)}`, null],
      [null, null]
    ] as const)
      t.is(idAt(path, body), id, `${path} ${body?.slice(0, 20)}`)
  }
  for (const path of ['/a2a/tasks', '/agents/text/message:send', '/agents/text/run', '/agui', '/agents/text/agui'])
    t.absent(isRpcRequest({ method: 'POST', path }), path)
  t.is(gatewayFault(error, { method: 'GET', path: '/mcp' }), null, 'a stream of MCP has no id')
})
