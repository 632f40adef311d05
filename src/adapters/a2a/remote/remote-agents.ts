import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
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
import { RemoteAgent, type RemoteAgentDeps } from './remote-agent.js'
import type { RemoteRun } from './remote-call.js'
import { CARD_ITSELF } from './remote-card.js'

/** What is needed to host an agent: adds its timeout, cancellation, bounds and closing to a runtime. */
export type HostRemoteAgent = (parts: {
  readonly definition: AgentDefinition
  readonly runtime: {
    run(task: AgentTask, context: RemoteRun): Promise<AgentOutcome>
    check(): HealthFinding
    end(): Promise<void>
  }
}) => HostedAgent & { retire(): Promise<void> }

/** What {@link RemoteAgents} needs. */
export interface RemoteAgentsOptions extends Omit<RemoteAgentDeps, 'spec' | 'secret' | 'onOffer'> {
  readonly agents: readonly Pick<RemoteAgentDeps, 'spec' | 'secret'>[]
  readonly hostAgent: HostRemoteAgent
}

type OnRemoteChange = (agents: readonly HostedAgent[], faults: readonly AgentFault[]) => void

/** The A2A agents of the config as agents of the mesh, in service as long as a card of them is in force, also while they are offline. */
export class RemoteAgents implements AgentSource, ImportedTools {
  readonly #hostAgent: HostRemoteAgent
  readonly #remotes: readonly RemoteAgent[]
  readonly #agents = new Map<RemoteAgent, HostedAgent & { retire(): Promise<void> }>()
  readonly #retiring = new Set<Promise<void>>()
  #onChange: OnRemoteChange = () => {}
  #closing: Promise<void> | null = null

  constructor({ agents, hostAgent, ...parts }: RemoteAgentsOptions) {
    this.#hostAgent = hostAgent
    this.#remotes = agents.map((one) => new RemoteAgent({ ...parts, ...one, onOffer: () => this.#tell() }))
  }

  /** The agents of the cards that the home has: the remote ones are asked from `watch` on, and nobody waits for them. */
  async load(): Promise<{ readonly agents: readonly HostedAgent[]; readonly faults: readonly AgentFault[] }> {
    await Promise.all(this.#remotes.map((one) => one.load()))
    return { agents: this.#hosted(), faults: [] }
  }

  watch(onChange: OnRemoteChange): void {
    if (this.#closing !== null) return
    this.#onChange = onChange
    for (const one of this.#remotes) one.start()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  list(): readonly ImportedServerInfo[] {
    return this.#remotes.map((one) => one.info())
  }

  named(text: string): ImportedServerInfo | null {
    return this.#remotes.find(({ spec }) => spec.name === text || spec.card === text)?.info() ?? null
  }

  async refresh(name: string | null, accept: string | null): Promise<readonly ImportedServerInfo[]> {
    const remotes = name === null ? this.#remotes : this.#remotes.filter(({ spec }) => spec.name === name || spec.card === name)
    if (name !== null && remotes.length === 0)
      throw new NodeError('TOOL_SERVER_NOT_FOUND', `no A2A agent "${shown(name)}" in the config of this node`)
    await Promise.all(remotes.map((one) => one.refresh(accept)))
    return remotes.map((one) => one.info())
  }

  problems(): readonly Problem[] {
    return this.#remotes.flatMap((one) => problemsOf(one))
  }

  async #close(): Promise<void> {
    this.#onChange = () => {}
    // Calls under way are told first: their agents are to hear of it.
    await Promise.all([...this.#agents.values()].map((agent) => agent.close()))
    await Promise.all(this.#remotes.map((one) => one.close()))
    await Promise.all(this.#retiring)
  }

  #tell(): void {
    if (this.#closing === null) this.#onChange(this.#hosted(), [])
  }

  #hosted(): readonly HostedAgent[] {
    return this.#remotes.flatMap((remote) => {
      const definition = remote.offer?.definition
      const known = this.#agents.get(remote)
      if (known !== undefined && known.definition === definition) return [known]
      if (known !== undefined) this.#retire(known)
      this.#agents.delete(remote)
      if (definition === undefined || definition.capabilities.length === 0) return []
      const runtime = {
        run: (task: AgentTask, run: RemoteRun) => remote.call(task, run),
        check: () => healthOf(remote.info()),
        end: () => Promise.resolve()
      }
      const hosted = this.#hostAgent({ definition, runtime })
      this.#agents.set(remote, hosted)
      return [hosted]
    })
  }

  #retire(agent: { retire(): Promise<void> }): void {
    const retired = agent.retire().finally(() => this.#retiring.delete(retired))
    this.#retiring.add(retired)
  }
}

/** By its card, which is asked for again all the time: nothing is asked of it for this. */
function healthOf({ state, lastError }: ImportedServerInfo): HealthFinding {
  if (state === 'ready') return { state: 'healthy', reason: null }
  if (state === 'failed') return { state: 'unhealthy', reason: lastError ?? 'its card cannot be had' }
  return { state: 'degraded', reason: 'its card was not had yet since the start' }
}

function problemsOf(remote: RemoteAgent): Problem[] {
  const { name, state, lastError, change, listed } = remote.info()
  const { pin } = remote.spec
  const look = `a2a-node tools refresh ${name}`
  const problems: Problem[] = []
  if (state !== 'ready' && lastError !== null)
    problems.push({ code: 'A2A_AGENT_FAILED', message: `the A2A agent ${name}: ${lastError}`, next: look })
  if (remote.isPinLost)
    problems.push({
      code: 'A2A_CARD_CHANGED',
      message: `the accepted card of the A2A agent ${name} cannot be read: look at what it says, then accept it`,
      next: look
    })
  else if (change !== null && pin !== null)
    problems.push({
      code: 'A2A_CARD_CHANGED',
      message: `the A2A agent ${name} has another card than the one pinned in the config (sha256 ${listed})`,
      next: 'a2a-node tools ls'
    })
  else if (change !== null) {
    const what = change.changed.some((one) => one.name === CARD_ITSELF) ? 'itself' : 'its skills'
    problems.push({
      code: 'A2A_CARD_CHANGED',
      message: `the A2A agent ${name} says something else of ${what} than what was accepted; it waits for you`,
      next: look
    })
  }
  const count = remote.offer?.leftOut.length ?? 0
  if (count > 0)
    problems.push({
      code: 'TOO_MANY_TOOLS',
      message: `the card of ${name} has no room for ${count} of its skills: name those that matter in a2a.agents.${name}.skills`,
      next: 'a2a-node tools ls'
    })
  return problems
}
