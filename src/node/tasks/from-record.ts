import { applyTask, createTask } from '../../domain/task/machine.js'
import type { TaskInput } from '../../domain/task/machine.js'
import { endStateOf } from '../../domain/task/stated.js'
import type { Task, TaskEvent } from '../../domain/task/task.js'
import type { RequestRecord } from '../../domain/reliable/records.js'
import { NodeError } from '../../kit/errors.js'
import type { SwarmInfo } from '../../ports/swarm-api.js'
import type { SwarmEnd, SwarmHead } from '../swarms/store.js'

/** A task and its events, as far as the ledger has them. */
export interface RecordedTask {
  readonly task: Task
  readonly events: readonly TaskEvent[]
}

/**
 * The task of a request on record; null when it has none. Its events are only the beginning and the last change.
 * `result`: the result, when it is still kept.
 */
export function taskFromRecord(record: RequestRecord, result: unknown): RecordedTask | null {
  const { taskId, role, target: agent, capability, description, createdAt, updatedAt } = record
  const attempt = attemptOf(record)
  if (taskId === null) return null
  const opening = { id: taskId, kind: 'request', role, agent, capability: capability ?? '', description } as const
  const { task, event } = createTask(opening, createdAt)
  const events = [event]
  let now: Task = task
  for (const input of [...(attempt > 1 ? [{ type: 'attempt', attempt } as const] : []), ...inputsOf(record, result)]) {
    const step = applyTask(now, input, updatedAt)
    if (!step.ok) continue
    now = step.task
    events.push(step.event)
  }
  return { task: now, events }
}

/** The attempt number at the agent: each run after one that ended with its node is a further attempt. */
function attemptOf({ role, attempt, tries, asking }: RequestRecord): number {
  return role === 'callee' ? attempt + Math.max(0, tries - 1) : (asking?.run ?? attempt)
}

function inputsOf({ status, error, role, tries }: RequestRecord, result: unknown): TaskInput[] {
  const working: TaskInput = { type: 'state', state: 'working' }
  switch (status) {
    case 'pending':
      return role === 'caller' && tries === 0 ? [{ type: 'state', state: 'submitted', waitingFor: 'peer' }] : []
    case 'started':
      return [working]
    case 'completed':
      return [working, { type: 'result', result }]
    case 'failed':
    case 'unknown':
      return error === null
        ? []
        : [{ type: 'error', error, state: status === 'unknown' ? 'unknown' : endStateOf(error) }]
  }
}

/** The task of a swarm on record. */
export function recordedSwarmTask({ taskId: id, request, createdAt, end }: SwarmHead): RecordedTask {
  const { capability, goal } = request
  const begun = createTask(
    { id, kind: 'swarm', role: 'caller', agent: capability, capability, description: goal },
    createdAt
  )
  const events = [begun.event]
  let { task } = begun
  const endedAt = createdAt + (end?.durationMs ?? 0)
  for (const input of [{ type: 'state', state: 'working' } as const, ...(end === null ? [] : [swarmOutcome(end)])]) {
    const step = applyTask(task, input, input.type === 'state' ? createdAt : endedAt)
    if (!step.ok) continue
    task = step.task
    events.push(step.event)
  }
  return { task, events }
}

/** The input that ends the task of a swarm with this end. */
export function swarmOutcome({
  status,
  counts,
  error
}: Pick<SwarmEnd, 'counts' | 'error'> & Pick<SwarmInfo, 'status'>): Extract<TaskInput, { type: 'result' | 'error' }> {
  if (status === 'completed' || status === 'partial') return { type: 'result', result: { status, counts } }
  const isCanceled = status === 'canceled'
  const own = new NodeError(isCanceled ? 'CANCELED' : 'TASK_FAILED', `the swarm ended ${status}`).toBody()
  return { type: 'error', error: error ?? own, state: isCanceled ? 'canceled' : 'failed' }
}
