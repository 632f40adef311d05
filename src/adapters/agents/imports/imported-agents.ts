import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { AgentFault, AgentSource, HostedAgent } from '../../../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedTools } from '../../../ports/imported-tools.js'
import type { ImportAdapter } from '../../../ports/imports.js'
import type { Problem } from '../../../ports/node-api.js'
import { hostAgent, type LocalAgent } from '../files/hosted-agent.js'
import { PinnedImport, type PinnedImportDeps } from './pinned-import.js'

/** Options of {@link ImportedAgents}. */
export interface ImportedAgentsOptions extends Omit<PinnedImportDeps, 'onOffer'> {
  readonly clock: Clock
  /** One for each import; of two with one name the first is found. */
  readonly adapters: readonly ImportAdapter[]
  /** Is another agent with its id in service? */
  isTaken(agent: HostedAgent): boolean
}

type OnImportedChange = Parameters<AgentSource['watch']>[0]

/**
 * The MCP servers and A2A agents of the config as agents: one each, in service as long as it has something to offer,
 * also while it is offline.
 */
export class ImportedAgents implements AgentSource, ImportedTools {
  readonly #options: ImportedAgentsOptions
  readonly #imports: readonly PinnedImport[]
  readonly #agents = new Map<PinnedImport, LocalAgent>()
  readonly #retiring = new Set<Promise<void>>()
  #onChange: OnImportedChange = () => {}
  #closing: Promise<void> | null = null

  constructor(options: ImportedAgentsOptions) {
    this.#options = options
    this.#imports = options.adapters.map(
      (adapter) => new PinnedImport(adapter, { ...options, onOffer: () => this.#report() })
    )
  }

  /** The agents that the home knows: links start with `watch`, in the background. */
  async load(): Promise<{ readonly agents: readonly HostedAgent[]; readonly faults: readonly AgentFault[] }> {
    await Promise.all(this.#imports.map((one) => one.load()))
    return { agents: this.#hosted(), faults: [] }
  }

  watch(onChange: OnImportedChange): void {
    if (this.#closing !== null) return
    this.#onChange = onChange
    for (const one of this.#imports) one.start()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  list(): readonly ImportedServerInfo[] {
    return this.#imports.map((one) => this.#info(one))
  }

  /** Of MCP servers alone, since MCP clients name them. */
  named(text: string): ImportedServerInfo | null {
    const found = this.#imports.find((one) => one.adapter.transport !== 'a2a' && one.isCalled(text))
    return found === undefined ? null : this.#info(found)
  }

  async refresh(name: string | null, accept: string | null): Promise<readonly ImportedServerInfo[]> {
    const imports = name === null ? this.#imports : [this.#find(name)]
    await Promise.all(imports.map((one) => one.refresh(accept)))
    return imports.map((one) => this.#info(one))
  }

  problems(): readonly Problem[] {
    return [
      ...this.#imports.flatMap((one) => one.problems()),
      ...this.#imports.flatMap((one) => this.#takenProblem(one))
    ]
  }

  /** @throws NodeError TOOL_SERVER_NOT_FOUND */
  #find(text: string): PinnedImport {
    const found = this.#imports.find((one) => one.isCalled(text))
    if (found !== undefined) return found
    const servers = this.#imports.flatMap(({ adapter }) => (adapter.transport === 'a2a' ? [] : [adapter.spec.name]))
    throw new NodeError('TOOL_SERVER_NOT_FOUND', `no MCP server "${shown(text)}" in the config of this node`, {
      data: { servers }
    })
  }

  /** An import whose agent is not in service offers no tools. */
  #info(one: PinnedImport): ImportedServerInfo {
    const info = one.info()
    if (!this.#isTaken(one)) return info
    const reason = `an agent ${info.agent} is on this node already`
    return { ...info, tools: info.tools.map((tool) => (tool.offered ? { ...tool, offered: false, reason } : tool)) }
  }

  #isTaken(one: PinnedImport): boolean {
    const agent = this.#agents.get(one)
    return agent !== undefined && this.#options.isTaken(agent)
  }

  #takenProblem(one: PinnedImport): Problem[] {
    const { spec, words } = one.adapter
    const { name } = spec
    const source = one.offer?.definition.source ?? ''
    const message = `${source}: ${words.section}.${name}: an agent ${name} is on this node already: call the ${words.what} otherwise`
    return this.#isTaken(one) ? [{ code: 'AGENT_ID_TAKEN', message, next: 'a2a-node config path' }] : []
  }

  async #close(): Promise<void> {
    this.#onChange = () => {}
    // Calls under way end first, while their links are still open.
    await Promise.all([...this.#agents.values()].map((agent) => agent.close()))
    await Promise.all(this.#imports.map((one) => one.close()))
    await Promise.all(this.#retiring)
  }

  #report(): void | Promise<void> {
    return this.#closing === null ? this.#onChange(this.#hosted(), []) : undefined
  }

  #hosted(): readonly HostedAgent[] {
    return this.#imports.flatMap((one) => {
      const definition = one.offer?.definition
      const known = this.#agents.get(one)
      if (known !== undefined && known.definition === definition) return [known]
      if (known !== undefined) this.#retire(known)
      this.#agents.delete(one)
      if (definition === undefined || definition.capabilities.length === 0) return []
      const runtime = { run: one.call.bind(one), check: () => one.health(), end: () => Promise.resolve() }
      const hosted = hostAgent({ definition, runtime, clock: this.#options.clock })
      this.#agents.set(one, hosted)
      return [hosted]
    })
  }

  #retire(agent: LocalAgent): void {
    const retired = agent.retire().finally(() => this.#retiring.delete(retired))
    this.#retiring.add(retired)
  }
}
