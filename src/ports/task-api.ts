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
