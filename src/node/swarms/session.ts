import type { FinalSwarmStatus, SwarmState } from '../../domain/swarm/machine.js'
import type { SwarmItemStatus } from '../../ports/swarm-api.js'
import type { SwarmHead, SwarmRow } from './store.js'

/** Status of a swarm in the terms of the specification. */
export type SwarmSessionStatus = 'recruiting' | 'active' | 'completing' | 'completed' | 'failed'

/** One item of a swarm's work. */
export interface SwarmSubTask {
  /** `<swarm>.<index>`. */
  readonly id: string
  readonly description: string
  /** `agentId@nodeId` of the holder of its lease, or of the last one; '' before the first lease. */
  readonly assignedAgent: string
  readonly requiredCapabilities: readonly string[]
  readonly status: 'pending' | 'running' | 'completed' | 'failed'
  readonly result?: unknown
}

/** A swarm as its launcher's ledger has it (spec a2a-mcp-mesh, SwarmSession). */
export interface SwarmSession {
  readonly id: string
  readonly taskDescription: string
  /** `agentId@nodeId` of every agent that got a lease. */
  readonly participants: readonly string[]
  readonly subTasks: readonly SwarmSubTask[]
  /** `completing`: no item waits any more, the last leases run. `failed`: it ended with a sub-task undone. */
  readonly status: SwarmSessionStatus
  /** The accepted results so far, by sub-task. */
  readonly sharedState: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** The data from which a session is built. */
export interface SessionDeps {
  readonly head: Pick<SwarmHead, 'id' | 'request' | 'capabilities' | 'createdAt'>
  readonly names: readonly string[]
  readonly state: SwarmState
  /** Its end, once reported. */
  readonly end: FinalSwarmStatus | null
  readonly isRecruiting: boolean
  readonly participants: ReadonlySet<string>
  /** The reported outcomes, by index of the item. */
  readonly rows: ReadonlyMap<number, SwarmRow>
}

/** Name of a sub-task, as used for its item's requests. */
export function subTaskId(swarmId: string, index: number): string {
  return `${swarmId}.${index}`
}

/** Index of a sub-task of this swarm; null for a foreign name. */
export function subTaskIndex(swarmId: string, id: string): number | null {
  const digits = id.startsWith(`${swarmId}.`) ? id.slice(swarmId.length + 1) : ''
  return /^\d{1,9}$/.test(digits) ? Number(digits) : null
}

/** The current session of a swarm, read from the lease machine. */
export function sessionOf({ head, names, state, end, isRecruiting, participants, rows }: SessionDeps): SwarmSession {
  const { id, request, capabilities, createdAt } = head
  const subTasks = state.items.map((item, index): SwarmSubTask => {
    const base: SwarmSubTask = {
      id: subTaskId(id, index),
      description: names[index] ?? item.name,
      assignedAgent: item.agent,
      requiredCapabilities: capabilities,
      status: rowStatus(rows.get(index)?.row.status) ?? (item.status === 'waiting' ? 'pending' : 'running')
    }
    return base.status === 'completed' ? { ...base, result: rows.get(index)?.row.result } : base
  })
  const completed = subTasks.filter((_one, index) => rows.get(index)?.row.status === 'completed')
  return {
    id,
    taskDescription: request.goal,
    participants: [...participants],
    subTasks,
    status: end !== null ? (end === 'completed' ? 'completed' : 'failed') : statusOf(state, isRecruiting),
    sharedState: Object.fromEntries(completed.map((one) => [one.id, one.result])),
    createdAt
  }
}

/**
 * An outcome counts once it is durable and reported. An item that was not needed counts as completed: its result is
 * null.
 */
function rowStatus(status: SwarmItemStatus | undefined): 'completed' | 'failed' | undefined {
  if (status === 'skipped' || status === 'canceled') return 'completed'
  return status === 'unknown' ? 'failed' : status
}

function statusOf(state: SwarmState, isRecruiting: boolean): SwarmSessionStatus {
  if (isRecruiting) return 'recruiting'
  return state.items.some((item) => item.status === 'waiting' || item.status === 'blocked') ? 'active' : 'completing'
}
