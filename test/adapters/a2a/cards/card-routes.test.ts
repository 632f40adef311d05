import test, { type Assert } from 'brittle'
import { checkCard } from '../../../../src/adapters/a2a/remote/card-check.js'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { DefaultAgentCardResolver as OldResolver } from 'a2a03/client'
import fc from 'fast-check'
import { CardStore } from '../../../../src/adapters/a2a/cards/card-store.js'
import { cardForm, type CardService, createCardService } from '../../../../src/adapters/a2a/cards/card-routes.js'
import { CardSigner } from '../../../../src/adapters/a2a/cards/card-signature.js'
import { USAGE_EXTENSION } from '../../../../src/adapters/a2a/cards/card-usage.js'
import type { HttpRoute } from '../../../../src/adapters/http/route.js'
import type { NodeApi } from '../../../../src/ports/node-api.js'
import { listening, TOKEN } from '../../http/raw-http.js'
import { failsWith } from '../../../support/fails.js'
import { echo } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { holds } from '../../../support/holds.js'

interface Scene {
  readonly world: World
  readonly node: FakeNode
  readonly url: string
  readonly service: CardService
  /** What kept cards from being made. */
  readonly faults: readonly unknown[]
}

interface Given {
  readonly origins?: readonly string[]
  /** What the cards are made by, of the node's own. */
  readonly change?: (api: NodeApi) => NodeApi
}

/** The owner's node with an agent `text`, its cards served on the loopback. */
async function serving(t: Assert, { origins = [], change = (api) => api }: Given = {}): Promise<Scene> {
  const world = new World(t)
  const node = await world.owner({ agents: [echo('text'), echo('other')] })
  const routes: HttpRoute[] = []
  const { listener } = await listening(t, routes, { origins })
  const base = listener.url
  const signer = new CardSigner({ sign: node.actor.sign, nodeId: node.id, keysUrl: `${base}/.well-known/jwks.json` })
  const host = { base, pushNotifications: false, version: '0.1.0', clock: world.clock, signer }
  const originals = { find: () => null, onChange: () => (): void => {} }
  const faults: unknown[] = []
  const api = change(node.api({ tier: 3, scopes: ['read'] }))
  const book = new CardStore({ ...host, host, originals, api, onFault: (error) => faults.push(error) })
  t.teardown(() => book.close())
  const service = createCardService({
    ...host,
    store: book,
    apiFor: (principal) => node.api(principal),
    limits: () => ({ maxConnections: 512 })
  })
  listener.open({
    routes: service.routes,
    admit: (token) => admitted(token),
    onRefusal: () => {},
    onFault: (error) => t.fail(String(error))
  })
  return { world, node, url: base, service, faults }
}

/** Who a token of a test is: `TOKEN` looks, anything else may do nothing. */
function admitted(
  token: string
): ReturnType<Parameters<Awaited<ReturnType<typeof listening>>['listener']['open']>[0]['admit']> {
  const scopes = token === TOKEN ? (['read'] as const) : []
  return { principal: { kind: 'token', name: 'token test', tier: 2, sandboxId: null, scopes }, onEnd: () => () => {} }
}

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json']

function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(url, { method, headers: { connection: 'close', ...headers } })
}

test('every well-known path serves its card, in the form of the version that is asked for', async (t: Assert) => {
  const { url } = await serving(t)
  const places = [
    ...WELL_KNOWN.map((path) => ['owner', path] as const),
    ...WELL_KNOWN.flatMap((path) => [['text', `/agents/text${path}`] as const, ['text', `/a2a/text${path}`] as const])
  ]
  for (const [name, path] of places) {
    for (const [version, versions] of [
      ['1.0', ['1.0']],
      ['0.3', ['1.0', '0.3']],
      [null, ['1.0', '0.3']]
    ] as const) {
      const answer = await get(url + path, version === null ? {} : { 'a2a-version': version })
      t.is(answer.status, 200, path)
      t.alike([answer.headers.get('content-type'), answer.headers.get('vary')], ['application/json', 'A2A-Version'])
      t.is(answer.headers.get('cache-control'), 'public, max-age=60')
      const card = (await answer.json()) as { name: string }
      const checked = checkCard(card)
      t.alike([card.name, checked.findings, checked.versions], [name, [], versions])
    }
  }
})

test('no header is 0.3, 1.0 and later is 1.0, and nonsense is neither', async (t: Assert) => {
  const table = {
    '1.0': 'one',
    '1': 'one',
    ' 1.0': 'one',
    '2.7': 'one',
    '0.3': 'hybrid',
    '0.3.0': 'hybrid',
    '': 'hybrid',
    x: 'hybrid',
    '-1': 'hybrid'
  }
  for (const [header, form] of Object.entries(table)) t.is(cardForm(header), form, header)
  t.is(cardForm(''), 'hybrid')
  await holds(
    t,
    fc.property(fc.string(), (header) => ['one', 'hybrid'].includes(cardForm(header)))
  )
})

test('a client that has the card gets 304: by the tag, or without a tag by the date', async (t: Assert) => {
  const { url } = await serving(t)
  const place = `${url}/agents/text/.well-known/agent-card.json`
  const first = await get(place)
  const [etag, date] = [first.headers.get('etag') ?? '', first.headers.get('last-modified') ?? ''] as const
  t.ok(/^"[\w-]{43}"$/.test(etag), etag)
  t.is(new Date(date).toUTCString(), date)
  const earlier = new Date(Date.parse(date) - 1000).toUTCString()
  const table: readonly (readonly [number, Record<string, string>])[] = [
    [304, { 'if-none-match': etag }],
    [304, { 'if-none-match': `"other", W/${etag}` }],
    [304, { 'if-none-match': '*' }],
    [200, { 'if-none-match': '"other"' }],
    [200, { 'if-none-match': etag, 'a2a-version': '1.0' }],
    [304, { 'if-modified-since': date }],
    [200, { 'if-modified-since': earlier }],
    [200, { 'if-modified-since': 'nonsense' }],
    [200, { 'if-none-match': '"other"', 'if-modified-since': date }]
  ]
  for (const [status, headers] of table) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await get(place, headers, method)
      t.is(answer.status, status, `${method} ${JSON.stringify(headers)}`)
      t.ok(answer.headers.has('etag') && answer.headers.has('last-modified') && answer.headers.has('cache-control'))
      const text = await answer.text()
      t.is(text === '', status === 304 || method === 'HEAD')
    }
  }
  const [head, body] = [await get(place, {}, 'HEAD'), await first.text()]
  t.is(head.headers.get('content-length'), String(Buffer.byteLength(body)))
  t.is((await get(place, {}, 'POST')).status, 405)
})

test('an unknown agent is 404 in JSON, for any name', async (t: Assert) => {
  const { url } = await serving(t)
  for (const name of [
    'nobody',
    'text@nowhere',
    '%',
    '%00',
    '__proto__',
    'operator',
    encodeURIComponent('a/../text'),
    'x'.repeat(2000)
  ]) {
    for (const prefix of ['agents', 'a2a']) {
      const answer = await get(`${url}/${prefix}/${name}/.well-known/agent-card.json`)
      t.alike(
        [answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')],
        [404, 'application/json', 'no-store']
      )
      const { error } = (await answer.json()) as {
        error: { code: number; status: string; message: string; details: { reason: string }[] }
      }
      t.alike([error.code, error.status, error.details[0]?.reason], [404, 'NOT_FOUND', 'AGENT_NOT_FOUND'])
      t.ok(error.message.length < 400)
    }
  }
  t.is((await get(`${url}/agents/text/more/.well-known/agent-card.json`)).status, 401, 'deeper paths are none of these')
})

test('where no card could be made, and until one is, the answer is 503 in JSON', async (t: Assert) => {
  let isBroken = true
  const change = (api: NodeApi): NodeApi => ({
    watch: (...given) => api.watch(...given),
    call: (name, ...rest) =>
      isBroken && name === 'node.info' ? Promise.reject(new Error('broken')) : api.call(name, ...rest)
  })
  const { url, world, node, faults } = await serving(t, { change })
  const answer = await get(`${url}/.well-known/agent-card.json`)
  const { error } = (await answer.json()) as { error: { status: string } }
  t.alike([answer.status, error.status, faults.length], [503, 'UNAVAILABLE', 1])
  isBroken = false
  node.source.set([echo('other')])
  await world.pass(2000)
  t.is((await get(`${url}/agents/other/.well-known/agent-card.json`)).status, 200)
})

test('the key set is that of the signatures, and may be kept', async (t: Assert) => {
  const { url, node } = await serving(t)
  const answer = await get(`${url}/.well-known/jwks.json`)
  const { keys } = (await answer.json()) as { keys: readonly { kid: string; d?: string }[] }
  t.alike([keys.length, keys[0]?.kid, keys[0]?.d], [1, node.id, undefined])
  t.is((await get(`${url}/.well-known/jwks.json`, { 'if-none-match': answer.headers.get('etag') ?? '' })).status, 304)
})

test('an answer to a page of an allowed origin states that answers differ by origin and version', async (t: Assert) => {
  const { url } = await serving(t, { origins: ['https://page.example'] })
  const answer = await get(`${url}/.well-known/agent-card.json`, { origin: 'https://page.example' })
  t.alike([answer.status, answer.headers.get('vary')], [200, 'origin, A2A-Version'])
})

test('the extended card needs a token that may look, counts tasks now, and is signed but never kept', async (t: Assert) => {
  const { url, world, node, service } = await serving(t)
  const place = `${url}/a2a/text/card`
  const bearer = { authorization: `Bearer ${TOKEN}` }
  for (const [path, status] of [
    ['/a2a/text/card', 'UNAUTHENTICATED'],
    ['/a2a/text@owner/card', 'UNAUTHENTICATED']
  ] as const) {
    const answer = await get(url + path)
    const { error } = (await answer.json()) as {
      error: { code: number; status: string; details: { reason: string }[] }
    }
    t.alike(
      [answer.status, error.code, error.status, error.details[0]?.reason],
      [401, 401, status, 'UNAUTHORIZED'],
      path
    )
  }
  const old = (await (await get(`${url}/a2a/v1/card`)).json()) as { code: number; data?: { reason: string } }
  t.alike([old.code, old.data?.reason], [-32_603, 'UNAUTHORIZED'], 'a path of REST in 0.3')
  const forbidden = await get(place, { authorization: 'Bearer other' })
  t.alike(
    [forbidden.status, ((await forbidden.json()) as { error: { status: string } }).error.status],
    [403, 'PERMISSION_DENIED']
  )
  t.is((await get(`${url}/a2a/nobody/card`, bearer)).status, 404)
  t.is((await get(`${url}/a2a/%/card`, bearer)).status, 404)
  const usage = async (): Promise<Record<string, unknown>> => {
    const answer = await get(place, { ...bearer, 'a2a-version': '1.0' })
    t.alike([answer.status, answer.headers.get('cache-control'), answer.headers.get('etag')], [200, 'no-store', null])
    const card = (await answer.json()) as {
      capabilities: { extensions: { uri: string; params: Record<string, unknown> }[] }
      signatures: unknown[]
    }
    t.alike(checkCard(card).findings, [])
    t.ok(card.signatures.length > 0)
    return card.capabilities.extensions.find(({ uri }) => uri === USAGE_EXTENSION)?.params ?? {}
  }
  const none = { completed: 0, failed: 0, canceled: 0, rejected: 0, running: 0, unknown: 0 }
  t.alike(await usage(), { status: 'ready', tasks: none, counted: 0, left: 0, limits: { maxConnections: 512 } })
  const called = node.api().call('message.call', { agent: 'text', capability: 'text.do', input: {} })
  await world.settle()
  t.is((await called).outcome, 'COMPLETED')
  const { tasks, counted } = await usage()
  t.alike(
    [tasks, counted],
    [{ ...none, completed: 1 }, 2],
    'the caller here has a task of its own, which is not the agent'
  )
  const ofNode = (await (await get(`${url}/a2a/v1/card`, bearer)).json()) as { name: string }
  t.is(ofNode.name, 'owner', 'a path of REST in 0.3')
  const { principal } = admitted(TOKEN) as { principal: Parameters<CardService['extended']>[1]['principal'] }
  t.is((await service.extended(null, { form: 'hybrid', principal })).name, 'owner')
  await failsWith(t, 'AGENT_NOT_FOUND', () => service.extended('nobody', { form: 'one', principal }))
  await failsWith(t, 'FORBIDDEN', () =>
    service.extended('text', { form: 'one', principal: { ...principal, scopes: [] } })
  )
})

test('the resolvers of both SDKs read the card of the node and of its agents', async (t: Assert) => {
  const { url } = await serving(t)
  for (const [base, name, place] of [
    [`${url}/`, 'owner', `${url}/a2a`],
    [`${url}/agents/text/`, 'text', `${url}/agents/text`]
  ] as const) {
    const card = await new DefaultAgentCardResolver().resolve(base)
    t.alike([card.name, card.supportedInterfaces[0]?.url, card.capabilities?.extendedAgentCard], [name, place, true])
    t.is(card.securitySchemes['bearer']?.scheme?.$case, 'httpAuthSecurityScheme')
    const old = await new OldResolver().resolve(base)
    t.alike([old.name, old.url, old.preferredTransport, old.security], [name, place, 'JSONRPC', [{ bearer: [] }]])
    const both = await new DefaultAgentCardResolver({ legacyCompat: { enabled: true } }).resolve(base)
    t.is(both.supportedInterfaces[0]?.protocolVersion, '1.0')
  }
})
