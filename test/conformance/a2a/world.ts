import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { type LocalNode, type TestMesh, untilAgent, untilOnline, untilTrue } from '../../support/nodes.js'
import type { Teardown } from '../../support/tmp.js'
import { type Receiver, receiver } from '../../support/webhook.js'
import { writeAgents } from './agents.js'
import type { CallerName } from './cases.js'
import { type PeerAgent, peerAgent } from './peer-agent.js'

/** A node that clients ask, and where its agents are. */
export interface Place {
  readonly name: 'direct' | 'hop'
  readonly node: LocalNode
  readonly base: string
  readonly tokens: Readonly<Record<CallerName, string | null>>
  /** Of the card of `acts`. */
  readonly capabilities: Readonly<Record<string, unknown>>
  /** Bindings on the card of `acts`, as cards name them. */
  readonly bindings: readonly string[]
  /** URL of an agent. */
  urlOf(agent: string): string
}

/** Two real nodes: `far` has the agents, and `near` is one mesh hop away from them. */
export interface World {
  readonly places: readonly Place[]
  /** An absent file for which an agent waits; {@link open} makes it. */
  gate(nonce: string): string
  open(nonce: string): void
  /** A URL for notifications. With `?refuse=1` the first one is refused. */
  hook(nonce: string): string
  notifications(nonce: string): Promise<Readonly<Record<string, unknown>>[]>
  readonly teach: PeerAgent['teach']
  readonly askedOf: PeerAgent['askedOf']
}

/** Agents of the far node that cases and clients ask. */
const AGENTS = ['acts', 'read', 'golden', 'wide']

/** Starts the nodes. */
export async function startWorld<N extends LocalNode>(t: Teardown, mesh: TestMesh<N>): Promise<World> {
  const dir = await mesh.dir()
  const [peers, hooks] = [await peerAgent(t), await receiver(t)]
  const refused = new Set<string>()
  hooks.answer(({ path: place }) => {
    if (!place.includes('refuse') || refused.has(place)) return { status: 200 }
    refused.add(place)
    return { status: 503 }
  })
  const { far, near } = await startPair(mesh, { dir, peers, hooks })
  const places = [await placeOf(far, 'direct'), await placeOf(near, 'hop')]
  const gate = (nonce: string): string => path.join(dir, `gate-${nonce}`)
  const keys = places.map(({ base }) => createRemoteJWKSet(new URL('/.well-known/jwks.json', base)))
  return {
    places,
    gate,
    open: (nonce) => fs.writeFileSync(gate(nonce), ''),
    hook: (nonce) => `${hooks.url}/${nonce}`,
    notifications: (nonce) =>
      Promise.all(
        hooks.got
          .filter((one) => one.path.split('?')[0] === `/hook/${nonce}`)
          .map(async ({ path: place, headers, body, json }) => ({
            id: headers['webhook-id'],
            headers,
            body: json,
            isSigned: await isSigned(keys, { headers, url: `http://${hooks.host}${place}`, body })
          }))
      ),
    teach: peers.teach,
    askedOf: peers.askedOf
  }
}

async function startPair<N extends LocalNode>(
  mesh: TestMesh<N>,
  { dir, peers, hooks }: { readonly dir: string; readonly peers: PeerAgent; readonly hooks: Receiver }
): Promise<{ readonly far: N; readonly near: N }> {
  const homes = { far: path.join(dir, 'far'), near: path.join(dir, 'near') }
  for (const home of Object.values(homes)) fs.mkdirSync(home)
  await writeAgents(path.join(homes.far, 'agents'))
  const allowed = `a2a:\n  allowPrivate: ["${peers.host}", "${hooks.host}"]\n`
  const agents = ['golden', 'wide'].map((name) => `    ${name}: { card: "${peers.cardOf(name)}" }\n`).join('')
  fs.writeFileSync(path.join(homes.near, 'config.yaml'), allowed)
  fs.writeFileSync(path.join(homes.far, 'config.yaml'), `${allowed}  agents:\n${agents}`)
  const far = await mesh.start('far', { home: homes.far, args: ['--http', '0'] })
  const { code } = await far.api.call('invite.create', { trust: 'mine' })
  const near = await mesh.start('near', { home: homes.near, join: code, args: ['--http', '0'] })
  await Promise.all([untilOnline(far, 1), untilOnline(near, 1)])
  for (const name of AGENTS) await untilAgent(near, `${name}@far`)
  return { far, near }
}

async function placeOf(node: LocalNode, name: Place['name']): Promise<Place> {
  const base = node.info.http ?? ''
  const urlOf = (agent: string): string => `${base}/agents/${agent}${name === 'hop' ? '@far' : ''}`
  const create = async (scopes: readonly ('read' | 'send')[]): Promise<string> =>
    (await node.api.call('token.create', { name: scopes.join('-'), scopes })).token
  const tokens = {
    client: await create(['read', 'send']),
    stranger: await create(['read', 'send']),
    reader: await create(['read']),
    sender: await create(['send']),
    nobody: null,
    impostor: 'a2a_false'
  }
  const place = `${urlOf('acts')}/.well-known/agent-card.json`
  await untilTrue(async () => (await fetch(place)).ok, `the card of acts is at ${node.name}`)
  const card = (await (await fetch(place, { headers: { 'a2a-version': '1.0' } })).json()) as {
    readonly capabilities: Readonly<Record<string, unknown>>
    readonly supportedInterfaces: readonly { readonly protocolBinding: string }[]
  }
  const bindings = card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding)
  return { name, node, base, tokens, capabilities: card.capabilities, bindings, urlOf }
}

/** Is a notification signed by one of the nodes, for this URL and body? */
async function isSigned(
  keys: readonly ReturnType<typeof createRemoteJWKSet>[],
  { headers, url, body }: { headers: Readonly<Record<string, string>>; url: string; body: string }
): Promise<boolean> {
  const token = headers['x-a2a-notification-jwt'] ?? ''
  const hash = createHash('sha256').update(body).digest('hex')
  for (const key of keys) {
    const payload = await jwtVerify(token, key, { audience: url, typ: 'a2a-notification+jwt' }).then(
      (result) => result.payload,
      () => null
    )
    if (payload?.['request_body_sha256'] === hash) return true
  }
  return false
}
