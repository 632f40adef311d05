import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { BoundedMap } from '../../../kit/bounded.js'
import type { Clock } from '../../../kit/clock.js'
import { asNodeError, type ErrorBody } from '../../../kit/errors.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { ToolChooser } from '../../../ports/agent-tools.js'
import type { ImportedTools } from '../../../ports/imported-tools.js'
import type { NodeApi, Principal } from '../../../ports/node-api.js'
import { A2A_TOOLS, a2aTools } from '../tools/a2a-tools.js'
import { type AdminCaller, type AdminPolicy, adminTools } from '../tools/admin-tools.js'
import { AskingCalls, type RunAsking } from '../tools/asking-calls.js'
import { AgentPrompts } from '../resources/agent-prompts.js'
import { mcpClientTool } from '../tools/client-tool.js'
import { type Expose, ExposedTools, type ListLimits, type ListMode } from '../tools/exposed-tools.js'
import type { Eras } from './gated-transport.js'
import { meshInstructions } from '../tools/instructions.js'
import { HEALTH_OPTIONS, healthTool } from '../tools/health-tool.js'
import { HttpConnection } from '../http/http-connection.js'
import { maxMessageBytes } from './message-bytes.js'
import { refuseOversized } from './oversized-call.js'
import { McpHttp, type McpHttpCall } from '../http/http-route.js'
import type { KeptSessions } from '../http/kept-sessions.js'
import type { LineStreams } from './line-transport.js'
import { callAgent, sendToAgent } from '../tools/mesh-call.js'
import { MeshContext } from '../resources/mesh-context.js'
import { MeshResources } from '../resources/mesh-resources.js'
import { MeshTools } from '../tools/mesh-tools.js'
import type { SchemaForm } from '../tools/published-tools.js'
import { knownDefinitions } from '../tools/whole-definitions.js'
import { ParamHeaders } from '../http/param-headers.js'
import { startProcessMeter } from './process-meter.js'
import { LargeResults, type ResultTokens } from '../resources/large-results.js'
import { ResourceManager } from '../resources/resource-limits.js'
import { joinResources, ResourceRegistry } from '../resources/resource-registry.js'
import { joinPrompts, ServerPrompts } from '../resources/server-prompts.js'
import { SeenLinks } from '../resources/seen-links.js'
import { ServerResources } from '../resources/server-resources.js'
import { RequestStates } from '../http/request-states.js'
import { withoutCommands } from './remote-client.js'
import { uuidRunIds } from './run-ids.js'
import { type ServeDeps, type ServedConnection, serveMcp } from './serve.js'
import type { ToolLog, ToolSource } from './tool.js'
import { ToolCatalog } from './tool-catalog.js'
import type { OnCompleted } from './tool-record.js'
import type { StructuredError } from './structured-error.js'
import { ToolRegistry } from './tool-registry.js'

/** Callers whose kind of list is remembered. */
const MAX_MODES = 1024

/** Only a caller with all rights on this node reads it: it names all refused callers. */
const AUDIT = { uri: 'a2a://audit', name: 'newest lines of the audit log', mimeType: 'application/json' }

/** Settings of the MCP server, as the config names them. */
export interface McpSettings {
  readonly mcp: {
    readonly eras: Eras
    readonly expose: Expose
    readonly schemas: SchemaForm
    readonly maxListedTools: number
    readonly maxListedTokens: number
    readonly maxResultTokens: ResultTokens
    readonly favorites: readonly string[]
  }
  readonly tools: {
    readonly defaultTimeoutMs: number
    readonly maxPayloadBytes: number
    readonly maxStateBytes: number
    readonly adminRegistrationEnabled: boolean
    readonly adminPolicy: AdminPolicy
  }
  readonly resources: { readonly maxConcurrentExecutions: number }
  readonly security: { readonly dynamicRegistrationEnabled: boolean }
}

/** Dependencies of {@link McpService}. */
export interface McpServiceDeps {
  readonly version: string
  readonly settings: McpSettings
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
  readonly log: ToolLog
  apiFor(principal: Principal): NodeApi
  /** The newest lines of the audit log. */
  readonly audit: () => Promise<readonly unknown[]>
  /** The MCP servers of the config. */
  readonly imported: Pick<ImportedTools, 'list' | 'named'>
  /** Chooses a tool of those by a prompt of this caller; null: the caller may not have it asked. */
  chooserFor(principal: Principal): ToolChooser | null
  /** Called with the record of each ended tool call. */
  readonly onCompleted: OnCompleted
}

/** The offer to one caller, and its number of connections. */
interface Offer {
  /** Identifies the caller. */
  readonly key: string
  readonly deps: Pick<ServeDeps, 'tools' | 'resources' | 'prompts' | 'isRemote' | 'instructions' | 'fit' | 'schemas'>
  readonly catalog: ToolCatalog
  users: number
}

interface Exposing {
  readonly asking: RunAsking
  readonly own: ToolSource
  readonly mode: ListMode
  /** Globs of the tools in the caller's list; null: all. */
  readonly chosen: readonly string[] | null
  readonly links: SeenLinks
}

const OVER_HTTP: AdminCaller = { transport: 'http', hasToken: true }

/** The MCP server of a node: each connection offers only its caller's tools and data. All share slots and telemetry. */
export class McpService {
  readonly #deps: McpServiceDeps
  readonly #limits: ResourceManager
  readonly #meter: ReturnType<typeof startProcessMeter>
  readonly #offers = new Map<string, Offer>()
  readonly #connections = new Set<ServedConnection>()
  readonly #http: McpHttp
  readonly #ids = uuidRunIds()
  /** Seals the states of handlers, which clients carry. */
  readonly #stateKey = randomBytes(32)
  readonly #definitions = knownDefinitions()
  /** For each caller, whether its list has become `search`: it stays so over its connections. */
  readonly #modes = new BoundedMap<string, ListMode>(MAX_MODES)
  /** Shared, since a client may read a result over a later connection. */
  readonly #results = new LargeResults(() => randomBytes(12).toString('base64url'))
  /** Shared, since a client may come back over a later connection. */
  readonly #asking: AskingCalls
  #isClosed = false

  /** `kept`: HTTP sessions that continue after a restart of the node. Absent: all end with it. */
  constructor(deps: McpServiceDeps, kept?: KeptSessions) {
    const { settings, clock } = deps
    this.#deps = deps
    this.#meter = startProcessMeter(clock)
    this.#asking = new AskingCalls({ clock, newId: () => randomBytes(18).toString('base64url') })
    this.#limits = new ResourceManager(
      {
        maxConcurrentExecutions: settings.resources.maxConcurrentExecutions,
        maxPayloadBytes: settings.tools.maxPayloadBytes
      },
      this.#meter
    )
    this.#http = new McpHttp({
      clock,
      ...(kept === undefined ? {} : { kept }),
      newId: () => this.#ids.connectionCorrelationId(),
      connect: (principal) => this.#connect(principal),
      refuseOversized: (tool, principal) => this.#refuseOversized(tool, principal)
    })
  }

  /** Serves a stream of lines until either side ends it. */
  open(stream: Duplex, principal: Principal): void {
    if (this.#isClosed) stream.destroy()
    else
      this.#serve({ input: stream, output: stream }, this.#offerTo(principal, { transport: 'stdio', hasToken: false }))
  }

  /** Answers a request to `/mcp` of a caller with a token. */
  async handle(request: IncomingMessage, response: ServerResponse, call: McpHttpCall): Promise<void> {
    await this.#http.handle(request, response, call)
  }

  async #refuseOversized(tool: string, principal: Principal): Promise<StructuredError> {
    const { settings, clock, log, onCompleted } = this.#deps
    const offer = this.#offerTo(principal, OVER_HTTP)
    const deps = { clock, log, onCompleted, ids: this.#ids, limits: this.#limits, tools: offer.catalog, isRemote: true }
    offer.users++
    try {
      return await refuseOversized(deps, tool, maxMessageBytes(settings.tools.maxPayloadBytes))
    } finally {
      this.#left(offer)
    }
  }

  #connect(principal: Principal): HttpConnection {
    const offer = this.#offerTo(principal, OVER_HTTP)
    const connection = new HttpConnection(new ParamHeaders(offer.catalog))
    this.#serve(connection, offer)
    return connection
  }

  #offerTo(principal: Principal, caller: AdminCaller): Offer {
    const key = JSON.stringify([principal, caller])
    const offer = this.#offers.get(key) ?? { ...this.#offer(principal, caller, key), key, users: 0 }
    this.#offers.set(key, offer)
    return offer
  }

  #serve(over: LineStreams | HttpConnection, offer: Offer): void {
    offer.users++
    const { version, settings, clock, log, onCompleted } = this.#deps
    const connection = serveMcp(over, {
      name: 'a2a-node',
      version,
      clock,
      ids: this.#ids,
      log,
      limits: this.#limits,
      states: new RequestStates({ key: this.#stateKey, clock, caller: offer.key }),
      defaultTimeoutMs: settings.tools.defaultTimeoutMs,
      maxPayloadBytes: settings.tools.maxPayloadBytes,
      eras: settings.mcp.eras,
      onCompleted,
      ...offer.deps
    })
    this.#connections.add(connection)
    void connection.closed.then(() => {
      this.#connections.delete(connection)
      this.#left(offer)
    })
  }

  /** Forgets an offer after its last user. */
  #left(offer: Offer): void {
    if (--offer.users > 0) return
    this.#offers.delete(offer.key)
    offer.catalog.close()
  }

  /** Ends every connection and signals their calls to stop. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#asking.close()
    await this.#http.close()
    await Promise.all([...this.#connections].map((connection) => connection.close()))
    this.#meter.close()
  }

  #modeOf(key: string): ListMode {
    const mode = this.#modes.get(key) ?? { isSearch: false }
    this.#modes.setNewest(key, mode)
    return mode
  }

  #offer(principal: Principal, caller: AdminCaller, key: string): Pick<Offer, 'deps' | 'catalog'> {
    const { apiFor, compileSchema, toJson, settings } = this.#deps
    const isRemote = caller.transport === 'http'
    const api = isRemote ? withoutCommands(apiFor(principal)) : apiFor(principal)
    const { adminRegistrationEnabled, adminPolicy } = settings.tools
    const health = this.#health()
    const asking = this.#asking.of(key)
    const own = this.#ownTools(api, principal, asking)
    own.register(health.definition, health.handler, HEALTH_OPTIONS)
    // A tool that a caller registers acts as that caller: no other caller sees it.
    const registered = new ToolRegistry(compileSchema)
    const admin = adminTools({
      settings: {
        adminRegistrationEnabled,
        adminPolicy,
        dynamicRegistrationEnabled: settings.security.dynamicRegistrationEnabled
      },
      caller,
      compile: compileSchema,
      registry: registered,
      isTaken: (name) => catalog.isTaken(name),
      health: health.handler,
      sendMessage: (agent, message, context) =>
        sendToAgent({ api, toJson }, { agent, text: JSON.stringify(message) }, context)
    })
    const links = new SeenLinks()
    const shown = { own, asking, mode: this.#modeOf(key), chosen: principal.tools ?? null, links }
    const exposed = this.#exposed(api, shown)
    const catalog: ToolCatalog = new ToolCatalog([exposed, admin, registered])
    const isSearch = (): Promise<boolean> => exposed.isSearch().catch(() => false)
    const instructions = async (): Promise<string> => await meshInstructions(api, await isSearch())
    const { schemas } = settings.mcp
    const offered = this.#resources(api, { principal, key, links, asking })
    return { deps: { tools: catalog, isRemote, instructions, schemas, ...offered }, catalog }
  }

  #resources(
    api: NodeApi,
    {
      principal,
      key,
      links,
      asking
    }: Pick<Exposing, 'asking' | 'links'> & { readonly principal: Principal; readonly key: string }
  ): Pick<ServeDeps, 'resources' | 'prompts' | 'fit'> {
    const { clock, toJson, settings } = this.#deps
    const results = this.#results.of(key)
    const context = new MeshContext({ api, clock, toJson, asking, chosen: principal.tools ?? null })
    const ofServers = new ServerResources({ context, links, clock })
    const ofMesh = new MeshResources({ api, clock, toJson })
    return {
      resources: joinResources([results, this.#auditFor(principal), ofMesh, ofServers]),
      prompts: joinPrompts([new AgentPrompts({ api, clock }), new ServerPrompts(context)]),
      fit: results.fitter(settings.mcp.maxResultTokens)
    }
  }

  #health(): ReturnType<typeof healthTool> {
    const { version, settings } = this.#deps
    const { adminRegistrationEnabled: _enabled, adminPolicy: _policy, ...limits } = settings.tools
    const { maxConcurrentExecutions } = settings.resources
    return healthTool({
      name: 'a2a-node',
      version,
      limits: this.#limits,
      settings: { ...limits, maxConcurrentExecutions }
    })
  }

  #exposed(api: NodeApi, { own, asking, mode, chosen, links }: Exposing): ExposedTools {
    const { clock, compileSchema, settings, toJson } = this.#deps
    const { expose, maxListedTools, maxListedTokens, favorites } = settings.mcp
    const onContent = links.note.bind(links)
    const shown = { asking, known: this.#definitions, chosen, favorites, onContent }
    const mesh = new MeshTools({ api, clock, compileSchema, toJson, ...shown })
    const limits: ListLimits = { tools: maxListedTools, tokens: maxListedTokens }
    return new ExposedTools({ own, essential: A2A_TOOLS, mesh, expose, limits, mode, compileSchema })
  }

  /** The tools that work the mesh. The client tool names all servers, also those that a sandbox may not see. */
  #ownTools(api: NodeApi, principal: Principal, asking: RunAsking): ToolRegistry {
    const { compileSchema, toJson, imported } = this.#deps
    const own = new ToolRegistry(compileSchema)
    for (const tool of a2aTools({ api, asking, compileSchema, toJson }))
      own.register(tool.definition, tool.handler, tool)
    if (imported.list().length === 0 || principal.sandboxId !== null) return own
    const client = mcpClientTool({
      serverOf: (text) => imported.named(text),
      servers: () => imported.list(),
      call: async (work, context) => await outcomeOf(callAgent({ api, toJson }, work, context)),
      refusals: async (agent, capabilities) => {
        const { refused } = await api.call('message.judge', { agent, capabilities })
        return new Map(refused.map(({ capability, error }) => [capability, error]))
      },
      compileSchema,
      chooser: this.#deps.chooserFor(principal)
    })
    own.register(client.definition, client.handler, client)
    return own
  }

  #auditFor({ scopes, sandboxId }: Principal): ResourceRegistry {
    const resources = new ResourceRegistry()
    if (scopes.includes('admin') && sandboxId === null) {
      resources.register(AUDIT, async () => JSON.stringify(await this.#deps.audit(), null, 2))
    }
    return resources
  }
}

async function outcomeOf(
  call: Promise<unknown>
): Promise<{ readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: ErrorBody }> {
  try {
    return { ok: true, result: await call }
  } catch (error) {
    return { ok: false, error: asNodeError(error).toBody() }
  }
}
