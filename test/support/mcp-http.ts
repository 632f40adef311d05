import http from 'node:http'
import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import { skippedBody } from '../../src/adapters/http/skipped-body.js'
import { McpService, type McpServiceDeps } from '../../src/adapters/mcp/server/service.js'
import type { Unsubscribe } from '../../src/kit/events.js'
import type { Principal } from '../../src/ports/node-api.js'
import type { FakeNode, World } from './fake-node.js'

/** Settings of its MCP server, as shipped. */
export const MCP_SETTINGS = {
  mcp: {
    eras: 'both',
    expose: 'auto',
    schemas: 'fitted',
    maxListedTools: 30,
    maxListedTokens: 6000,
    maxResultTokens: { default: 10_000 },
    favorites: []
  },
  tools: {
    defaultTimeoutMs: 30_000,
    maxPayloadBytes: 1_048_576,
    maxStateBytes: 262_144,
    adminRegistrationEnabled: false,
    adminPolicy: 'deny_all'
  },
  resources: { maxConcurrentExecutions: 10 },
  security: { dynamicRegistrationEnabled: false }
} as const

/** The MCP server of a node of a world, as that of a running node is put together. */
export function mcpServiceOf(
  world: World,
  node: FakeNode,
  given: Partial<Pick<McpServiceDeps, 'onCompleted' | 'settings'>> = {}
): McpService {
  return new McpService({
    version: '0.0.0',
    settings: MCP_SETTINGS,
    clock: world.clock,
    compileSchema: createSchemaCompiler(),
    toJson: (value) => value,
    log: () => {},
    apiFor: (principal) => node.api(principal),
    audit: () => Promise.resolve([]),
    imported: { list: () => [], named: () => null },
    chooserFor: () => null,
    onCompleted: () => {},
    ...given
  })
}

/**
 * Serves the MCP of a node of a world over HTTP until the test ends; the bearer of a request is the name of its caller,
 * with `#` and the id of its token if it has one; the token ends when `tokens` says so.
 */
export async function serveMcpOverHttp(
  t: Assert,
  world: World,
  node: FakeNode,
  tokens = new EventEmitter()
): Promise<URL> {
  const service = mcpServiceOf(world, node)
  const server = http.createServer((request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const bearer = (request.headers.authorization ?? 'Bearer one').replace('Bearer ', '')
    const [name = '', id] = bearer.split('#')
    const principal: Principal = {
      kind: 'token',
      name,
      ...(id === undefined ? {} : { id }),
      tier: 0,
      sandboxId: null,
      scopes: ['read', 'send', 'admin']
    }
    const readBody = async (): Promise<Buffer> => Buffer.concat((await request.toArray()) as Buffer[])
    const onTokenEnd = (run: () => void): Unsubscribe => {
      tokens.once(bearer, run)
      return () => void tokens.off(bearer, run)
    }
    void service.handle(request, response, {
      principal,
      onAbort: (run) => gone.signal.addEventListener('abort', run),
      onTokenEnd,
      readBody,
      skipBody: (limits) => skippedBody(request, limits)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    await service.close()
    server.closeAllConnections()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
}
