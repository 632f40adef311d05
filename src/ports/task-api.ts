import type { ContextEntries, ContextExchange, ContextPlace } from '../domain/gateway/conversation-turns.js'
import type { ErrorBody } from '../kit/errors.js'
import type { TaskEvent, TaskState, WaitingFor } from '../domain/task/task.js'

/** `tasks` and `tasks show`. */
export interface TaskInfo {
  readonly id: string
  readonly kind: 'request' | 'swarm'
  readonly role: 'caller' | 'callee'
  /** `id@node name`; `*` for a swarm: `swarm show` lists the participants. */
  readonly agent: string
  readonly capability: string
  readonly state: TaskState
  readonly waitingFor: WaitingFor | null
  readonly attempt: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly result: unknown
  readonly error: ErrorBody | null
}

/** Parameters of `tasks`. */
export interface TaskQuery {
  /** Number of tasks at most, 1 to 5,000; absent: all. */
  readonly limit?: number
}

/** `tasks`: the newest first. */
export interface TaskList {
  readonly tasks: readonly TaskInfo[]
  /** How many older ones the limit leaves out. */
  readonly more: number
}

/** One thing that happened to a task; `at` is an ISO time. */
export type TaskEventInfo = TaskEvent extends infer E
  ? E extends TaskEvent
    ? Omit<E, 'at'> & { readonly at: string }
    : never
  : never

/** One message of a conversation. */
export interface ContextTurnInfo {
  /** ISO time. */
  readonly at: string
  readonly role: 'user' | 'agent'
  /** The client of the conversation: kind and id of its credential, such as `token tok_1` or `operator`. */
  readonly caller: string
  /** `id@node name` of its agent. */
  readonly agent: string
  /** null: an answer without a task. */
  readonly taskId: string | null
  /** Present state of the task; null: without a task, or the node has it no more. */
  readonly state: TaskState | null
  /** Texts, data as JSON, and names of files: at most 8,192 characters. */
  readonly text: string
}

/** `tasks --context`: a conversation, the oldest turn first. */
export interface ContextInfo {
  readonly id: string
  readonly turns: readonly ContextTurnInfo[]
  /** Are there older messages, or some in between, that are left out? */
  readonly more: boolean
}

/** Calls about conversations of all callers at this node: for its operator alone. */
export interface ContextCalls {
  /** The newest first, at most 200. @throws NodeError FORBIDDEN; CONFLICT when this node serves no A2A */
  'context.list': {
    params: Record<string, never>
    result: { readonly contexts: readonly { readonly id: string; readonly updatedAt: string }[] }
  }
  /**
   * By its id or a unique prefix.
   * @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED, and as above
   */
  'context.show': { params: { readonly id: string }; result: ContextInfo }
}

/** The conversations of all callers at this node. */
export interface ContextStore {
  /** Ids, with the time of the newest change: unix milliseconds. */
  contexts(): ReadonlyMap<string, number>
  /** The newest messages of a context with all callers and agents. @throws NodeError STORE_DAMAGED */
  all(contextId: string): Promise<ContextEntries>
  /** State of a task of the gateway; undefined for any other. */
  stateOf(taskId: string): TaskState | undefined
  /** A message was answered without a task. `isFirst`: it began the context. Resolves when it is durable. */
  answered(place: ContextPlace, exchange: ContextExchange, isFirst: boolean): Promise<void>
}
