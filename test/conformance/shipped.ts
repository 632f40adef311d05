import fs from 'node:fs'
import http from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { Transform } from 'node:stream'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { localMesh, type LocalNode, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'
import { type ConformanceEndpoint, serveConformance } from './endpoint.js'

type Teardown = Parameters<typeof localMesh>[0]

/** Endpoints of one server: the server itself, and nodes that offer its tools. */
export interface ShippedPath {
  /** The server of the fixtures. */
  readonly direct: URL
  /** Of the node that imports it, and of one beyond a link. */
  readonly here: URL
  readonly hop: URL
}

/**
 * Imports the server of the fixtures into a real node with HTTP, and links another one to it. The endpoints of the two
 * add a token, which the official runner cannot send, and give each tool the name that the server gave it.
 */
export async function serveShipped(t: Teardown): Promise<ShippedPath> {
  const server = await serveConformance()
  const mesh = await localMesh(t)
  t.teardown(() => server.close())
  const home = await mesh.dir()
  fs.writeFileSync(path.join(home, 'config.yaml'), `mcp:\n  servers:\n    demo:\n      url: ${server.url.href}\n`)
  // The runner asks for tools by their names, not for a task in words, and for whole schemas.
  const env = { A2A_NODE_MCP_EXPOSE: 'all', A2A_NODE_MCP_SCHEMAS: 'whole' }
  const a = await mesh.start('a', { home, env, args: ['--http', '0'] })
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code, env, args: ['--http', '0'] })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1), untilAgent(a, 'demo@a'), untilAgent(b, 'demo@a')])
  const [here, hop] = [await frontOf(a), await frontOf(b)]
  for (const front of [here, hop]) t.teardown(() => front.close(), { order: -1 })
  return { direct: server.url, here: here.url, hop: hop.url }
}

/** The endpoint of a node for a client without a token. */
async function frontOf(node: LocalNode): Promise<ConformanceEndpoint> {
  const { token } = await node.api.call('token.create', { name: 'conformance', scopes: ['read', 'send'] })
  const { http: base } = await node.api.call('node.info', {})
  const target = new URL('/mcp', base ?? '')
  const authorization = `Bearer ${token}`
  const names = await namesAt(target, authorization)
  const front = http.createServer(
    (request, response) => void forward({ request, response, target, authorization, names })
  )
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  const { port } = front.address() as AddressInfo
  return {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    close: async () => {
      front.closeAllConnections()
      await new Promise<void>((resolve) => front.close(() => resolve()))
    }
  }
}

/** The node's names of the server's tools, by the server's own names. */
async function namesAt(url: URL, authorization: string): Promise<ReadonlyMap<string, string>> {
  const client = new Client({ name: 'names', version: '1' })
  const found = new Map<string, string>()
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization } } }))
  await untilTrue(async () => {
    for (const { name } of (await client.listTools()).tools) {
      const own = /^demo(?:_at_a)?__(\w+)$/.exec(name)?.[1]
      if (own !== undefined) found.set(own, name)
    }
    return found.size > 0
  }, 'the tools of the server are listed')
  await client.close()
  return found
}

interface Forwarding {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  readonly target: URL
  readonly authorization: string
  readonly names: ReadonlyMap<string, string>
}

async function forward({ request, response, target, authorization, names }: Forwarding): Promise<void> {
  const body = Buffer.concat((await request.toArray()) as Buffer[]).toString('utf8')
  const { host = '', 'content-length': _length, ...headers } = request.headers
  // A foreign host is passed on: the node must refuse it.
  const isOwn = /^(127\.0\.0\.1|localhost):/.test(host)
  const isOwnPage = headers.origin === `http://${host}`
  const called = headers['mcp-name']
  const named = typeof called === 'string' ? { 'mcp-name': names.get(called) ?? called } : {}
  const onward = http.request(target, {
    method: request.method ?? 'POST',
    headers: {
      ...headers,
      ...named,
      ...(isOwnPage ? { origin: target.origin } : {}),
      host: isOwn ? target.host : host,
      authorization
    }
  })
  response.once('close', () => onward.destroy())
  onward.on('error', () => response.destroy())
  onward.on('response', (answer) => {
    const { 'content-length': _size, ...given } = answer.headers
    response.writeHead(answer.statusCode ?? 502, given)
    response.flushHeaders()
    answer.pipe(renamed(names)).pipe(response)
  })
  onward.end(body === '' ? undefined : withName(body, names))
}

function withName(body: string, names: ReadonlyMap<string, string>): string {
  try {
    const message = JSON.parse(body) as { method?: unknown; params?: { name?: unknown } }
    const name = message.method === 'tools/call' ? message.params?.name : undefined
    if (message.params === undefined || typeof name !== 'string') return body
    return JSON.stringify({ ...message, params: { ...message.params, name: names.get(name) ?? name } })
  } catch {
    return body
  }
}

/** Gives the tools their own names in what a node answers: each event is written at once. */
function renamed(names: ReadonlyMap<string, string>): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let text = chunk.toString('latin1')
      for (const [own, name] of names) text = text.replaceAll(`"name":"${name}"`, `"name":"${own}"`)
      done(null, Buffer.from(text, 'latin1'))
    }
  })
}
