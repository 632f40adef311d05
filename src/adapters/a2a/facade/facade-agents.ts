import { asNodeError } from '../../../kit/errors.js'
import { defaultCapability } from '../../../domain/card/card.js'
import { shown } from '../../../kit/text.js'
import type { AgentDetail, NodeApi } from '../../../ports/node-api.js'
import { isNamed, pathIdOf } from '../cards/card-interfaces.js'
import { FacadeFault } from './facade-fault.js'

/** One agent in the list. */
export interface FacadeAgent {
  /** What the paths take: its id, or its address when it is of another node. */
  readonly name: string
  readonly title: string
  readonly description: string
  readonly version: string
  readonly tier: string
  /** `ready`, `busy`, `offline`; of an agent of this node with which something is wrong its health, `unhealthy` or `degraded`. */
  readonly status: string
  /** How an agent of this node was found when it was looked at last; why is for people of the node alone. */
  readonly health?: string
  readonly origin: string
  readonly capabilities: readonly string[]
}

/** The agents that a caller sees. @throws NodeError FORBIDDEN */
export async function facadeAgents(api: NodeApi): Promise<readonly FacadeAgent[]> {
  const { agents } = await api.call('agents.list', {})
  const rows: FacadeAgent[] = []
  for (const { address } of agents) {
    const detail = await api.call('agents.show', { agent: address }).catch(unlessGone)
    if (detail !== null) rows.push({ ...agentOf(pathIdOf(detail), detail), capabilities: detail.capabilities.map((one) => one.id) })
  }
  return rows
}

/** One agent with its capabilities; a prompt goes to the default one. @throws NodeError AGENT_NOT_FOUND, FORBIDDEN */
export async function facadeAgent(api: NodeApi, agent: string): Promise<object> {
  const detail = await api.call('agents.show', { agent }).catch(async (error: unknown) => await ownOf(api, agent, error))
  // Every node has one, and nobody runs it.
  if (detail.id === 'operator') throw new FacadeFault('agent_not_found', 'the operator of a node is no agent to be asked')
  // People may type the beginning of a name; here each agent has one URL, that of its card.
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

function agentOf(
  name: string,
  { name: title, description, version, tier, status, origin, health }: AgentDetail
): Omit<FacadeAgent, 'capabilities'> {
  const head = { name, title, description, version, tier }
  if (health === undefined) return { ...head, status, origin }
  const { state } = health
  // What is wrong with an agent says more than that it has room, as at the command line.
  return { ...head, status: state === 'healthy' ? status : state, health: state, origin }
}

/** Of several agents with that id the one of this node, as at the URLs of the A2A protocol. */
async function ownOf(api: NodeApi, agent: string, error: unknown): Promise<AgentDetail> {
  if (asNodeError(error).code !== 'AMBIGUOUS_NAME') throw error
  const own = (await api.call('agents.list', { origin: 'local' })).agents.find(({ id }) => id === agent)
  if (own === undefined) throw noneCalled(agent)
  return await api.call('agents.show', { agent: own.address })
}

function noneCalled(name: string, hint = ''): FacadeFault {
  return new FacadeFault('agent_not_found', `no agent "${shown(name)}" is served here${hint}`)
}

/** It left while the others were looked up. */
function unlessGone(error: unknown): null {
  if (asNodeError(error).code === 'AGENT_NOT_FOUND') return null
  throw error
}
