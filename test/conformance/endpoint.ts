import { randomBytes } from 'node:crypto'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import type { HttpRoute } from '../../src/adapters/http/route.js'
import { startHttpListener } from '../../src/adapters/http/listener.js'
import { HttpConnection } from '../../src/adapters/mcp/http/http-connection.js'
import { McpHttp } from '../../src/adapters/mcp/http/http-route.js'
import { ParamHeaders } from '../../src/adapters/mcp/http/param-headers.js'
import { RequestStates } from '../../src/adapters/mcp/http/request-states.js'
import { ResourceManager } from '../../src/adapters/mcp/resources/resource-limits.js'
import { maxMessageBytes } from '../../src/adapters/mcp/server/message-bytes.js'
import { refuseOversized } from '../../src/adapters/mcp/server/oversized-call.js'
import { startProcessMeter } from '../../src/adapters/mcp/server/process-meter.js'
import { uuidRunIds } from '../../src/adapters/mcp/server/run-ids.js'
import { serveMcp } from '../../src/adapters/mcp/server/serve.js'
import { ToolCatalog } from '../../src/adapters/mcp/server/tool-catalog.js'
import type { Principal } from '../../src/ports/node-api.js'
import { systemClock } from '../../src/adapters/system/system-clock.js'
import { conformanceFixtures } from './fixtures.js'

/** An endpoint that serves the fixtures. */
export interface ConformanceEndpoint {
  readonly url: URL
  close(): Promise<void>
}

/** The caller of every request. */
const CALLER: Principal = {
  kind: 'token',
  name: 'conformance',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send', 'admin']
}
const MAX_PAYLOAD_BYTES = 1_048_576
/** Deadlines of answered calls do not keep the process alive. */
const clock = systemClock()

/**
 * Serves the fixtures by the MCP runtime of a node, without a node: its HTTP listener with the checks of Host and
 * Origin. Without a token, since the official runner has none to send.
 */
export async function serveConformance(): Promise<ConformanceEndpoint> {
  const meter = startProcessMeter(clock)
  const http = fixtureHttp(
    new ResourceManager({ maxConcurrentExecutions: 10, maxPayloadBytes: MAX_PAYLOAD_BYTES }, meter)
  )
  const listener = await startHttpListener({ host: '127.0.0.1', port: 0, hosts: [], origins: [] })
  listener.open({
    routes: [routeOf(http)],
    admit: () => null,
    onRefusal: () => {},
    onFault: (error) => console.error(error)
  })
  return {
    url: new URL('/mcp', listener.url),
    close: async () => {
      await http.close()
      await listener.close()
      meter.close()
    }
  }
}

function fixtureHttp(limits: ResourceManager): McpHttp {
  const { tools, resources, prompts } = conformanceFixtures(createSchemaCompiler())
  const catalog = new ToolCatalog([tools])
  const ids = uuidRunIds()
  const common = { clock, ids, log: () => {}, limits, tools: catalog, isRemote: true }
  const states = new RequestStates({ key: randomBytes(32), clock, caller: 'conformance' })
  return new McpHttp({
    clock,
    newId: () => ids.connectionCorrelationId(),
    connect: () => {
      const connection = new HttpConnection(new ParamHeaders(catalog))
      serveMcp(connection, {
        schemas: 'whole',
        ...common,
        name: 'fixtures',
        version: '1.0.0',
        states,
        resources,
        prompts,
        defaultTimeoutMs: 30_000,
        maxPayloadBytes: MAX_PAYLOAD_BYTES,
        eras: 'both'
      })
      return connection
    },
    refuseOversized: (tool) => refuseOversized(common, tool, maxMessageBytes(MAX_PAYLOAD_BYTES))
  })
}

function routeOf(http: McpHttp): HttpRoute {
  return {
    path: '/mcp',
    methods: ['POST', 'GET', 'DELETE'],
    isPublic: true,
    handle: (request, response, call) =>
      http.handle(request, response, {
        principal: CALLER,
        onAbort: (run) => call.onAbort(run),
        onTokenEnd: () => () => {},
        readBody: () => call.readBody(),
        skipBody: (limits) => call.skipBody(limits)
      })
  }
}
