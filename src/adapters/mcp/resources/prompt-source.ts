import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import type { ClientAsk, ClientSide } from '../tools/client-ask.js'
import type { Complete } from './completing.js'

/** Context of filling in a prompt, beside its arguments. */
export interface PromptContext {
  readonly signal: AbortSignal
  readonly client: ClientSide
}

/** Where prompts come from: the files of agents. */
export interface PromptSource {
  /** In the order to show. */
  list(): readonly Prompt[] | Promise<readonly Prompt[]>
  /**
   * undefined when there is none; the client may be asked something first.
   * @throws NodeError INVALID_INPUT for arguments that are missing.
   */
  get(
    name: string,
    args: Readonly<Record<string, string>>,
    context: PromptContext
  ): Promise<GetPromptResult | ClientAsk | undefined>
  /** Values for the arguments of a prompt. */
  readonly complete?: Complete
  /** Calls back when `list` changes; returns the function that ends it. */
  onChange?(changed: () => void): () => void
}
