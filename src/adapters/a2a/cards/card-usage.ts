import { FINAL_STATES } from '../../../domain/task/task.js'
import type { AgentDetail } from '../../../ports/node-api.js'
import type { TaskInfo, TaskList } from '../../../ports/task-api.js'
import type { CardExtension } from './card-subject.js'

/** URI of the extension whose params say how much an agent is used, and how much it may be. */
export const USAGE_EXTENSION = 'urn:a2a-node:extension:usage:1'
/** Tasks that are counted for an extended card: the newest ones. */
export const USAGE_MAX_TASKS = 5000

/** What became of tasks. */
export interface TaskCounts {
  readonly completed: number
  readonly failed: number
  readonly canceled: number
  readonly rejected: number
  /** Neither ended nor unknown. */
  readonly running: number
  /** Asked, and no outcome learned yet. */
  readonly unknown: number
}

/** Limits of callers, e.g. `maxConnections`, as they are in force. */
export type CallerLimits = Readonly<Record<string, number>>

/**
 * Counts tasks: of an agent here those that it does, of one elsewhere those that this node asked of it, and with null those
 * that all agents here do.
 */
export function countTasks(tasks: readonly TaskInfo[], agent: Pick<AgentDetail, 'address' | 'origin'> | null): TaskCounts {
  const counts = { completed: 0, failed: 0, canceled: 0, rejected: 0, running: 0, unknown: 0 }
  // What this node asks of its own agent is a task at both ends.
  const role = agent?.origin === 'remote' ? 'caller' : 'callee'
  for (const task of tasks) {
    if (task.role !== role || (agent !== null && task.agent !== agent.address)) continue
    if (task.state === 'unknown') counts.unknown++
    else if (FINAL_STATES.has(task.state)) counts[task.state as 'completed']++
    else counts.running++
  }
  return counts
}

/** What an extended card says beyond the public one. All of it is counted now. */
export function usageExtension(
  { tasks, more }: TaskList,
  { agent, limits }: { readonly agent: AgentDetail | null; readonly limits: CallerLimits }
): CardExtension {
  const params = {
    ...(agent === null ? {} : { status: agent.status }),
    // Why is for people at the node.
    ...(agent?.health === undefined ? {} : { health: agent.health.state, healthSince: agent.health.since }),
    tasks: countTasks(tasks, agent),
    counted: tasks.length,
    // Older ones, which are not counted.
    left: more,
    limits
  }
  return { uri: USAGE_EXTENSION, description: 'How much this is used now, and what a caller may ask of it.', params }
}
