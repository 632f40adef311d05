import type { AgentInfo } from '../../../ports/node-api.js'
import type { MeshTool } from './mesh-tools.js'
import { PublishedNames } from './published-names.js'
import { ToolAliases } from './tool-aliases.js'

/** A tool and its agent. */
export interface ToolOfAgent {
  readonly tool: MeshTool
  readonly agent: AgentInfo
}

/** Tools of agents by all of their names. */
export class NamedTools {
  readonly #byName = new Map<string, ToolOfAgent>()
  readonly #published = new PublishedNames()
  /** Made when a name is neither canonical nor published. */
  #aliases: ToolAliases | null = null

  /** Adds a tool; one of the same canonical name is replaced. */
  add(one: ToolOfAgent): void {
    const { name } = one.tool.definition
    this.#byName.set(name, one)
    this.#published.add(name)
    this.#aliases = null
  }

  /** All of them, in the order of their addition. */
  all(): readonly ToolOfAgent[] {
    return [...this.#byName.values()]
  }

  /** By canonical or published name. */
  get(name: string): ToolOfAgent | undefined {
    return this.#byName.get(this.#published.resolve(name) ?? '')
  }

  /** By any other name of one tool alone: see {@link ToolAliases}. */
  alias(name: string): ToolOfAgent | undefined {
    this.#aliases ??= new ToolAliases(
      this.all().map(({ tool: { definition, capability }, agent }) => ({ name: definition.name, capability, agent }))
    )
    return this.#byName.get(this.#aliases.resolve(name) ?? '')
  }
}
