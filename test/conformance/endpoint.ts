import type { HttpRoute } from '../../src/adapters/http/route.js'
import { type HttpListener, startHttpListener } from '../../src/adapters/http/listener.js'
import type { McpService } from '../../src/adapters/mcp/server/service.js'
import type { Principal } from '../../src/ports/node-api.js'
import { World } from '../support/fake-node.js'
import { echo } from '../support/fake-agents.js'
import { mcpServiceOf } from '../support/mcp-http.js'
import { conformanceFixtures } from './fixtures.js'

/** An endpoint that serves the fixtures. */
export interface ConformanceEndpoint {
  readonly url: URL
  close(): Promise<void>
}

/** Whom the endpoint takes every caller for. */
const CALLER: Principal = {
  kind: 'token',
  name: 'conformance',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send', 'admin']
}

/**
 * Serves the fixtures beside the tools of a node of a world: the node's own HTTP listener with its checks of Host and
 * Origin, its MCP service behind it. Without a token, since the official runner has none to send.
 */
export async function serveConformance(): Promise<ConformanceEndpoint> {
  const ends: (() => unknown)[] = []
  const world = new World({ teardown: (end) => void ends.unshift(end) })
  const node = await world.owner({ agents: [echo('text')] })
  const service = mcpServiceOf(world, node, { more: conformanceFixtures() })
  const listener = await startHttpListener({ host: '127.0.0.1', port: 0, hosts: [], origins: [] })
  listener.open({
    routes: [routeOf(service)],
    admit: () => null,
    onRefusal: () => {},
    onFault: (error) => console.error(error)
  })
  return { url: new URL('/mcp', listener.url), close: () => close(listener, service, ends) }
}

function routeOf(service: McpService): HttpRoute {
  return {
    path: '/mcp',
    methods: ['POST', 'GET', 'DELETE'],
    isPublic: true,
    handle: (request, response, call) =>
      service.handle(request, response, {
        principal: CALLER,
        onAbort: (run) => call.onAbort(run),
        onTokenEnd: () => () => {},
        readBody: () => call.readBody()
      })
  }
}

async function close(listener: HttpListener, service: McpService, ends: readonly (() => unknown)[]): Promise<void> {
  await service.close()
  await listener.close()
  for (const end of ends) await end()
}
