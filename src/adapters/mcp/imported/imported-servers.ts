import { NodeError } from '../../../kit/errors.js'
import type {
  AgentDefinition,
  AgentFault,
  AgentOutcome,
  AgentSource,
  AgentTask,
  HealthFinding,
  HostedAgent
} from '../../../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedTools } from '../../../ports/imported-tools.js'
import type { Problem } from '../../../ports/node-api.js'
import { shown } from '../../../kit/text.js'
import type { ToolRun } from './imported-connection.js'
import { ImportedServer, type ImportedServerDeps, type ImportedServerSpec } from './imported-server.js'

/** What is needed to host an agent: adds its timeout, cancellation, bounds and closing to a runtime. */
export type HostImportedAgent = (parts: {
  readonly definition: AgentDefinition
  readonly runtime: {
    run(task: AgentTask, context: ToolRun): Promise<AgentOutcome>
    check(): HealthFinding
    end(): Promise<void>
  }
}) => HostedAgent & { retire(): Promise<void> }

/** What {@link ImportedServers} needs. */
export interface ImportedServersOptions extends Omit<ImportedServerDeps, 'spec' | 'open' | 'onTools'> {
  readonly servers: readonly { readonly spec: ImportedServerSpec; readonly open: ImportedServerDeps['open'] }[]
  readonly hostAgent: HostImportedAgent
}

type OnImportedChange = (agents: readonly HostedAgent[], faults: readonly AgentFault[]) => void

/** The MCP servers of the config as agents: one a server, in service as long as it has tools to offer. */
export class ImportedServers implements AgentSource, ImportedTools {
  readonly #hostAgent: HostImportedAgent
  readonly #servers: readonly ImportedServer[]
  readonly #agents = new Map<ImportedServer, HostedAgent & { retire(): Promise<void> }>()
  readonly #retiring = new Set<Promise<void>>()
  #onChange: OnImportedChange = () => {}
  #closing: Promise<void> | null = null

  constructor({ servers, hostAgent, ...parts }: ImportedServersOptions) {
    this.#hostAgent = hostAgent
    this.#servers = servers.map((one) => new ImportedServer({ ...parts, ...one, onTools: () => this.#tell() }))
  }

  /** The agents of the lists that the home has: the servers themselves start with `watch`, and nobody waits for them. */
  async load(): Promise<{ readonly agents: readonly HostedAgent[]; readonly faults: readonly AgentFault[] }> {
    await Promise.all(this.#servers.map((server) => server.load()))
    return { agents: this.#hosted(), faults: [] }
  }

  watch(onChange: OnImportedChange): void {
    if (this.#closing !== null) return
    this.#onChange = onChange
    for (const server of this.#servers) server.start()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  list(): readonly ImportedServerInfo[] {
    return this.#servers.map((server) => server.info())
  }

  async refresh(name: string | null, accept: string | null): Promise<readonly ImportedServerInfo[]> {
    const servers = name === null ? this.#servers : [this.#find(name)]
    await Promise.all(servers.map((server) => server.refresh(accept)))
    return servers.map((server) => server.info())
  }

  /** What there is to say of the server of that name or exact address; null: there is none. */
  named(text: string): ImportedServerInfo | null {
    return this.#servers.find((one) => one.isCalled(text))?.info() ?? null
  }

  /** The server of that name or address. @throws NodeError TOOL_SERVER_NOT_FOUND */
  #find(text: string): ImportedServer {
    const server = this.#servers.find((one) => one.isCalled(text))
    if (server !== undefined) return server
    const names = this.#servers.map(({ spec }) => spec.name)
    throw new NodeError('TOOL_SERVER_NOT_FOUND', `no MCP server "${shown(text)}" in the config of this node`, { data: { servers: names } })
  }

  problems(): readonly Problem[] {
    return this.#servers.flatMap((server) => problemsOf(server))
  }

  async #close(): Promise<void> {
    this.#onChange = () => {}
    // Calls under way are told first: their servers are still there to hear of it.
    await Promise.all([...this.#agents.values()].map((agent) => agent.close()))
    await Promise.all(this.#servers.map((server) => server.close()))
    await Promise.all(this.#retiring)
  }

  #tell(): void {
    if (this.#closing === null) this.#onChange(this.#hosted(), [])
  }

  #hosted(): readonly HostedAgent[] {
    return this.#servers.flatMap((server) => {
      const { definition } = server.card
      const known = this.#agents.get(server)
      if (known?.definition === definition) return [known]
      if (known !== undefined) this.#retire(known)
      this.#agents.delete(server)
      if (definition.capabilities.length === 0) return []
      const runtime = {
        run: (task: AgentTask, run: ToolRun) => server.call(task, run),
        check: () => healthOf(server.info()),
        end: () => Promise.resolve()
      }
      const hosted = this.#hostAgent({ definition, runtime })
      this.#agents.set(server, hosted)
      return [hosted]
    })
  }

  #retire(agent: { retire(): Promise<void> }): void {
    const retired = agent.retire().finally(() => this.#retiring.delete(retired))
    this.#retiring.add(retired)
  }
}

/** By its link, which is kept up all the time: nothing is asked of it for this. */
function healthOf({ state, lastError }: ImportedServerInfo): HealthFinding {
  if (state === 'ready') return { state: 'healthy', reason: null }
  if (lastError !== null || state === 'closed') return { state: 'unhealthy', reason: lastError ?? 'the MCP server was closed' }
  return { state: 'degraded', reason: 'the MCP server has not come up yet' }
}

function problemsOf(server: ImportedServer): Problem[] {
  const { name, state, lastError, change, listed } = server.info()
  const look = `a2a-node tools refresh ${name}`
  const problems: Problem[] = []
  // Also while it is tried again: a problem that comes and goes is no news each time.
  if (state !== 'ready' && lastError !== null)
    problems.push({ code: 'TOOL_SERVER_FAILED', message: `the MCP server ${name}: ${lastError}`, next: look })
  if (server.isPinLost)
    problems.push({
      code: 'TOOLS_CHANGED',
      message: `the accepted tool list of the MCP server ${name} cannot be read: look at its tools, then accept them`,
      next: look
    })
  else if (change !== null && server.spec.pin !== null)
    problems.push({
      code: 'TOOLS_CHANGED',
      message: `the MCP server ${name} lists other tools than those pinned in the config (${countText(change)}; sha256 ${listed})`,
      next: 'a2a-node tools ls'
    })
  else if (change !== null)
    problems.push({
      code: 'TOOLS_CHANGED',
      message: `the MCP server ${name} lists other tools than those accepted (${countText(change)}); they wait for you`,
      next: look
    })
  if (server.card.leftOut.length > 0)
    problems.push({
      code: 'TOO_MANY_TOOLS',
      message: `the card of ${name} has no room for ${server.card.leftOut.length} of its tools: name those that matter in mcp.servers.${name}.tools`,
      next: 'a2a-node tools ls'
    })
  return problems
}

function countText({ added, removed, changed }: NonNullable<ImportedServerInfo['change']>): string {
  return [
    [added.length, 'new'],
    [changed.length, 'changed'],
    [removed.length, 'gone']
  ]
    .filter(([count]) => count !== 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ')
}
