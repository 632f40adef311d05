import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { type AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk'
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory
} from '@a2a-js/sdk/client'
import {
  ClientFactory as OldClientFactory,
  DefaultAgentCardResolver as OldResolver,
  JsonRpcTransportFactory as OldJsonRpcFactory,
  RestTransportFactory as OldRestFactory
} from 'a2a03/client'
import type { JWK } from 'jose'
import { isSealed } from '../../src/domain/membership/signing.js'
import type { SignedCard } from '../../src/domain/membership/types.js'
import { MESH_EXTENSION } from '../../src/adapters/a2a/cards/card-subject.js'
import { USAGE_EXTENSION } from '../../src/adapters/a2a/cards/card-usage.js'
import { checkCard } from '../../src/adapters/a2a/remote/card-check.js'
import { verify } from '../support/membership.js'
import { localMesh, type LocalNode, untilAgent, untilTrue } from '../support/nodes.js'

function agentFile(version: string): string {
  return `---
name: shout
description: Says it louder.
a2a:
  version: ${version}
  capabilities:
    - id: shout.up
      name: Shout
      input: { type: object, properties: { text: { type: string } }, required: [text] }
  runtime: { type: command, command: [node, -e, "console.log(process.argv[1].toUpperCase())", "{input.text}"] }
---
`
}

function get(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { headers: { connection: 'close', ...headers } })
}

async function keysOf(url: string): Promise<readonly JWK[]> {
  return ((await (await get(`${url}/.well-known/jwks.json`)).json()) as { keys: JWK[] }).keys
}

/** The SDK prints every signature that does not fit, and one is enough. */
function quietly(t: Assert): void {
  const { debug } = console
  t.teardown(() => {
    console.debug = debug
  })
  console.debug = (): void => {}
}

test('start --http 0 serves cards that the resolvers and the signature check of the SDKs take, and one for each agent', async (t: Assert) => {
  quietly(t)
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  const url = a.info.http ?? ''
  await untilAgent(a, 'text@a')
  const [key] = (await keysOf(url)) as [JWK]
  const check = verifyAgentCardSignature((kid, jku) =>
    kid === key.kid && jku === `${url}/.well-known/jwks.json`
      ? Promise.resolve(key)
      : Promise.reject(new Error('another key'))
  )
  for (const [base, name] of [
    [`${url}/`, 'a'],
    [`${url}/agents/text/`, 'text']
  ] as const) {
    const card: AgentCard = await new DefaultAgentCardResolver().resolve(base)
    await check(card)
    t.is(card.name, name)
    const old = await new OldResolver().resolve(base)
    t.alike([old.name, old.protocolVersion], [name, '0.3.0'])
    await check(old as unknown as AgentCard)
    const checked = checkCard(old)
    t.alike([checked.findings, checked.versions], [[], ['1.0', '0.3']])
  }
  const ids = (await new DefaultAgentCardResolver().resolve(`${url}/`)).skills.map(({ id }) => id)
  t.ok(ids.includes('text/text.stats') && ids.includes('host/host.report'), ids.join())
  t.absent(ids.some((id) => id.startsWith('operator')))
  const missing = await get(`${url}/agents/nobody/.well-known/agent-card.json`)
  t.alike([missing.status, missing.headers.get('content-type')], [404, 'application/json'])
})

test('clients of both SDKs get the extended card by their own methods, over JSON-RPC and REST, and check its signature', async (t: Assert) => {
  quietly(t)
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  await untilAgent(a, 'text@a')
  const { token } = await a.json<{ token: string }>(['a2a', 'token', 'create', '--name', 'test', '--tier', 'L0'])
  const [key] = (await keysOf(a.info.http ?? '')) as [JWK]
  const check = verifyAgentCardSignature(() => Promise.resolve(key))
  const fetchImpl: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
  for (const base of [`${a.info.http}/`, `${a.info.http}/agents/text/`]) {
    for (const transport of [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })]) {
      const client = await new ClientFactory({ transports: [transport] }).createFromUrl(base)
      const { capabilities } = await client.getAgentCard(undefined, check)
      t.ok(
        capabilities?.extensions.some(({ uri }) => uri === USAGE_EXTENSION),
        `1.0 ${transport.protocolName} ${base}`
      )
    }
    for (const transport of [new OldJsonRpcFactory({ fetchImpl }), new OldRestFactory({ fetchImpl })]) {
      const client = await new OldClientFactory({ transports: [transport] }).createFromUrl(base)
      const { capabilities } = await client.getAgentCard()
      t.ok(
        capabilities.extensions?.some(({ uri }) => uri === USAGE_EXTENSION),
        `0.3 ${transport.protocolName} ${base}`
      )
    }
  }
})

test('a changed agent file is another card with another tag; one that is broken leaves the card that was', async (t: Assert) => {
  quietly(t)
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  const place = `${a.info.http}/agents/shout/.well-known/agent-card.json`
  const file = path.join(a.home, 'agents', 'shout.md')
  t.is((await get(place)).status, 404)
  await fs.writeFile(file, agentFile('1.0.0'))
  await untilTrue(async () => (await get(place)).status === 200, 'the card is there')
  const etag = (await get(place)).headers.get('etag') ?? ''
  t.is((await get(place, { 'if-none-match': etag })).status, 304)
  await fs.writeFile(file, agentFile('2.0.0'))
  await untilTrue(async () => (await get(place, { 'if-none-match': etag })).status === 200, 'the card is another one')
  const changed = await get(place)
  t.not(changed.headers.get('etag'), etag)
  t.is(((await changed.json()) as AgentCard).version, '2.0.0')
  await fs.writeFile(file, '---\nname: shout\na2a: [\n---\n')
  await untilTrue(async () => (await a.api.call('node.status', {})).agents.faults.length > 0, 'the fault is known')
  t.is(((await (await get(place)).json()) as AgentCard).version, '2.0.0')
  await fs.rm(file)
  await untilTrue(async () => (await get(place)).status === 404, 'the card is gone')
  t.absent(
    ((await (await get(`${a.info.http}/.well-known/agent-card.json`)).json()) as AgentCard).skills.some(({ id }) =>
      id.startsWith('shout/')
    )
  )
})

test('agents of other nodes have cards here, signed by this node, with the one that their own node signed inside', async (t: Assert) => {
  quietly(t)
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshWith({ args: ['--http', '0'] }, 'a', 'b')) as [LocalNode, LocalNode]
  await untilAgent(a, 'text@b')
  const base = `${a.info.http}/agents/text@b/`
  const paramsOf = ({ capabilities }: AgentCard): Record<string, unknown> =>
    capabilities?.extensions.find(({ uri }) => uri === MESH_EXTENSION)?.params ?? {}
  const read = (): Promise<AgentCard> => new DefaultAgentCardResolver().resolve(base)
  await untilTrue(async () => {
    const answer = await get(`${base}.well-known/agent-card.json`)
    return answer.ok && paramsOf((await answer.json()) as AgentCard)['original'] !== undefined
  }, 'the card of the other node is in the log')
  const card = await read()
  t.is(card.supportedInterfaces[0]?.url, `${a.info.http}/agents/text@b`)
  const [key] = (await keysOf(a.info.http ?? '')) as [JWK]
  t.is(key.kid, a.info.node.id)
  await verifyAgentCardSignature(() => Promise.resolve(key))(card)
  const original = paramsOf(card)['original'] as SignedCard
  t.alike([original.by, original.body.id, paramsOf(card)['nodeId']], [b.info.node.id, 'text', b.info.node.id])
  t.ok(isSealed('card', original, verify))
  const { skills } = await new DefaultAgentCardResolver().resolve(`${a.info.http}/`)
  t.ok(['text/text.stats', 'text@b/text.stats'].every((id) => skills.some((skill) => skill.id === id)))
  const { token } = await a.json<{ token: string }>(['a2a', 'token', 'create', '--name', 'test', '--tier', 'L0'])
  const extended = await get(`${a.info.http}/a2a/text@b/card`, {
    authorization: `Bearer ${token}`,
    'a2a-version': '1.0'
  })
  t.is(extended.status, 200)
  t.alike(checkCard(await extended.json()).findings, [])
  t.is((await get(`${a.info.http}/a2a/text@b/card`)).status, 401)
})

/** Asks as a proxy does that passes on the Host it was asked with. */
async function asked(
  url: string,
  { host, token }: { readonly host: string; readonly token?: string }
): Promise<Record<string, unknown>> {
  const headers = { host, connection: 'close', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
  const [response] = (await once(http.get(url, { headers }), 'response')) as [http.IncomingMessage]
  const text = (await response.setEncoding('utf8').toArray()).join('')
  return {
    status: response.statusCode,
    challenge: response.headers['www-authenticate'],
    ...(JSON.parse(text) as object)
  }
}

/** The URLs of a card in both forms, and where its key is. */
function placesOf({ supportedInterfaces, url, additionalInterfaces, signatures }: Record<string, unknown>): string[] {
  const many = [supportedInterfaces, additionalInterfaces].flatMap(
    (all) => (all ?? []) as readonly { readonly url: string }[]
  )
  const signed = (signatures ?? []) as readonly { readonly protected: string }[]
  const keys = signed.map((one) => JSON.parse(Buffer.from(one.protected, 'base64url').toString()) as { jku: string })
  const urls = [...many.map((one) => one.url), ...(typeof url === 'string' ? [url] : [])]
  return [...new Set([...urls.filter((one) => !one.startsWith('a2a-mesh:')), ...keys.map(({ jku }) => jku)])].sort()
}

test('with http.publicUrl all cards, keys and OAuth name it, and its host is served, on a wildcard too', async (t: Assert) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await fs.mkdir(home, { mode: 0o700 })
  const config = 'http: { publicUrl: "https://Node.example.org/" }\na2a: { oauth: { enabled: true } }\n'
  await fs.writeFile(path.join(home, 'config.yaml'), config)
  const a = await mesh.start('a', { home, args: ['--http', '0.0.0.0:0'] })
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 1 })
  await mesh.start('b', { join: code })
  t.absent(a.errors().includes('agent cards name 127.0.0.1'), a.errors())
  await untilAgent(a, 'text@b')
  const listener = a.info.http ?? ''
  const { token } = await a.json<{ token: string }>(['a2a', 'token', 'create', '--name', 'test', '--tier', 'L0'])
  const host = 'node.example.org'
  const url = `https://${host}`
  const jwks = `${url}/.well-known/jwks.json`
  await untilTrue(
    async () => (await get(`${listener}/agents/text@b/.well-known/agent-card.json`)).ok,
    'the card of the other node is here'
  )
  for (const version of ['0.3', '1.0'])
    for (const [place, named] of [
      ['/.well-known/agent-card.json', `${url}/a2a`],
      ['/agents/text/.well-known/agent-card.json', `${url}/agents/text`],
      ['/agents/text@b/.well-known/agent-card.json', `${url}/agents/text@b`],
      ['/a2a/card', `${url}/a2a`],
      ['/a2a/text@b/card', `${url}/agents/text@b`]
    ] as const) {
      const card = await asked(`${listener}${place}?A2A-Version=${version}`, { host, token })
      t.alike(placesOf(card), [jwks, named].sort(), `${place} in ${version}`)
    }
  const { keys } = (await asked(`${listener}/.well-known/jwks.json`, { host })) as { keys?: readonly unknown[] }
  t.is(keys?.length, 1)
  const { status, challenge } = await asked(`${listener}/agents`, { host })
  t.alike(
    [status, String(challenge).includes(`resource_metadata="${url}/.well-known/oauth-protected-resource"`)],
    [401, true]
  )
  const server = await asked(`${listener}/.well-known/oauth-authorization-server`, { host })
  t.alike([server['issuer'], server['token_endpoint']], [url, `${url}/oauth/token`])
  t.is((await asked(`${listener}/health`, { host: 'example.org' }))['status'], 403)
})
