import type { AgentInfo } from '../../../ports/node-api.js'
import { capabilityPrefix } from '../imported/imported-card.js'
import { nameLetters } from './published-names.js'

/** A tool of an agent, as far as its names go. */
export interface NamedTool {
  /** Canonical. */
  readonly name: string
  readonly capability: string
  readonly agent: Pick<AgentInfo, 'id' | 'node' | 'origin'>
}

/**
 * Other names of tools: `agent@node.capability` (also of this node), `agent.capability` and the bare capability, each
 * with or without the prefix of its agent or server, and in the letters of published names.
 */
export class ToolAliases {
  readonly #byAlias = new Map<string, NamedTool[]>()

  constructor(tools: Iterable<NamedTool>) {
    for (const tool of tools) {
      for (const alias of new Set(aliasesOf(tool).map(nameLetters))) {
        const named = this.#byAlias.get(alias)
        if (named === undefined) this.#byAlias.set(alias, [tool])
        else named.push(tool)
      }
    }
  }

  /** The canonical name; of several tools that of the only one of this node. Undefined when it is not clear. */
  resolve(alias: string): string | undefined {
    const all = this.#byAlias.get(nameLetters(alias)) ?? []
    const here = all.filter(({ agent }) => agent.origin === 'local')
    const [only, other] = here.length === 0 ? all : here
    return other === undefined ? only?.name : undefined
  }
}

/** The canonical and all other names of a tool. */
export function namesOf(tool: NamedTool): readonly string[] {
  return [tool.name, nameLetters(tool.name), ...aliasesOf(tool)]
}

function aliasesOf({ capability, agent: { id, node } }: Omit<NamedTool, 'name'>): string[] {
  const prefixes = ['', `${id}.`, capabilityPrefix(id)]
  const tools = prefixes.flatMap((prefix) =>
    capability.startsWith(prefix) && capability.length > prefix.length ? [capability.slice(prefix.length)] : []
  )
  return tools.flatMap((tool) => [`${id}@${node.name}.${tool}`, `${id}.${tool}`, tool])
}
