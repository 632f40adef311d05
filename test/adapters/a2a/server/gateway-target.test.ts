import test, { type Assert } from 'brittle'
import { gatewayFault, gatewayTarget } from '../../../../src/adapters/a2a/server/gateway-target.js'

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
  t.alike(refused('POST', '/agents/text/v1/message:send'), rpc)
  t.alike(refused('POST', '/agents/text/message:send'), {
    error: { code: 413, status: 'INVALID_ARGUMENT', message: 'too large', details: [info] }
  })
  t.alike(refused('POST', '/agents/text/run'), { error: 'payload_too_large', message: 'too large' })
  t.is(refused('POST', '/agents//tasks'), null)
})
