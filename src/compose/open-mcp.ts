import type { Duplex } from 'node:stream'
import { messageOf } from '../kit/errors.js'
import type { ToolChooser } from '../ports/agent-tools.js'
import type { ImportedTools } from '../ports/imported-tools.js'
import type { NodeApi, Principal } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import { toAgentJson } from '../adapters/agents/schemas/agent-json.js'
import { createSchemaCompiler } from '../adapters/agents/schemas/compile-schema.js'
import { HttpError } from '../adapters/http/http-error.js'
import type { HttpRoute } from '../adapters/http/route.js'
import { maxMessageBytes } from '../adapters/mcp/server/message-bytes.js'
import type { KeptSessions } from '../adapters/mcp/http/kept-sessions.js'
import type { McpService, McpServiceDeps } from '../adapters/mcp/server/service.js'
import { readAudit } from '../adapters/storage/audit/audit-read.js'
import type { A2AObservability } from '../node/observe/observability.js'
import type { ToolCalls } from '../node/observe/tool-calls.js'
import type { StartDeps } from './open-home.js'
import { VERSION } from './version.js'

/** Newest lines of the audit log that a client reads. */
const AUDIT_LINES = 200

/** Dependencies of the MCP server on its node. */
export interface McpOpening {
  apiFor(principal: Principal): NodeApi
  readonly observability: A2AObservability
  readonly toolCalls: ToolCalls
  readonly imported: ImportedTools
  readonly chooser: ToolChooser
  /** Keeps HTTP sessions. */
  readonly documents: NodeStore
}

/** Name of the stored document with the HTTP sessions. */
const SESSIONS = 'http-sessions'

/** Endpoints of MCP: streams of the control socket, and HTTP. */
export interface McpPlaces {
  readonly protocol: (stream: Duplex, principal: Principal) => void
  readonly route: HttpRoute
}

/** Opens the MCP server of a node. It is loaded for the first client and closed with the node. */
export function openMcp(deps: StartDeps, opening: McpOpening): McpPlaces {
  const { config } = deps.options
  let service: Promise<McpService> | null = null
  const load = (): Promise<McpService> => (service ??= loadMcp(deps, opening))
  deps.unwind.add('MCP server', async () => await (await service?.catch(() => null))?.close())
  let clients = 0
  return {
    protocol: (stream, principal) => {
      deps.options.onMcpClients?.(++clients)
      stream.once('close', () => deps.options.onMcpClients?.(--clients))
      load()
        .then((loaded) => {
          // A client that left during the load: its end was reported before anybody listened.
          if (stream.readableEnded || stream.destroyed) stream.destroy()
          else loaded.open(stream, principal)
        })
        .catch((error: unknown) => {
          deps.telemetry.log('error', 'an MCP client could not be served', { reason: messageOf(error) })
          stream.destroy()
        })
    },
    route: {
      path: '/mcp',
      methods: ['POST', 'GET', 'DELETE'],
      maxBodyBytes: maxMessageBytes(config.tools.maxPayloadBytes),
      readsLargeBodies: true,
      handle: async (request, response, call) => {
        if (call.principal.kind === 'client')
          throw new HttpError(403, {
            code: 'FORBIDDEN',
            message: 'clients of the OAuth server have the A2A gateway alone'
          })
        await (await load()).handle(request, response, call)
      }
    }
  }
}

async function loadMcp(deps: StartDeps, opening: McpOpening): Promise<McpService> {
  const [{ McpService: Service }, { invocationEvent }, access, sessions] = await Promise.all([
    import('../adapters/mcp/server/service.js'),
    import('../adapters/mcp/server/tool-record.js'),
    guardedAccess(deps, opening),
    keptSessions(deps, opening)
  ])
  const { options, clock, telemetry } = deps
  const { config, home } = options
  const serviceDeps: McpServiceDeps = {
    version: VERSION,
    settings: config,
    clock,
    compileSchema: createSchemaCompiler(),
    toJson: toAgentJson,
    log: (level, message, fields) => telemetry.log(level, message, fields),
    ...access,
    audit: () => newestLines(home.audit),
    imported: opening.imported,
    onCompleted: (record, resultChars) => {
      opening.toolCalls.add(record, resultChars)
      const event = invocationEvent(record)
      if (event !== null) opening.observability.emit(event)
    }
  }
  return new Service(serviceDeps, sessions)
}

/** The HTTP sessions of the last process of the node, where HTTP is served. */
async function keptSessions(
  { options: { config }, clock, telemetry }: StartDeps,
  { documents }: McpOpening
): Promise<KeptSessions | undefined> {
  if (config.http.listen === null) return undefined
  const { KeptSessions: Kept } = await import('../adapters/mcp/http/kept-sessions.js')
  const store = {
    read: () => documents.read(SESSIONS),
    write: async (value: unknown) => await documents.write(SESSIONS, value)
  }
  const note = (reason: unknown): void =>
    telemetry.log('warn', 'MCP sessions over HTTP are not kept', { reason: messageOf(reason) })
  return await Kept.open({ store, clock, note })
}

/** The access of MCP clients. Guardrails apply to clients with a token, as at all other URLs, not to the operator. */
async function guardedAccess(
  { options: { config } }: StartDeps,
  { apiFor, chooser }: McpOpening
): Promise<Pick<McpServiceDeps, 'apiFor' | 'chooserFor'>> {
  // A prompt leads to a call, and costs tokens: it takes the same scope.
  const chooserFor = ({ scopes }: Principal): ToolChooser | null => (scopes.includes('send') ? chooser : null)
  if (config.http.listen === null) return { apiFor, chooserFor }
  const [{ guardedApi, guardedChooser }, { Guardrails }] = await Promise.all([
    import('../adapters/a2a/server/guarded-api.js'),
    import('../adapters/a2a/server/guardrails.js')
  ])
  const rules = new Guardrails(config.a2a.guardrails)
  return {
    apiFor: (principal) => (principal.kind === 'token' ? guardedApi(apiFor(principal), rules) : apiFor(principal)),
    chooserFor: (principal) => {
      const own = chooserFor(principal)
      return own === null || principal.kind !== 'token' ? own : guardedChooser(own, rules)
    }
  }
}

async function newestLines(dir: string): Promise<readonly unknown[]> {
  const lines: unknown[] = []
  for await (const line of readAudit(dir)) {
    lines.push(line)
    if (lines.length > AUDIT_LINES) lines.shift()
  }
  return lines
}
