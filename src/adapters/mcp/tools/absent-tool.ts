import { asNodeError, NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { NodeApi } from '../../../ports/node-api.js'
import type { RegisteredTool } from '../server/tool.js'
import type { ToolOfAgent, NamedTools } from './named-tools.js'
import { publishedName } from './published-names.js'

/** Tools for the same work that an error names. */
const MAX_ALTERNATIVES = 5

/** A tool whose node is offline: its call fails at once, and names other tools of the same capability. */
export function absentTool(absent: ToolOfAgent, present: NamedTools, api: NodeApi): RegisteredTool {
  const { tool, agent } = absent
  return {
    ...tool,
    // No arguments help: the node is away.
    validator: () => [],
    handler: async () => {
      const since = await lastSeen(api, agent.node.id)
      const alternatives = present
        .all()
        .filter((one) => one.tool.capability === tool.capability)
        .slice(0, MAX_ALTERNATIVES)
        .map((one) => publishedName(one.tool.definition.name))
      const away = since === null ? 'is offline' : `is offline since ${since}`
      const instead = alternatives.length === 0 ? 'no other agent offers this now' : `call ${alternatives.join(' or ')}`
      throw new NodeError(
        'PEER_OFFLINE',
        `${shown(agent.node.name)}, the node of ${shown(agent.address)}, ${away}; ${instead}`,
        {
          data: { node: agent.node.name, since, alternatives },
          retryable: true
        }
      )
    }
  }
}

/** ISO time; null when this node never saw it, or the caller may not know. */
async function lastSeen(api: NodeApi, node: string): Promise<string | null> {
  try {
    const { peers } = await api.call('peers.list', {})
    return peers.find(({ id }) => id === node)?.lastSeenAt ?? null
  } catch (error) {
    if (['FORBIDDEN', 'SANDBOX_VIOLATION'].includes(asNodeError(error).code)) return null
    throw error
  }
}
