import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'

/** Where prompts come from: the files of agents. */
export interface PromptSource {
  /** In the order to show. */
  list(): readonly Prompt[] | Promise<readonly Prompt[]>
  /** undefined when there is none. @throws NodeError INVALID_INPUT for arguments that are missing. */
  get(name: string, args: Readonly<Record<string, string>>, signal: AbortSignal): Promise<GetPromptResult | undefined>
  /** Calls back when `list` gives something else; returns what ends it. */
  onChange?(changed: () => void): () => void
}

/** Several sources as one. Of two prompts with the same name the earlier source's counts. */
export function joinPrompts(sources: readonly PromptSource[]): PromptSource {
  return {
    list: async () => {
      const all = new Map<string, Prompt>()
      for (const source of sources) for (const one of await source.list()) if (!all.has(one.name)) all.set(one.name, one)
      return [...all.values()]
    },
    get: async (name, args, signal) => {
      for (const source of sources) {
        const prompt = await source.get(name, args, signal)
        if (prompt !== undefined) return prompt
      }
      return undefined
    },
    onChange: (changed) => {
      const ends = sources.map((source) => source.onChange?.(changed))
      return () => {
        for (const end of ends) end?.()
      }
    }
  }
}
