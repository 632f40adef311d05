import type { AgentTask } from '../../../ports/agent-runtime.js'

/** Context of one task of a `module` agent. */
export interface AgentContext {
  /** Aborted when the task is canceled or its time is over. A process still running it two seconds later is killed. */
  readonly signal: AbortSignal
  /** Reports progress: any JSON value, at most 64 KiB as text. Reports arrive in order, before the result. */
  progress(data: unknown): void
  /** The conversation of the client, as in the task; null for work of nobody at the A2A gateway. */
  readonly conversation: AgentTask['conversation'] | null
  /** Writes a line to the node's log, cut at 1,024 characters; callers that want log lines get it too. */
  log(message: string): void
  /**
   * Asks the person of the caller by a form: a JSON Schema of an object of plain values. Resolves with the content, or
   * null when the person declines. Rejects when nobody can be asked, and at the end of the task. At most 8 questions at
   * once, and 64 in a task.
   */
  ask(message: string, schema: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>> | null>
}

/**
 * The default export of a `module` agent.
 *
 * The module is loaded once, in its own process that stays up between tasks. `run` is called for each task, at most
 * `limits.concurrency` times at once. Its return value (or resolved value) is the result: a JSON value; `undefined`
 * becomes null, bytes become base64 text. A thrown error gives the failure's message. An uncaught error ends the
 * process; the next task starts a new one.
 */
export interface Agent {
  run(task: AgentTask, ctx: AgentContext): unknown
}
