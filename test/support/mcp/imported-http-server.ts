import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'

/** One request that a server got. */
export interface SeenRequest {
  readonly method: string
  readonly rpc: string
  readonly headers: http.IncomingHttpHeaders
}

/** A small MCP server on loopback (older protocol, with sessions) whose manners a test sets. */
export interface HttpServer {
  readonly url: string
  readonly seen: SeenRequest[]
  tools: readonly object[]
  /** Answers a request of that method instead; true: it did. */
  instead: (rpc: string, message: Readonly<Record<string, unknown>>, response: http.ServerResponse) => boolean
  /** Forgets every session, as a server does that was restarted. */
  forget(): void
  /** Of the method, so far. */
  count(rpc: string): number
  close(): Promise<void>
}

/** Starts it; closed when the test ends. */
export async function httpServer(t: Assert, { tools = [] as readonly object[], port = 0 } = {}): Promise<HttpServer> {
  const sessions = new Set<string>()
  let made = 0
  const server = http.createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    request.on('end', () => handle(request, text, response))
  })
  const state: HttpServer = {
    url: '',
    seen: [],
    tools,
    instead: () => false,
    forget: () => sessions.clear(),
    count: (rpc) => state.seen.filter((one) => one.rpc === rpc).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }

  function handle(request: http.IncomingMessage, text: string, response: http.ServerResponse): void {
    const message = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
    const rpc = typeof message['method'] === 'string' ? message['method'] : (request.method ?? '')
    state.seen.push({ method: request.method ?? '', rpc, headers: request.headers })
    if (state.instead(rpc, message, response)) return
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const answer = (result: object, headers: Record<string, string> = {}): void => {
      response.writeHead(200, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
    }
    if (rpc === 'initialize') {
      const session = `session-${++made}`
      sessions.add(session)
      const { protocolVersion } = message['params'] as { protocolVersion: string }
      return answer(
        { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'http', version: '1.0.0' } },
        { 'mcp-session-id': session }
      )
    }
    const session = request.headers['mcp-session-id']
    if (rpc !== 'server/discover' && !sessions.has(String(session)))
      return void response.writeHead(404).end('no such session')
    if (message['id'] === undefined) return void response.writeHead(202).end()
    if (rpc === 'tools/list') return answer({ tools: state.tools })
    const { name, arguments: input } = (message['params'] ?? {}) as { name?: string; arguments?: { text?: string } }
    if (rpc === 'tools/call') return answer({ content: [{ type: 'text', text: `${name}: ${input?.text ?? ''}` }] })
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id: message['id'], error: { code: -32_601, message: 'Method not found' } })
    )
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => state.close())
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` })
}
