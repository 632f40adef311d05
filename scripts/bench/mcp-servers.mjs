// MCP servers with one tool that does nothing: ours and the SDK's own, over any transport of the SDK or stdio, and over
// HTTP.
// Run as a program: `mcp-servers.mjs stdio` serves the SDK's over standard input and output;
// `mcp-servers.mjs http ours|sdk` serves one over HTTP, tells its port to the parent, and answers each message of the
// parent with the processor time it has used.
import http from 'node:http'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const compiled = (file) => new URL(`../../build/src/adapters/${file}`, import.meta.url).href
export const SERVERS = fileURLToPath(import.meta.url)
export const NOOP = {
  name: 'noop',
  description: 'Does nothing.',
  inputSchema: { type: 'object', properties: { n: { type: 'integer' } } }
}
const VERSION = createRequire(import.meta.url)('../../package.json').version

/** The SDK's low-level server with the tool. */
export function sdkServer() {
  const server = new Server({ name: 'sdk', version: VERSION }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({ tools: [NOOP] }))
  server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'null' }] }))
  return server
}

/** What our runtime is made of for these tools, each `[definition, handler]`. */
export async function ourParts(tools = [[NOOP, () => Promise.resolve(null)]]) {
  const [
    { createSchemaCompiler },
    { ToolRegistry },
    { ToolCatalog },
    { ResourceManager },
    { uuidRunIds },
    { systemClock }
  ] = await Promise.all([
    import(compiled('agents/schemas/compile-schema.js')),
    import(compiled('mcp/server/tool-registry.js')),
    import(compiled('mcp/server/tool-catalog.js')),
    import(compiled('mcp/resources/resource-limits.js')),
    import(compiled('mcp/server/run-ids.js')),
    import(compiled('system/system-clock.js'))
  ])
  const registry = new ToolRegistry(createSchemaCompiler())
  for (const [definition, handler] of tools) registry.register(definition, handler)
  const meter = { memoryBytes: () => 0, loopDelayMs: () => 0 }
  return {
    name: 'ours',
    version: VERSION,
    clock: systemClock(),
    ids: uuidRunIds(),
    log: () => {},
    tools: new ToolCatalog([registry]),
    limits: new ResourceManager({ maxConcurrentExecutions: 10, maxPayloadBytes: 1_048_576 }, meter),
    defaultTimeoutMs: 30_000,
    maxPayloadBytes: 1_048_576,
    eras: 'both'
  }
}

async function ourHandler() {
  const [{ serveMcp }, { McpHttp }, { HttpConnection }, { readBody: readRequest }] = await Promise.all([
    import(compiled('mcp/server/serve.js')),
    import(compiled('mcp/http/http-route.js')),
    import(compiled('mcp/http/http-connection.js')),
    import(compiled('http/body.js'))
  ])
  const parts = await ourParts()
  const route = new McpHttp({
    clock: parts.clock,
    newId: () => parts.ids.correlationId(),
    connect: () => {
      const connection = new HttpConnection()
      serveMcp(connection, parts)
      return connection
    }
  })
  const principal = { kind: 'token', name: 'bench', tier: 0, sandboxId: null, scopes: [] }
  return async (request, response) => {
    const gone = []
    response.once('close', () => response.writableFinished || gone.forEach((run) => run()))
    const readBody = () => readRequest(request, 1_114_112)
    await route.handle(request, response, {
      principal,
      onAbort: (run) => gone.push(run),
      onTokenEnd: () => () => {},
      readBody
    })
  }
}

/** The SDK's handler takes and gives what fetch does. */
function sdkHandler() {
  const handler = createMcpHandler(sdkServer)
  return async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    const asked = new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method,
      headers: request.headers,
      body
    })
    const answer = await handler.fetch(asked)
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(Buffer.from(await answer.arrayBuffer()))
  }
}

async function serveHttp(kind) {
  const handle = kind === 'ours' ? await ourHandler() : sdkHandler()
  const server = http.createServer((request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send({ cpuUs: user + system })
  })
  process.on('disconnect', () => process.exit(0))
}

if (process.argv[1] === SERVERS) {
  if (process.argv[2] === 'stdio') serveStdio(sdkServer)
  else await serveHttp(process.argv[3])
}
