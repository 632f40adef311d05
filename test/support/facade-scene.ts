import type { IncomingMessage } from 'node:http'
import type { Assert } from 'brittle'
import type { FacadeFault } from '../../src/adapters/a2a/facade/facade-fault.js'
import { type FacadeRequestCall, FacadeRoute } from '../../src/adapters/a2a/facade/facade-route.js'
import { facadeCall } from '../../src/adapters/a2a/server/gateway-target.js'
import { Guardrails } from '../../src/adapters/a2a/server/guardrails.js'
import { limited } from '../../src/adapters/a2a/limits/limited-routes.js'
import { CallLimit, type CallRate } from '../../src/adapters/a2a/limits/rate-limit.js'
import { metricsRoute } from '../../src/adapters/http/metrics-route.js'
import type { HttpRoute, TokenCall } from '../../src/adapters/http/route.js'
import { type GuardrailSettings, GUARDRAILS, RATE_LIMIT } from '../../src/config/guardrails.js'
import { limitRefusal } from '../../src/compose/open-gateway.js'
import { TaskService } from '../../src/node/gateway/task-service.js'
import type { Principal } from '../../src/ports/node-api.js'
import { listening, TOKEN } from '../adapters/http/raw-http.js'
import { realClock } from './agents/real-clock.js'
import { agentDefinition, echo, FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'
import { ManualClock } from './manual-clock.js'

/** What a test may change. */
export interface FacadeSceneOptions {
  readonly guardrails?: Partial<GuardrailSettings>
  readonly rate?: CallRate
  readonly principal?: Partial<Principal>
}

/** An answer of the facade. */
export interface FacadeAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Its JSON; empty for none. */
  readonly body: Record<string, unknown>
}

/** The facade of a node with agents, over a real listener. */
export interface FacadeScene {
  readonly node: FakeNode
  readonly gateway: TaskService
  /** Of runs and limits; the node has the real one. */
  readonly clock: ManualClock
  /** Waits for the test. */
  readonly slow: FakeAgent
  /** What was told to nobody but the log. */
  readonly unexpected: FacadeFault[]
  readonly url: string
  /** Closes the listener, as the node does when it stops. */
  close(): Promise<void>
  /** One request. `json` makes it a POST. */
  ask(path: string, init?: RequestInit & { readonly json?: unknown }): Promise<FacadeAnswer>
}

/** Agents: `echo`, `slow`, `talk` (reports and answers), `fails`, `asks` (a question first). */
export async function facadeScene(
  t: Assert,
  { guardrails = {}, rate = RATE_LIMIT, principal = {} }: FacadeSceneOptions = {}
): Promise<FacadeScene> {
  const slow = new FakeAgent(agentDefinition('slow', { concurrency: 8 }))
  const node = await new World(t).owner({ agents: [slow, echo('echo'), ...speakers()], parts: { clock: realClock } })
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const clock = new ManualClock()
  const unexpected: FacadeFault[] = []
  const by: Principal = {
    kind: 'token',
    name: 'token test',
    id: 'tok_1',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send'],
    ...principal
  }
  const route = new FacadeRoute({
    gateway,
    guardrails: new Guardrails({ ...GUARDRAILS, ...guardrails }),
    clock,
    ids: node.core.deps.ids,
    apiFor: (one) => node.api(one),
    onUnexpected: (fault) => unexpected.push(fault)
  })
  const counting = { limit: new CallLimit(rate, clock), onCall: () => {}, refusal: limitRefusal }
  const places = [
    { path: '/agents' },
    { path: '/v1/agents' },
    { prefix: '/agents/' },
    { prefix: '/v1/agents/' }
  ] as const
  const routes = places.map(
    (place): HttpRoute => ({
      ...place,
      methods: ['GET', 'POST', 'DELETE'],
      handle: limited<IncomingMessage, TokenCall>(async (request, response, call) => {
        const asked = facadeCall(request.method ?? '', call.path)
        if (asked === null) return void response.writeHead(418).end()
        await route.handle({ request, response }, callOf(by, call), asked)
      }, counting)
    })
  )
  const { port, listener } = await listening(t, [...routes, metricsRoute({ apiFor: () => node.api(by) })])
  const url = `http://127.0.0.1:${port}`
  return {
    node,
    gateway,
    clock,
    slow,
    unexpected,
    url,
    close: () => listener.close(),
    ask: (path, init) => askAt(url + path, init)
  }
}

/** A call as it came, of somebody else. */
function callOf(principal: Principal, call: TokenCall): FacadeRequestCall {
  const { query, signal } = call
  return { principal, query, signal, readBody: () => call.readBody(), isStopping: () => call.isStopping() }
}

function speakers(): FakeAgent[] {
  const talk = new FakeAgent(agentDefinition('talk'), (_task, run) => {
    for (const report of ['one ', 'two ', { step: 2 }]) run.progress(report)
    run.progress({ a2a: { artifact: { artifactId: 'result', parts: [{ text: 'three' }] }, append: true } })
    return { ok: true, result: { text: 'one two three' } }
  })
  const fails = new FakeAgent(agentDefinition('fails'), () => ({
    ok: false,
    code: 'TASK_FAILED',
    message: 'the secret reason'
  }))
  const asks = new FakeAgent(agentDefinition('asks'), ({ input }, run) => {
    const { text } = input as { text: string }
    if (text === 'begin') run.progress('thinking')
    return {
      ok: true,
      result: text === 'begin' ? { a2a: { state: 'input-required', message: 'Which one?' } } : `took ${text}`
    }
  })
  return [talk, fails, asks]
}

async function askAt(
  url: string,
  { json, headers, ...rest }: RequestInit & { readonly json?: unknown } = {}
): Promise<FacadeAnswer> {
  const response = await fetch(url, {
    ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }),
    ...rest,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      connection: 'close',
      ...(headers as Record<string, string>)
    }
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {}
  }
}

/** The events of a stream: their names and data. */
export function eventsOf(
  text: string
): { readonly event: string; readonly id: number; readonly data: Record<string, unknown> }[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const [, event = '', id = '', data = ''] = /^event: (\w+)\nid: (\d+)\ndata: (.*)$/.exec(block) ?? []
      return { event, id: Number(id), data: JSON.parse(data) as Record<string, unknown> }
    })
}
