import type { AgentTools } from '../../../ports/agent-tools.js'
import type { TokenDays } from './daily-usage.js'

/** Tools that a model is offered. */
export const MAX_TOOLS = 64

/** A server that speaks the protocol of OpenAI's chat completions. */
export interface LlmProvider {
  /** Base address, below which is `/chat/completions`. */
  readonly url: string
  /** Model of agents that name none; null: they have to. */
  readonly model: string | null
  /** null: none is sent. */
  readonly apiKey: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds that it may say nothing, before its answer and within it. */
  readonly stallTimeoutMs: number
}

/** The part of the standard `fetch` that is used. */
export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

/** Dependencies of all language model agents of one node. */
export interface LlmDeps {
  /**
   * The provider of that name, with its secrets; null: the config has none.
   * @throws NodeError CONFIG_INVALID when a variable is not set.
   */
  provider(name: string): LlmProvider | null | Promise<LlmProvider | null>
  /** Capabilities of the mesh; null: there is no mesh. */
  readonly tools: AgentTools | null
  /** Tokens that each agent used today; kept when the agent's file changes. */
  readonly days: TokenDays
  readonly fetch: Fetch
}

/** A language model that is asked turn by turn; the text of the file is its system prompt. */
export interface LlmSpec {
  readonly type: 'llm'
  /** Name of a provider of the config. */
  readonly provider: string
  /** null: the model of the provider. */
  readonly model: string | null
  /** Globs of capabilities of the mesh that it may call. */
  readonly tools: readonly string[]
  /** Questions to the model in one run. */
  readonly maxTurns: number
  /** Tokens of one answer of the model. */
  readonly maxTokens: number
  /** Tokens of one run, and of all runs of the agent in one day (UTC), questions and answers together. */
  readonly budget: { readonly run: number; readonly day: number }
}
