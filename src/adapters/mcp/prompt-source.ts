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
