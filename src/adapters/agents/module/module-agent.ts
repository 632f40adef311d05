import type { AgentTask } from '../../../ports/agent-runtime.js'

/** What the author of a `module` agent gets beside the task. */
export interface AgentContext {
  /** Aborted when the task is canceled or its time is over. Whoever has not ended two seconds later is killed. */
  readonly signal: AbortSignal
  /** Reports progress: any JSON value, at most 64 KiB as text. Reports arrive in order, before the result. */
  progress(data: unknown): void
  /** Writes a line to the node's log, cut at 1,024 characters. */
  log(message: string): void
}

/**
 * The default export of a `module` agent.
 *
 * The module is loaded once, in a process of its own that stays up between tasks; `run` is called for each task, at
 * most `limits.concurrency` times at once. What it returns (or resolves to) is the result: a JSON value, `undefined`
 * becomes null, bytes become base64 text. What it throws is the failure's message. An error nobody catches ends the
 * process; the next task starts a new one.
 */
export interface Agent {
  run(task: AgentTask, ctx: AgentContext): unknown
}
