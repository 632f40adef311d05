import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import type { Assert } from 'brittle'
import { agentDefinition, echo, FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'
import { serveMcpOverHttp } from './mcp-http.js'

/** A node with the agents `text` and `slow` whose MCP is served over HTTP. */
export interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly slow: FakeAgent
  readonly url: URL
  /** `emit(name)`: the token of that caller ends. */
  readonly tokens: EventEmitter
  /** Resolves when so many calls of `slow` are under way. */
  working(count: number): Promise<void>
  /** Sends one request of a caller; `token` says which. */
  send(method: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
}

/** What was answered, whole. */
export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
}

/** The version without a handshake. */
export const MODERN = '2026-07-28'
/** What its requests claim. */
export const CLAIM = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {}
}

/** Serves it until the test ends. `more`: agents beside those two. */
export async function scene(t: Assert, more: readonly FakeAgent[] = []): Promise<Scene> {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'), () => null)
  const owner = await world.owner({ agents: [echo('text'), slow, ...more] })
  const tokens = new EventEmitter()
  const url = await serveMcpOverHttp(t, world, owner, tokens)
  const working = async (count: number): Promise<void> => {
    while (slow.open.length !== count) {
      await new Promise((resolve) => setImmediate(resolve))
      await world.settle()
    }
  }
  return {
    world,
    owner,
    slow,
    url,
    tokens,
    working,
    send: (method, body, headers) => send(url, { method, body, headers: headers ?? {} })
  }
}

async function send(
  url: URL,
  { method, body, headers }: { method: string; body: unknown; headers: Readonly<Record<string, string>> }
): Promise<Answer> {
  const defaults = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const request = http.request(url, { method, headers: { ...defaults, ...headers }, agent: false })
  request.end(
    body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  )
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

/** A request of that version: body and headers. */
export function modern(
  id: number,
  method: string,
  params: Readonly<Record<string, unknown>> = {}
): [unknown, Readonly<Record<string, string>>] {
  const name = params['name'] ?? params['uri']
  const headers = {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {})
  }
  return [{ jsonrpc: '2.0', id, method, params: { ...params, _meta: CLAIM } }, headers]
}

/** The first request of an older client. */
export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
}

/** Shakes hands as an older client; the id of its session. */
export async function session({ send: post }: Scene, bearer = 'one'): Promise<string> {
  const authorization = `Bearer ${bearer}`
  const { status, headers } = await post('POST', INITIALIZE, { authorization })
  if (status !== 200) throw new Error(`initialize: ${status}`)
  const id = String(headers['mcp-session-id'])
  await post('POST', { jsonrpc: '2.0', method: 'notifications/initialized' }, { authorization, 'mcp-session-id': id })
  return id
}
