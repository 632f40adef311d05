import type { AbortSignalLike } from '../kit/clock.js'

/** A capability of the mesh as a language model may call it. */
export interface AgentTool {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, unique in its toolbox. */
  readonly name: string
  readonly description: string
  /** JSON Schema whose root is an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** Which capabilities an agent wants as tools. */
export interface AgentToolChoice {
  /** Globs of ids of capabilities or of names of tools (`*` any text); none: no tool. */
  readonly globs: readonly string[]
  readonly max: number
  /** Milliseconds that one call may take. */
  readonly timeoutMs: number
}

/** The tools of one run. */
export interface AgentToolbox {
  readonly tools: readonly AgentTool[]
  /** Tools that fit as well, and found no room. */
  readonly left: number
  /**
   * Calls a tool on behalf of the agent of the toolbox.
   * @returns JSON
   * @throws NodeError CAPABILITY_NOT_FOUND, INVALID_INPUT, and the error of the call
   */
  call(name: string, args: unknown, signal: AbortSignalLike): Promise<unknown>
}

/** Tools for the agents of a node, each with its own tier and sandbox. */
export interface AgentTools {
  /**
   * The tools that the rules of this node let the agent call now, without the agent's own.
   * @throws NodeError the error of the look-up
   */
  open(agentId: string, choice: AgentToolChoice, signal: AbortSignalLike): Promise<AgentToolbox>
}

/** A request in plain words, and the tools that may do it. */
export interface ToolQuestion {
  readonly prompt: string
  readonly tools: readonly AgentTool[]
}

/** A call of a tool as a model wants it: not checked, it may name any tool. */
export interface WantedCall {
  readonly name: string
  /** An object; empty when `fault` gives its fault. */
  readonly args: Readonly<Record<string, unknown>>
  readonly fault: string | null
}

/** The calls that a model wants, or the reason why it was not asked or did not answer. */
export type ToolChoice =
  | {
      readonly ok: true
      readonly calls: readonly WantedCall[]
      /** Number of tools that the question had too many: the model did not see them. */
      readonly left: number
    }
  | {
      readonly ok: false
      readonly reason: string
      /** Seconds after which the same may succeed; null: unknown. */
      readonly retryAfter: number | null
    }

/** Lets a language model choose a tool for a request. */
export interface ToolChooser {
  /** Asks once, within a budget of tokens and of time. Never rejects; an abort ends it soon. */
  choose(question: ToolQuestion, signal: AbortSignalLike): Promise<ToolChoice>
}
