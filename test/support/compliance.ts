import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { type GatewayNode, gatewayNode, type GatewayRequest, request, streamed, type StreamEvent } from './a2a.js'
import { localMesh, untilTrue } from './nodes.js'

/** An agent that only reads: it is answered with a message, without a task. */
const READ = `---
name: read
description: Reads.
a2a:
  capabilities:
    - id: read.it
      description: Reads it
      input: { type: object }
      idempotent: true
      sideEffect: none
      default: true
  runtime: { type: module, path: ./read.mjs }
---
`
const READ_MODULE = "export default { run: async ({ input }) => ({ text: 'read ' + input.text }) }\n"

/** A JSON object. */
export type Json = Record<string, unknown>

/** An answer, with what its binding says of it. */
export interface WireAnswer {
  readonly status: number
  readonly type: string
  readonly headers: Headers
  readonly body: Json
}

/** A real node with agents, to which requests are made as any client would make them. */
export interface Subject {
  readonly node: GatewayNode
  /** The same node with another token. */
  readonly stranger: GatewayNode
  /** A file for which an agent waits; made by {@link go}. */
  gate(): { readonly until: string; go(): Promise<void> }
  rpc(method: string, params?: unknown, more?: AskMore): Promise<WireAnswer>
  rest(method: string, place: string, json?: unknown, more?: AskMore): Promise<WireAnswer>
  /** All events of a stream. */
  events(place: string, init?: GatewayRequest): Promise<StreamEvent[]>
}

/** How a request differs from the usual one. */
export interface AskMore {
  readonly headers?: Record<string, string>
  readonly at?: string
  readonly by?: GatewayNode
}

/** Starts it. */
export async function subject(t: Assert): Promise<Subject> {
  const node = await gatewayNode(await localMesh(t), 'subject')
  const agents = path.join(node.dir, 'agents')
  await fs.writeFile(path.join(agents, 'read.mjs'), READ_MODULE)
  await fs.writeFile(path.join(agents, 'read.md'), READ)
  await untilTrue(
    async () => (await fetch(`${node.url}/agents/read/.well-known/agent-card.json`)).status === 200,
    'read is there'
  )
  const { token } = await node.node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
  let gates = 0
  const ask = async (place: string, init: GatewayRequest, by = node): Promise<WireAnswer> =>
    read(await request(by, place, init))
  return {
    node,
    stranger: { ...node, token },
    gate: () => {
      const until = path.join(node.dir, `gate-${++gates}`)
      return { until, go: () => fs.writeFile(until, '') }
    },
    rpc: (method, params, { headers = {}, at: place = '/agents/talk', by } = {}) =>
      ask(
        place,
        { headers, json: { jsonrpc: '2.0', id: 'r1', method, ...(params === undefined ? {} : { params }) } },
        by
      ),
    rest: (method, below, json, { headers = {}, at: place = '/agents/talk', by } = {}) =>
      ask(place + below, { method, headers, ...(json === undefined ? {} : { body: JSON.stringify(json) }) }, by),
    events: (place, init) => gathered(streamed(node, place, init))
  }
}

/** What a request that was made by hand is answered with. */
export async function read(response: Response): Promise<WireAnswer> {
  const text = await response.text()
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
  // An error of a stream of 0.3 is its only event.
  const json = type === 'text/event-stream' ? text.replace(/^data: /, '') : text
  return { status: response.status, type, headers: response.headers, body: JSON.parse(json) as Json }
}

/** All of a stream. */
export async function gathered<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const event of events) all.push(event)
  return all
}

/** A value deep in JSON, by names. */
export function at(value: unknown, ...names: readonly (string | number)[]): unknown {
  return names.reduce<unknown>(
    (one, name) => (one as Record<string | number, unknown> | null | undefined)?.[name],
    value
  )
}

let said = 0

/** Parameters of a message in 1.0: a text, or data. */
export function says(input: unknown, more: object = {}): { readonly message: Json } {
  return {
    message: {
      messageId: `m-${++said}`,
      role: 'ROLE_USER',
      parts: [typeof input === 'string' ? { text: input } : { data: input }],
      ...more
    }
  }
}

/** The same in the JSON-RPC of 0.3. */
export function says03(input: unknown, more: object = {}): { readonly message: Json } {
  const part = typeof input === 'string' ? { kind: 'text', text: input } : { kind: 'data', data: input }
  return { message: { kind: 'message', messageId: `m-${++said}`, role: 'user', parts: [part], ...more } }
}

const INFO = 'type.googleapis.com/google.rpc.ErrorInfo'

/** An error of JSON-RPC as the protocol has it (A2A 1.0, section 9.5). */
export function isRpcFault(t: Assert, { status, type, body }: WireAnswer, code: number, reason: string): void {
  const { error } = body as { error?: { code: number; message: unknown; data: Json[] } }
  t.alike(
    [status, type, body['jsonrpc'], Object.keys(body).sort()],
    [200, 'application/json', '2.0', ['error', 'id', 'jsonrpc']],
    reason
  )
  t.is(error?.code, code, `${reason} is ${code}`)
  t.ok(typeof error?.message === 'string' && error.message !== '', 'with words')
  const info = error?.data.find((one) => one['@type'] === INFO)
  t.alike([info?.['reason'], info?.['domain']], [reason, 'a2a-protocol.org'])
}

/** The same in 0.3, whose data is one object: the official client in Go reads no other. */
export function isOldRpcFault(t: Assert, answer: WireAnswer, code: number, reason: string): void {
  const { error } = answer.body as { error?: { data?: object } }
  t.ok(error?.data !== undefined && !Array.isArray(error.data), `the data of ${reason} is an object`)
  isRpcFault(t, { ...answer, body: { ...answer.body, error: { ...error, data: [error?.data] } } }, code, reason)
}

/** An error of REST in 1.0 (section 11.6). */
export function isRestFault(
  t: Assert,
  answer: WireAnswer,
  expected: readonly [code: number, status: string, reason: string]
): void {
  const [code, status, reason] = expected
  const { error } = answer.body as { error?: { code: number; status: string; message: unknown; details: Json[] } }
  t.alike([answer.status, answer.type], [code, 'application/json'], reason)
  t.alike([error?.code, error?.status, typeof error?.message], [code, status, 'string'])
  t.ok(error?.details.every((one) => typeof one['@type'] === 'string'))
  const info = error?.details.find((one) => one['@type'] === INFO)
  t.alike([info?.['reason'], info?.['domain']], [reason, 'a2a-protocol.org'])
}
