import type { AgentFault, AgentSource, HostedAgent } from '../ports/agent-runtime.js'

type JoinedAgentSet = Awaited<ReturnType<AgentSource['load']>>

const NONE: JoinedAgentSet = { agents: [], faults: [] }

/**
 * Joins several sources. Of agents with one id the one of the first source wins; `onTaken` gets the others at each
 * change.
 */
export function joinAgents(
  sources: readonly AgentSource[],
  onTaken: (agents: readonly HostedAgent[]) => void
): AgentSource {
  const sets = sources.map(() => NONE)
  const joined = (): JoinedAgentSet => {
    const all = sets.flatMap(({ agents }) => agents)
    const first = new Map(all.toReversed().map((agent) => [agent.definition.id, agent]))
    const faults: readonly AgentFault[] = sets.flatMap((set) => set.faults)
    onTaken(all.filter((agent) => first.get(agent.definition.id) !== agent))
    return { agents: all.filter((agent) => first.get(agent.definition.id) === agent), faults }
  }
  return {
    async load() {
      for (const [i, set] of (await Promise.all(sources.map((source) => source.load()))).entries()) sets[i] = set
      return joined()
    },
    watch(onChange) {
      for (const [i, source] of sources.entries()) {
        source.watch((agents, faults) => {
          sets[i] = { agents, faults }
          const now = joined()
          return onChange(now.agents, now.faults)
        })
      }
    },
    async close() {
      // In reverse order, since later sources may use resources of earlier ones.
      for (const source of sources.toReversed()) await source.close()
    }
  }
}
