import type { AbortSignalLike, Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { CompileSchema } from '../kit/sign.js'
import type { AgentTools } from '../ports/agent-tools.js'
import type { NodeApi, Principal } from '../ports/node-api.js'
import { toAgentJson } from '../adapters/agents/schemas/agent-json.js'
import { TokenDays, type TokenDaysDeps } from '../adapters/agents/llm/daily-usage.js'
import type { LlmDeps, LlmProvider } from '../adapters/agents/llm/llm-parts.js'
import type { LlmProviderSetting } from '../config/llm-providers.js'
import { type EnvValues, resolvedHeader } from '../config/env-values.js'
import type { NodeId } from '../kit/ids.js'
import type { A2AObservability } from '../node/observe/observability.js'
import type { Directory } from '../node/cards/directory.js'

/** Dependencies of {@link openLlm}. */
export interface LlmOpening {
  providers(): Readonly<Record<string, LlmProviderSetting>> | Promise<Readonly<Record<string, LlmProviderSetting>>>
  readonly env: EnvValues
  readonly clock: Clock
  /** null: no mesh. */
  readonly tools: AgentTools | null
  /** Storage of the daily token usage of agents. Default: none. */
  readonly kept?: Omit<TokenDaysDeps, 'clock'>
}

/** The shared dependencies of language model agents. Nothing is loaded or called before their first task. */
export function openLlm({
  providers,
  env,
  clock,
  tools,
  kept = { store: null, onFault: () => {} }
}: LlmOpening): LlmDeps {
  return {
    async provider(name) {
      const all = await providers()
      const setting = Object.hasOwn(all, name) ? all[name] : undefined
      return setting === undefined ? null : providerOf(name, setting, env)
    },
    tools,
    days: new TokenDays({ clock, ...kept }),
    fetch
  }
}

function providerOf(name: string, { apiKey, headers, ...rest }: LlmProviderSetting, env: EnvValues): LlmProvider {
  const given = (key: string, value: string): string => resolvedHeader(value, env, `llm.providers.${name}: ${key}`)
  return {
    ...rest,
    apiKey: apiKey === null ? null : given('apiKey', apiKey),
    headers: Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, given(key, value)]))
  }
}

/** A node that is up, with the API for its agents. */
interface Up {
  readonly node: {
    readonly self: NodeId
    readonly directory: Pick<Directory, 'party'>
    readonly observability: Pick<A2AObservability, 'emit'>
  }
  readonly running: { apiFor(principal: Principal): NodeApi }
}

/** The API of a node for its own agents, each as its own principal. Calls before the node is up wait. */
export class AgentApis {
  readonly #up: Promise<Up>
  #tell: (up: Up) => void = () => {}

  constructor() {
    this.#up = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  /** Call once the node is up. */
  serve(node: Up['node'], running: Up['running']): void {
    this.#tell({ node, running })
  }

  /**
   * The API of an agent, with the power of its card.
   * @throws NodeError CANCELED by the signal, AGENT_NOT_FOUND without a card.
   */
  async of(agentId: string, signal: AbortSignalLike): Promise<NodeApi> {
    const { node, running } = await this.#whenUp(signal)
    const party = node.directory.party({ agentId, nodeId: node.self })
    if (party === null) throw new NodeError('AGENT_NOT_FOUND', `the agent ${agentId} has no card yet`)
    const { tier, sandboxId } = party
    return running.apiFor({
      kind: 'agent',
      name: `agent ${agentId}`,
      agentId,
      tier,
      sandboxId,
      scopes: ['read', 'send']
    })
  }

  /** Counts a call of a tool by an agent, as those of MCP clients are counted. */
  onCall(call: Parameters<A2AObservability['emit']>[0]): void {
    void this.#up.then(({ node }) => node.observability.emit(call))
  }

  async #whenUp(signal: AbortSignalLike): Promise<Up> {
    let stop: () => void = () => {}
    const stopped = new Promise<never>((_resolve, reject) => {
      stop = () => reject(new NodeError('CANCELED', 'canceled before the node was up'))
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop)
    })
    return await Promise.race([this.#up, stopped]).finally(() => signal.removeEventListener('abort', stop))
  }
}

/** The capabilities of the mesh as tools of the agents of a node. */
export function toolsOfMesh(
  apis: AgentApis,
  { clock, compileSchema }: { readonly clock: Clock; readonly compileSchema: CompileSchema }
): AgentTools {
  return {
    async open(agentId, choice, signal) {
      const [api, { openToolbox }] = await Promise.all([
        apis.of(agentId, signal),
        import('../adapters/mcp/tools/agent-toolbox.js')
      ])
      const onCall = apis.onCall.bind(apis)
      return await openToolbox({ api, agentId, clock, compileSchema, toJson: toAgentJson, onCall }, choice, signal)
    }
  }
}
