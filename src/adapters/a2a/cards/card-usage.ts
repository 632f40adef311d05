import { FINAL_STATES } from '../../../domain/task/task.js'
import type { AgentDetail } from '../../../ports/node-api.js'
import type { TaskInfo, TaskList } from '../../../ports/task-api.js'
import type { CardExtension } from './card-subject.js'

/** URI of the extension whose params are the usage of an agent and the limits of the caller. */
export const USAGE_EXTENSION = 'urn:a2a-node:extension:usage:1'
/** Newest tasks that an extended card counts. */
export const USAGE_MAX_TASKS = 5000

/** Counts of tasks by state. */
export interface TaskCounts {
  readonly completed: number
  readonly failed: number
  readonly canceled: number
  readonly rejected: number
  /** Neither ended nor unknown. */
  readonly running: number
  /** Requested, outcome not known. */
  readonly unknown: number
}

/** Current limits of callers, e.g. `maxConnections`. */
export type CallerLimits = Readonly<Record<string, number>>

/**
 * Counts the tasks of an agent: for a local agent the tasks it executes, for a remote one the tasks that this node
 * requested.
 * null: the tasks of all local agents.
 */
export function countTasks(
  tasks: readonly TaskInfo[],
  agent: Pick<AgentDetail, 'address' | 'origin'> | null
): TaskCounts {
  const counts = { completed: 0, failed: 0, canceled: 0, rejected: 0, running: 0, unknown: 0 }
  // A request to a local agent has a task in both roles.
  const role = agent?.origin === 'remote' ? 'caller' : 'callee'
  for (const task of tasks) {
    if (task.role !== role || (agent !== null && task.agent !== agent.address)) continue
    if (task.state === 'unknown') counts.unknown++
    else if (FINAL_STATES.has(task.state)) counts[task.state as 'completed']++
    else counts.running++
  }
  return counts
}

/** The usage extension of an extended card, counted at the time of the call. */
export function usageExtension(
  { tasks, more }: TaskList,
  { agent, limits }: { readonly agent: AgentDetail | null; readonly limits: CallerLimits }
): CardExtension {
  const params = {
    ...(agent === null ? {} : { status: agent.status }),
    // The reason is for operators of the node only.
    ...(agent?.health === undefined ? {} : { health: agent.health.state, healthSince: agent.health.since }),
    tasks: countTasks(tasks, agent),
    counted: tasks.length,
    // Number of older tasks, which are not counted.
    left: more,
    limits
  }
  return { uri: USAGE_EXTENSION, description: 'How much this is used now, and what a caller may ask of it.', params }
}
