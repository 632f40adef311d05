import { asNodeError } from '../../../kit/errors.js'
import { defaultCapability } from '../../../domain/card/card.js'
import { shown } from '../../../kit/text.js'
import type { AgentDetail, NodeApi } from '../../../ports/node-api.js'
import { isNamed, pathIdOf } from '../cards/card-interfaces.js'
import { FacadeFault } from './facade-fault.js'

/** An agent in the list. */
export interface FacadeAgent {
  /** Name in paths: the id of a local agent, the address of one of another node. */
  readonly name: string
  readonly title: string
  readonly description: string
  readonly version: string
  readonly tier: string
  /** `ready`, `busy`, `offline`; of an impaired local agent its health, `unhealthy` or `degraded`. */
  readonly status: string
  /** Result of the last health check of a local agent; its reason is for operators only. */
  readonly health?: string
  readonly origin: string
  readonly capabilities: readonly string[]
}

/** One agent with its capabilities; prompts use the default capability. @throws NodeError AGENT_NOT_FOUND, FORBIDDEN */
export async function facadeAgent(api: NodeApi, agent: string): Promise<object> {
  const detail = await api
    .call('agents.show', { agent })
    .catch(async (error: unknown) => await ownOf(api, agent, error))
  // Every node has an operator agent, which has no runtime.
  if (detail.id === 'operator')
    throw new FacadeFault('agent_not_found', 'the operator of a node is no agent to be asked')
  // The API accepts prefixes; here each agent has one URL, that of its card.
  if (!isNamed(detail, agent)) throw noneCalled(agent, `; did you mean ${pathIdOf(detail)}?`)
  const capabilities = detail.capabilities.map(({ id, name, description, inputSchema, outputSchema }) => ({
    id,
    name,
    description,
    inputSchema,
    outputSchema
  }))
  return { ...agentOf(agent, detail), defaultCapability: defaultCapability(detail)?.id ?? null, capabilities }
}

/** An agent as the facade shows it, without its capabilities. `name`: for paths. */
export function agentOf(
  name: string,
  { name: title, description, version, tier, status, origin, health }: AgentDetail
): Omit<FacadeAgent, 'capabilities'> {
  const head = { name, title, description, version, tier }
  if (health === undefined) return { ...head, status, origin }
  const { state } = health
  // Impaired health takes precedence over `ready` and `busy`, as at the command line.
  return { ...head, status: state === 'healthy' ? status : state, health: state, origin }
}

/** Resolves an ambiguous id to the local agent, as the A2A URLs do. */
async function ownOf(api: NodeApi, agent: string, error: unknown): Promise<AgentDetail> {
  if (asNodeError(error).code !== 'AMBIGUOUS_NAME') throw error
  const own = (await api.call('agents.list', { origin: 'local' })).agents.find(({ id }) => id === agent)
  if (own === undefined) throw noneCalled(agent)
  return await api.call('agents.show', { agent: own.address })
}

function noneCalled(name: string, hint = ''): FacadeFault {
  return new FacadeFault('agent_not_found', `no agent "${shown(name)}" is served here${hint}`)
}
