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
   * Calls a tool as the agent that the toolbox is for. @returns JSON
   * @throws NodeError CAPABILITY_NOT_FOUND, INVALID_INPUT, and what the call was refused or failed with
   */
  call(name: string, args: unknown, signal: AbortSignalLike): Promise<unknown>
}

/** What the agents of a node may call, each by its own tier and sandbox. */
export interface AgentTools {
  /** Those that the rules of this node let the agent call now; its own are not among them. @throws NodeError what looking is refused or fails with. */
  open(agentId: string, choice: AgentToolChoice, signal: AbortSignalLike): Promise<AgentToolbox>
}
