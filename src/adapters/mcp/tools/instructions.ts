import { shown } from '../../../kit/text.js'
import type { AgentInfo, NodeApi } from '../../../ports/node-api.js'

/** Machines and agents of each that the instructions name. */
const MAX_MACHINES = 24
const MAX_AGENTS = 8
/** Characters of a name or label in them. */
const MAX_NAME = 40

const FIND = {
  search:
    'Most tools are not in the list: describe the task to a2a_find_tools (it searches all machines), then call a hit with a2a_call_tool. ',
  list: 'Each capability of an agent is a tool: agent__tool on this machine, agent_at_machine__tool on another. If none fits, describe the task to a2a_find_tools. '
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
  for (const agent of await agentsOf(api)) {
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
    `${listed}${isSearch ? FIND.search : FIND.list}${USE}`
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
