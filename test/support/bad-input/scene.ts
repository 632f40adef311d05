import type { Assert } from 'brittle'
import { guardedGateway, Guardrails } from '../../../src/adapters/a2a/server/guardrails.js'
import { CallLimit } from '../../../src/adapters/a2a/limits/rate-limit.js'
import { createWebhooks } from '../../../src/adapters/a2a/push/webhook-sender.js'
import { startHttpListener, type HttpLimits } from '../../../src/adapters/http/listener.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { GUARDRAILS, RATE_LIMIT } from '../../../src/config/guardrails.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import { type GatewayDeps, openGateway } from '../../../src/compose/open-gateway.js'
import type { Gateway } from '../../../src/ports/gateway.js'
import type { NodeApi, Principal } from '../../../src/ports/node-api.js'
import type { Webhooks } from '../../../src/ports/webhooks.js'
import { RawConnection } from '../../adapters/http/raw-http.js'
import { realClock } from '../agents/real-clock.js'
import { agentDefinition, capability, echo, FakeAgent, type FakeRun } from '../fake-agents.js'
import { type FakeNode, World } from '../fake-node.js'
import { ManualClock } from '../manual-clock.js'
import { NOBODY_GONE } from '../push-scene.js'
import type { BadRequest, HttpWire } from './wires.js'
import { saying, told } from './wires.js'

/** What alice says and nobody else may read. */
export const SECRET = 'the secret of alice'
/** What an agent called `strict` requires its clients to speak. */
export const REQUIRED = 'https://example.com/ext/required/v1'

const TOKENS = { alice: `a2a_${'a'.repeat(43)}`, bob: `a2a_${'b'.repeat(43)}` } as const

/** An answer of the node. */
export interface BadAnswer {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** A node with agents behind the routes and the listener that a real one has, and two tokens. */
export interface BadScene {
  readonly node: FakeNode
  readonly talk: FakeAgent
  /** Of streams. */
  readonly clock: ManualClock
  /** How many streams are held open inside of the node. */
  following(): number
  /** One request; nothing that an answer may not have is in it. */
  ask(request: BadRequest): Promise<BadAnswer>
  /** The same as bytes on a connection of its own, without what the request leaves out. */
  open(request: BadRequest, announced?: number): RawConnection
  /** Does the node still do what it is asked for on a wire? */
  isServing(wire: HttpWire): Promise<boolean>
}

/** Sets the scene. Agents: `talk` (does what it is told) and `strict`. */
export async function badScene(t: Assert, limits: Partial<HttpLimits> = {}): Promise<BadScene> {
  const talk = talker()
  const node = await new World(t).owner({ agents: [talk, echo('strict')], parts: { clock: realClock } })
  const gateway = new TaskService(node.core, { push: { webhooks: guardedWebhooks(node), owners: NOBODY_GONE } })
  await gateway.start()
  t.teardown(() => gateway.stop())
  const clock = new ManualClock()
  const counted = counting(gateway)
  const listener = await startHttpListener({
    ...{ host: '127.0.0.1', port: 0, hosts: [], origins: [] },
    limits: { drainMs: 10_000, drainBytes: 2 ** 25, unreadMs: 600_000, unreadBytes: 2 ** 31, ...limits }
  })
  t.teardown(() => listener.close())
  const faults: unknown[] = []
  listener.open({
    routes: routesOf(node, { gateway: counted.gateway, clock }),
    admit: (token) => {
      const name = (['alice', 'bob'] as const).find((one) => TOKENS[one] === token)
      return name === undefined ? null : { principal: principalOf(name), onEnd: () => () => {} }
    },
    onRefusal: () => {},
    onFault: (error) => faults.push(error)
  })
  const ask = async (request: BadRequest): Promise<BadAnswer> => {
    const answer = await fetched(listener.url, request)
    if (faults.length > 0) throw new Error(`a handler threw ${String(faults[0])}`)
    const leak = leakIn(answer.text, request.by ?? 'alice')
    if (leak !== null) throw new Error(`${leak}: ${answer.text.slice(0, 500)}`)
    return answer
  }
  return {
    node,
    talk,
    clock,
    following: counted.following,
    ask,
    open: (request, announced) => opened(t, listener.url, { request, announced }),
    isServing: async (wire) => told(wire, await ask(saying(wire, 'good'))) === 'done'
  }
}

/** Does what the text says; without words for it, it answers. */
export function talker(): FakeAgent {
  const definition = agentDefinition('talk', {
    concurrency: 64,
    capabilities: [capability('talk.say', { default: true, idempotent: false })]
  })
  return new FakeAgent(definition, ({ input }, { progress }) => {
    const { text } = input as { readonly text?: unknown }
    if (text === 'wait') return null
    if (text === 'flood') flood({ progress }, 480)
    if (text === 'flood') return null
    if (typeof text === 'string' && text.startsWith('ask'))
      return { ok: true, result: { a2a: { state: 'input-required', message: text } } }
    return { ok: true, result: { text: `you said ${String(text)}` } }
  })
}

/** Reports more than a client that does not read has room for: 50 kB each time. */
export function flood({ progress }: Pick<FakeRun['run'], 'progress'>, times: number): void {
  for (let at = 0; at < times; at++)
    progress({ a2a: { artifact: { artifactId: `out${at}`, parts: [{ text: 'x'.repeat(50_000) }] }, append: false } })
}

/** As a real node sends them, with its guard: nothing private is allowed. */
export function guardedWebhooks({ core, id }: FakeNode): Webhooks {
  const { sign, ids } = core.deps
  return createWebhooks({
    clock: core.deps.clock,
    policy: { allowed: [] },
    signer: { sign, ids, nodeId: id, issuer: 'http://127.0.0.1' }
  })
}

function counting(gateway: Gateway): { readonly gateway: Gateway; following(): number } {
  let following = 0
  const follow: Gateway['follow'] = async function* (...args) {
    following++
    try {
      yield* gateway.follow(...args)
    } finally {
      following--
    }
  }
  const counted: Gateway = {
    push: gateway.push,
    send: (...args) => gateway.send(...args),
    get: (...args) => gateway.get(...args),
    isOf: (...args) => gateway.isOf(...args),
    list: (...args) => gateway.list(...args),
    cancel: (...args) => gateway.cancel(...args),
    follow
  }
  return { gateway: counted, following: () => following }
}

function principalOf(name: 'alice' | 'bob'): Principal {
  return { kind: 'token', name: `token ${name}`, id: `tok_${name}`, tier: 0, sandboxId: null, scopes: ['read', 'send'] }
}

function routesOf(node: FakeNode, { gateway, clock }: { readonly gateway: Gateway; readonly clock: ManualClock }) {
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  // What an agent may say is not in question here: streams are to be long.
  const guardrails = new Guardrails({ ...GUARDRAILS, output: { maxLength: 2 ** 31, deny: [] } })
  const parts = {
    cards: {
      routes: [],
      extended: () => Promise.resolve({} as never),
      extensions: (agent: string | null) => (agent === 'strict' ? [{ uri: REQUIRED, required: true }] : [])
    },
    tasks: { gateway, guardrails, guarded: guardedGateway(gateway, guardrails), push: null },
    mcp: { path: '/mcp', methods: [], handle: () => {} },
    onUse: () => {}
  }
  const apiFor = (principal: Principal): NodeApi => node.api(principal)
  const shared = { clock, telemetry, own: node.core.deps, limit: new CallLimit(RATE_LIMIT, clock), apiFor }
  // Opening routes takes no more than these of what a whole node is started with.
  return openGateway(shared as unknown as GatewayDeps, parts)
}

async function fetched(url: string, { place, method, headers, body, by = 'alice' }: BadRequest): Promise<BadAnswer> {
  const response = await fetch(url + place, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${TOKENS[by]}`,
      'content-type': 'application/json',
      connection: 'close',
      ...headers
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body) })
  })
  const text = await response.text()
  return { status: response.status, type: response.headers.get('content-type') ?? '', text }
}

/** What of the node or of another caller is in an answer; null: nothing. */
export function leakIn(text: string, by: 'alice' | 'bob'): string | null {
  if (/<!doctype|<html|<body/i.test(text)) return 'HTML'
  if (/\n\s+at |node:internal|node_modules|\.[cm]?[jt]s:\d+/.test(text) || text.includes(process.cwd()))
    return 'a stack or a path'
  return by === 'bob' && text.includes(SECRET) ? 'what another caller said' : null
}

function opened(
  t: Assert,
  url: string,
  {
    request: { place, body = '', by = 'alice', headers = {} },
    announced
  }: { readonly request: BadRequest; readonly announced: number | undefined }
): RawConnection {
  const { port } = new URL(url)
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? String(body) : JSON.stringify(body)
  const lines = [
    `POST ${place} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${TOKENS[by]}`,
    'Content-Type: application/json',
    `Content-Length: ${announced ?? Buffer.byteLength(text)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  ]
  return new RawConnection(t, Number(port)).write(`${lines.join('\r\n')}\r\n\r\n${text}`)
}
