import fs from 'node:fs/promises'
import path from 'node:path'
import type { LocalNode, TestMesh } from './nodes.js'

/** An agent that asks back, counts in chunks, and waits, as its input says. */
const TALK = `---
name: talk
description: Talks.
a2a:
  version: 1.2.3
  capabilities:
    - id: talk.say
      name: Say
      description: Says it
      input: { type: object }
      idempotent: true
      default: true
    - id: talk.once
      description: Says it once
      input: { type: object }
  runtime: { type: module, path: ./talk.mjs }
  limits: { concurrency: 8 }
---
`

const MODULE = `import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
export default {
  async run({ input }, { progress, signal }) {
    if (input.ask) return { a2a: { state: 'input-required', message: input.ask, ...(input.schema ? { schema: input.schema } : {}) } }
    if (input.state) return { a2a: { state: input.state, message: input.why } }
    if (input.message) return { a2a: { message: input.message } }
    if (input.fail) throw new Error(input.fail)
    for (const [at, chunk] of (input.chunks ?? []).entries()) {
      while (at > 0 && input.gate && !existsSync(input.gate + at)) await wait(20, undefined, { signal })
      progress({ a2a: { artifact: { artifactId: 'out', parts: [{ text: chunk }] }, append: at > 0, lastChunk: at === input.chunks.length - 1 } })
    }
    while (input.until && !existsSync(input.until)) await wait(20, undefined, { signal })
    return input.chunks ? null : { text: 'you said ' + input.text }
  }
}
`

/** A node with the agent `talk` that serves HTTP, and a token of its. */
export interface GatewayNode<N extends LocalNode = LocalNode> {
  readonly node: N
  readonly url: string
  readonly token: string
  /** A directory of the test, for files that the agent waits for. */
  readonly dir: string
}

/** Starts it. `home`: that of one that ran before, with its token. `http`: its port. `env`: settings of its own. */
export async function gatewayNode<N extends LocalNode>(
  mesh: TestMesh<N>,
  name: string,
  again?: {
    readonly home?: string
    readonly dir?: string
    readonly token?: string
    readonly http?: string
    readonly env?: NodeJS.ProcessEnv
  }
): Promise<GatewayNode<N>> {
  const dir = again?.dir ?? path.join(await mesh.dir(), name)
  const agents = path.join(dir, 'agents')
  await fs.mkdir(agents, { recursive: true })
  await fs.writeFile(path.join(agents, 'talk.md'), TALK)
  await fs.writeFile(path.join(agents, 'talk.mjs'), MODULE)
  const node = await mesh.start(name, {
    args: ['--http', again?.http ?? '0', '--agents', agents],
    ...(again?.home === undefined ? {} : { home: again.home }),
    ...(again?.env === undefined ? {} : { env: again.env })
  })
  const token = again?.token ?? (await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])).token
  return { node, url: node.info.http ?? '', token, dir }
}

/** An answer over HTTP. */
export interface HttpAnswer {
  readonly status: number
  readonly type: string
  readonly body: Record<string, unknown>
}

/** How a request is made; `json`: it is a POST of that. */
export type GatewayRequest = RequestInit & { readonly json?: unknown }

/** One request with the token, to a path of the node. */
export function request(
  { url, token }: GatewayNode,
  place: string,
  { json, headers, ...rest }: GatewayRequest = {}
): Promise<Response> {
  return fetch(url + place, {
    ...rest,
    ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }),
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(headers as Record<string, string>)
    }
  })
}

/** The same with its answer read. */
export async function ask(node: GatewayNode, place: string, init: GatewayRequest = {}): Promise<HttpAnswer> {
  const response = await request(node, place, init)
  const text = await response.text()
  return {
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    body: JSON.parse(text) as Record<string, unknown>
  }
}

/** An event of a stream. */
export interface StreamEvent {
  readonly id: number
  readonly data: Record<string, unknown>
}

/** Reads a stream of server-sent events to its end, or until enough of it is there. */
export async function* streamed(
  node: GatewayNode,
  place: string,
  init: GatewayRequest = {}
): AsyncGenerator<StreamEvent> {
  const response = await request(node, place, init)
  if (response.headers.get('content-type') !== 'text/event-stream')
    throw new Error(`no stream: ${response.status} ${await response.text()}`)
  let text = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString('utf8')
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
      )
      if (fields['data'] !== undefined)
        yield { id: Number(fields['id']), data: JSON.parse(fields['data']) as Record<string, unknown> }
    }
  }
}
