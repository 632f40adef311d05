import { NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import type { HostedAgent } from '../ports/agent-runtime.js'
import type { ImportedTools } from '../ports/imported-tools.js'
import type { Calls } from '../ports/node-api.js'
import type { AttachedAgent, AttachOptions } from '../node/agents/in-process-agents.js'

/** Dependencies of {@link adHocFinder}. */
export interface AdHocDeps {
  readonly node: { readonly self: NodeId; attach(options: AttachOptions): Promise<AttachedAgent> }
  /** Calls agents that the config does not name. */
  readonly caller: HostedAgent
  readonly tools: ImportedTools
}

type Find = (params: Calls['a2a.find']['params']) => Promise<Calls['a2a.find']['result']>

/**
 * Resolves the card URL of an A2A agent to an agent of the mesh: its import, with pin and secret, else the generic
 * `caller`. The caller is attached at first use; tiers, policy, audit and tasks treat it as any agent. It works for its
 * own node only, so that peers cannot reach other hosts through this node.
 */
export function adHocFinder({ node, caller, tools }: AdHocDeps): Find {
  let attaching: Promise<unknown> | null = null
  const [capability] = caller.definition.capabilities
  const attach = async (): Promise<void> => {
    attaching ??= node.attach(attachOptions(node.self, caller)).catch((error: unknown) => {
      attaching = null
      throw error
    })
    await attaching
  }
  return async ({ card, skill }) => {
    const known = tools.list().find((one) => one.transport === 'a2a' && one.url === card)
    if (known !== undefined) {
      const offered = known.tools.filter((one) => one.offered)
      const tool = skill === undefined ? offered[0] : offered.find((one) => one.name === skill)
      if (tool !== undefined)
        return {
          agent: addressText({ agentId: known.agent, nodeId: node.self }),
          capability: tool.capability,
          isWrapped: false
        }
      const names = offered.map((one) => one.name)
      throw new NodeError('CAPABILITY_NOT_FOUND', `${known.name} offers no such skill now`, {
        data: { skills: names },
        next: ['a2a-node tools ls']
      })
    }
    await attach()
    return {
      agent: addressText({ agentId: caller.definition.id, nodeId: node.self }),
      capability: capability?.id ?? '',
      isWrapped: true
    }
  }
}

function attachOptions(self: NodeId, caller: HostedAgent): AttachOptions {
  const { id, description, capabilities, limits } = caller.definition
  return {
    id,
    description,
    capabilities,
    isReserved: true,
    concurrency: limits.concurrency,
    run: async (task, run) => {
      if (task.peer !== self) throw new Error('it works for its own node alone')
      const outcome = await caller.run(task, run)
      if (!outcome.ok) throw new Error(outcome.message)
      return outcome.result
    }
  }
}
