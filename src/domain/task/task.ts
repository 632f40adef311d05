import type { ErrorBody } from '../../kit/errors.js'

/** The A2A 1.0 states plus `unknown` (asked, but no outcome learned). */
export type TaskState =
  | 'submitted'
  | 'working'
  | 'input-required'
  | 'auth-required'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected'
  | 'unknown'

/**
 * The obstacle of a task: no path to its node, no free slot of its agent, no decision of a person, or no
 * acknowledgement of its node.
 */
export type WaitingFor = 'peer' | 'slot' | 'approval' | 'ack'

/** States that a task never leaves. `unknown` may still become completed or failed by a late answer. */
export const FINAL_STATES: ReadonlySet<TaskState> = new Set(['completed', 'failed', 'canceled', 'rejected'])

/** One thing that happened to a task. `generation` rises by one with each. */
export type TaskEvent =
  | {
      readonly generation: number
      readonly at: number
      readonly type: 'state'
      readonly state: TaskState
      readonly waitingFor?: WaitingFor
    }
  | { readonly generation: number; readonly at: number; readonly type: 'attempt'; readonly attempt: number }
  | { readonly generation: number; readonly at: number; readonly type: 'progress'; readonly data: unknown }
  | { readonly generation: number; readonly at: number; readonly type: 'result'; readonly result: unknown }
  /** The end without a result: `state` says how, `failed` when absent. */
  | {
      readonly generation: number
      readonly at: number
      readonly type: 'error'
      readonly error: ErrorBody
      readonly state?: 'failed' | 'rejected' | 'canceled' | 'unknown'
    }

/** A piece of work, asked of an agent here or elsewhere: the one task model of CLI, swarms, MCP and A2A. */
export interface Task {
  readonly id: string
  readonly kind: 'request' | 'swarm'
  /** `caller`: this node asked. `callee`: an agent of this node does it. */
  readonly role: 'caller' | 'callee'
  /** `agentId@nodeId` of its agent; for a swarm the capability's id. */
  readonly agent: string
  readonly capability: string
  readonly description: string
  readonly state: TaskState
  readonly waitingFor: WaitingFor | null
  readonly attempt: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly result: unknown
  readonly error: ErrorBody | null
  /** The last generation of its events. */
  readonly generation: number
}
