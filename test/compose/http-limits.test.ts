import test, { type Assert } from 'brittle'
import type { NodeApi } from '../../src/ports/node-api.js'
import { apiOf, localNodes } from '../support/local-nodes.js'

type Body = Readonly<Record<string, unknown>>

interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: Body
}

interface Asked {
  readonly token?: string
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly isChunked?: boolean
}

/** A node with HTTP and OAuth, and a client of it. */
async function scene(t: Assert, settings: Readonly<Record<string, unknown>> = {}) {
  const { start } = await localNodes(t)
  const node = await start('a', {
    name: 'a',
    settings: { 'http.listen': '127.0.0.1:0', 'a2a.oauth': { enabled: true }, ...settings }
  })
  const api: NodeApi = apiOf(node)
  const { token } = await api.call('token.create', { scopes: ['read', 'send'] })
  const ask = async (
    path: string,
    { token: shown, json, headers = {}, method, isChunked = false }: Asked = {}
  ): Promise<Answer> => {
    const response = await fetch(`${node.info.http}${path}`, {
      method: method ?? (json === undefined ? 'GET' : 'POST'),
      headers: {
        ...(shown === undefined ? {} : { authorization: `Bearer ${shown}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers
      },
      ...(json === undefined
        ? {}
        : { body: isChunked ? new Blob([JSON.stringify(json)]).stream() : JSON.stringify(json) }),
      ...(isChunked ? { duplex: 'half' as const } : {})
    })
    const text = await response.text()
    const body = text.startsWith('{') ? (JSON.parse(text) as Body) : {}
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body }
  }
  return { node, api, token, ask }
}

const CARD = '/.well-known/agent-card.json'
const rpcOf = (id: unknown): object => ({ jsonrpc: '2.0', id, method: 'ListTasks', params: {} })

test('300 card GETs and 100 wrong tokens in a row from one address meet the limit; a valid token does not', async (t: Assert) => {
  const { ask, token, api } = await scene(t)
  const cards: number[] = []
  for (let sent = 0; sent < 300; sent++) cards.push((await ask(CARD)).status)
  t.ok(
    cards.slice(0, 200).every((status) => status === 200),
    'a kit that polls is not refused'
  )
  t.ok(cards.includes(429))
  const wrong: number[] = []
  for (let sent = 0; sent < 100; sent++) {
    wrong.push((await ask('/a2a/tasks', { token: 'wrong' })).status)
    if (sent % 10 === 0) t.is((await ask('/a2a/tasks', { token })).status, 200)
  }
  t.ok(wrong.filter((status) => status === 429).length >= 60)
  for (let sent = 0; sent < 250; sent++) t.is((await ask(CARD, { token })).status, 200)
  const refused = [...cards, ...wrong].filter((status) => status === 429).length
  const { counters } = await api.call('node.metrics', {})
  const counted = counters.filter(({ name }) => name === 'http_limited')
  t.is(
    counted.reduce((sum, { value }) => sum + value, 0),
    refused,
    'each refused request is counted once'
  )
  t.alike(new Set(counted.map(({ label }) => label)), new Set(['anonymous', 'wrong-token']))
  const { problems } = await api.call('node.status', {})
  const messages = problems.flatMap(({ code, message }) => (code === 'OVERLOADED' ? [message] : []))
  const of = (rule: string): number => counted.find(({ label }) => label === rule)?.value ?? 0
  const rest = 'from one address (the last: loopback)'
  t.alike(messages, [
    `HTTP refused ${of('anonymous')} requests: too many requests without a valid token ${rest}`,
    `HTTP refused ${of('wrong-token')} requests: too many wrong tokens ${rest}`
  ])
})

test('every surface refuses an address beyond its limit, in its own form', async (t: Assert) => {
  const { ask } = await scene(t, { 'http.anonymousLimit': { perMinute: 1, burst: 2 } })
  t.alike([(await ask(CARD)).status, (await ask(CARD)).status], [200, 200])
  const message = (seconds: string): string =>
    `too many requests without a valid token from this address: try again in ${seconds} s`
  const info = (retryAfter: string): object => ({
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: 'OVERLOADED',
    domain: 'a2a-protocol.org',
    metadata: { code: 'RATE_LIMITED', name: 'RATE_LIMIT_EXCEEDED', number: '-32030', retryAfter }
  })
  const forms = {
    rpc: (s: string) => ({ jsonrpc: '2.0', id: 7, error: { code: -32603, message: message(s), data: [info(s)] } }),
    old: (s: string) => ({ code: -32603, message: message(s), data: info(s) }),
    rest: (s: string) => ({
      error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: message(s), details: [info(s)] }
    }),
    facade: (s: string) => ({ error: 'rate_limited', message: message(s), code: 'RATE_LIMITED' }),
    oauth: (s: string) => ({ error: 'temporarily_unavailable', error_description: message(s) }),
    plain: (s: string) => ({ error: { code: 'RATE_LIMITED', message: message(s) } })
  }
  const json = rpcOf(7)
  const places: readonly (readonly [keyof typeof forms, string, Asked?])[] = [
    ['rpc', '/a2a', { json }],
    ['rpc', '/agents/host', { json }],
    ['rpc', '/mcp', { json }],
    ['plain', '/mcp'],
    ['rest', '/a2a/tasks'],
    ['rest', '/agents/host/message:send', { json: {} }],
    ['old', '/agents/host/v1/tasks'],
    ['rest', '/agui', { json: {} }],
    ['rest', '/agents/host/agui', { json: {} }],
    ['rest', '/a2a/host/card'],
    ['facade', '/agents'],
    ['facade', '/v1/agents'],
    ['facade', '/agents/host/run', { json: {} }],
    ['rest', CARD],
    ['rest', '/.well-known/agent.json'],
    ['rest', `/agents/host${CARD}`],
    ['rest', '/.well-known/jwks.json'],
    ['oauth', '/.well-known/oauth-authorization-server'],
    ['oauth', '/.well-known/oauth-protected-resource'],
    ['oauth', '/oauth/token', { json: {} }],
    ['oauth', '/oauth/authorize'],
    ['plain', '/metrics'],
    ['plain', '/nothing']
  ]
  for (const [form, path, asked] of places) {
    const { status, retryAfter, body } = await ask(path, asked)
    t.alike([status, body], [429, forms[form](retryAfter ?? 'absent')], path)
  }
  t.is((await ask('/health')).status, 200)
})

test('a request of JSON-RPC without a valid token gets its id back; one whose id cannot be read gets null', async (t: Assert) => {
  const { ask, token } = await scene(t, { 'http.wrongTokenLimit': { perMinute: 600, burst: 100 } })
  const ids: readonly (readonly [sent: unknown, got: unknown])[] = [
    [7, 7],
    ['seven', 'seven'],
    ['', ''],
    [0, 0],
    [-1, -1],
    ['x'.repeat(257), null],
    [1.5, null],
    [{}, null],
    [null, null]
  ]
  for (const path of ['/a2a', '/a2a/host', '/agents/host', '/mcp']) {
    for (const shown of [{}, { token: 'wrong' }, { token: `${token}x` }]) {
      for (const [sent, got] of ids.slice(0, path === '/a2a' ? ids.length : 2)) {
        const { status, body } = await ask(path, { ...shown, json: rpcOf(sent) })
        t.alike(
          [status, body['id'], body['jsonrpc'], 'error' in body],
          [401, got, '2.0', true],
          `${path} ${String(sent)}`
        )
      }
    }
  }
  const foreign = { origin: 'https://elsewhere.example' }
  for (const path of ['/a2a', '/agents/host', '/mcp'])
    for (const [sent, got] of ids.slice(0, 2)) {
      const { status, body } = await ask(path, { token, json: rpcOf(sent), headers: foreign })
      t.alike([status, body['id'], body['jsonrpc']], [403, got, '2.0'], `${path} of a foreign page`)
    }
  const text = { method: 'POST', headers: { 'content-type': 'text/plain' } }
  t.is((await ask('/a2a', text)).body['id'], null)
  t.is((await ask('/a2a', { json: [rpcOf(1)] })).body['id'], null, 'a batch has no id')
  t.is(
    (await ask('/a2a', { json: { ...rpcOf(1), pad: 'x'.repeat(70_000) } })).body['id'],
    null,
    'a large body is not read'
  )
  t.absent('id' in (await ask('/agents/host/message:send', { json: { id: 7 } })).body)
})

test('a request of JSON-RPC that is refused as too large or for its type gets its id back, where it is at an edge of the body', async (t: Assert) => {
  const { ask, token } = await scene(t)
  const params = { text: 'x'.repeat(11_000_000) }
  const large: readonly (readonly [json: unknown, got: unknown])[] = [
    [{ jsonrpc: '2.0', id: 7, method: 'SendMessage', params }, 7],
    [{ jsonrpc: '2.0', method: 'SendMessage', id: 'after the method', params }, 'after the method'],
    [{ jsonrpc: '2.0', method: 'SendMessage', params, id: 'last' }, 'last'],
    [{ params, id: 8, method: 'SendMessage', jsonrpc: '2.0' }, 8],
    [{ params: { ...params, id: 9 } }, null],
    [{ pad: params, id: 10, params }, null],
    [params.text, null]
  ]
  for (const [json, got] of large) {
    for (const isChunked of [false, true]) {
      const { status, body } = await ask('/a2a', { token, json, isChunked })
      t.alike([status, body['id'], body['jsonrpc']], [413, got, '2.0'], `${JSON.stringify(got)} ${isChunked}`)
    }
  }
  const call = { jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'text__stats', arguments: params } }
  for (const isChunked of [false, true]) {
    const { status, body } = await ask('/mcp', { token, json: call, isChunked })
    t.alike([status, body['id'], 'result' in body], [200, 4, true], 'a call of a tool is refused as one')
  }
  const headers = { 'content-type': 'text/plain' }
  for (const id of ['one', 2]) t.is((await ask('/a2a', { token, json: rpcOf(id), headers })).body['id'], id)
  t.is((await ask('/mcp', { token, json: { jsonrpc: '2.0', id: 3, method: 'tools/list', params } })).body['id'], 3)
  t.is((await ask('/a2a/tasks', { token })).status, 200)
})
