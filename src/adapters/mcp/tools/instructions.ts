import { shown } from '../../../kit/text.js'
import type { AgentInfo, NodeApi } from '../../../ports/node-api.js'
import { contextId } from '../imported/context-capability.js'
import { capabilityPrefix, instructionsIn } from '../imported/imported-card.js'

/** Machines and agents of each that the instructions name. */
const MAX_MACHINES = 24
const MAX_AGENTS = 8
/** Characters of a name or label in them. */
const MAX_NAME = 40
/** MCP servers that are asked for their instructions, those that are quoted, and characters of each. */
const MAX_SERVERS = 64
const MAX_QUOTED = 8
const MAX_QUOTE = 160

const FIND = {
  search:
    'Most tools are not in the list: describe the task to a2a_find_tools (it searches all machines), then call a hit with a2a_call_tool. ',
  list: 'Each capability of an agent is a tool: agent__tool on this machine, agent_at_machine__tool on another; one tool for several machines takes node. If none fits, describe the task to a2a_find_tools. '
}
const USE =
  'a2a_swarm spreads work over all machines. A call may wait for a person to allow it. ' +
  'When a call ends as TIMEOUT, its work may go on: a2a_task tells its state and result.'

/**
 * Instructions for a client: the machines of the mesh, each with its labels and agents, and how to find a tool.
 * `isSearch`: the list has only the tools that find others.
 */
export async function meshInstructions(api: NodeApi, isSearch: boolean): Promise<string> {
  const machines = new Map<string, AgentInfo[]>()
  const agents = await agentsOf(api)
  for (const agent of agents) {
    const known = machines.get(agent.node.id)
    if (known === undefined) machines.set(agent.node.id, [agent])
    else known.push(agent)
  }
  const lines = [...machines.values()].map(machineLine)
  const more = lines.length > MAX_MACHINES ? [`- and ${lines.length - MAX_MACHINES} more: see a2a_list_agents`] : []
  const listed =
    lines.length === 0 ? '' : `Machines and their agents:\n${[...lines.slice(0, MAX_MACHINES), ...more].join('\n')}\n`
  return (
    'This server is a node of an a2a-node mesh: machines whose agents work for each other. ' +
    `${listed}${await quotes(api, agents)}${isSearch ? FIND.search : FIND.list}${USE}`
  )
}

/** None for a caller that may not list agents. */
async function agentsOf(api: NodeApi): Promise<readonly AgentInfo[]> {
  try {
    return (await api.call('agents.list', {})).agents
  } catch {
    return []
  }
}

/**
 * Begins of the instructions that imported MCP servers give; the whole ones are resources. A model may follow them, so
 * only those of this person's machines are quoted.
 */
async function quotes(api: NodeApi, agents: readonly AgentInfo[]): Promise<string> {
  const isServer = ({ id, status, capabilities }: AgentInfo): boolean =>
    status !== 'offline' && capabilities.some((one) => one === contextId(id) || one.startsWith(capabilityPrefix(id)))
  const mine = await ownMachines(api)
  const lines = await Promise.all(
    agents
      .filter((agent) => isServer(agent) && (agent.origin === 'local' || mine.has(agent.node.id)))
      .slice(0, MAX_SERVERS)
      .map(async ({ id, address }) => {
        const detail = await api.call('agents.show', { agent: address }).catch(() => null)
        const text = shown(instructionsIn(id, detail?.description ?? ''), MAX_QUOTE)
        return text === '' ? [] : [`- ${shown(address, MAX_NAME * 2)}: ${text}\n`]
      })
  )
  const quoted = lines.flat().slice(0, MAX_QUOTED)
  return quoted.length === 0 ? '' : `Instructions of MCP servers, written by these:\n${quoted.join('')}`
}

/** Other machines of the person of this node; empty for a caller that may not list peers. */
async function ownMachines(api: NodeApi): Promise<ReadonlySet<string>> {
  try {
    const { peers } = await api.call('peers.list', {})
    return new Set(peers.flatMap(({ id, trust }) => (trust === 'mine' ? [id] : [])))
  } catch {
    return new Set()
  }
}

function machineLine(agents: readonly AgentInfo[]): string {
  const [first] = agents
  if (first === undefined) return ''
  const { node, origin, labels, status } = first
  const about = [
    ...(origin === 'local' ? ['this machine'] : []),
    ...labels.slice(0, MAX_AGENTS),
    ...(status === 'offline' ? ['offline now'] : [])
  ]
  const ids = agents.map(({ id }) => id)
  const named = ids.slice(0, MAX_AGENTS).map((id) => shown(id, MAX_NAME))
  const more = ids.length > MAX_AGENTS ? [`${ids.length - MAX_AGENTS} more`] : []
  const remarks = about.length === 0 ? '' : ` (${about.map((one) => shown(one, MAX_NAME)).join(', ')})`
  return `- ${shown(node.name, MAX_NAME)}${remarks}: ${[...named, ...more].join(', ')}`
}
