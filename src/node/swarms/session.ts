import type { FinalSwarmStatus, SwarmState } from '../../domain/swarm/machine.js'
import type { SwarmItemStatus } from '../../ports/swarm-api.js'
import type { SwarmRow } from './store.js'

/** Where a swarm stands, in the words of the specification. */
export type SwarmSessionStatus = 'recruiting' | 'active' | 'completing' | 'completed' | 'failed'

/** One piece of a swarm's work. */
export interface SwarmSubTask {
  /** `<swarm>.<index>`. */
  readonly id: string
  readonly description: string
  /** `agentId@nodeId` of who holds its lease, or held the last one; '' before the first. */
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
  /** `completing`: nothing waits any more, the last leases run. `failed`: it ended with a sub-task undone. */
  readonly status: SwarmSessionStatus
  /** The accepted results so far, by sub-task. */
  readonly sharedState: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** What a session is read from. */
export interface SessionDeps {
  readonly id: string
  readonly goal: string
  readonly capabilities: readonly string[]
  readonly names: readonly string[]
  readonly state: SwarmState
  /** How it ended, once that was told. */
  readonly end: FinalSwarmStatus | null
  readonly isRecruiting: boolean
  readonly participants: ReadonlySet<string>
  /** The outcomes that were told, by index of the item. */
  readonly rows: ReadonlyMap<number, SwarmRow>
  readonly createdAt: number
}

/** Name of a sub-task: that of its item's requests. */
export function subTaskId(swarmId: string, index: number): string {
  return `${swarmId}.${index}`
}

/** Index of a sub-task of this swarm; null for a foreign name. */
export function subTaskIndex(swarmId: string, id: string): number | null {
  const digits = id.startsWith(`${swarmId}.`) ? id.slice(swarmId.length + 1) : ''
  return /^\d{1,9}$/.test(digits) ? Number(digits) : null
}

/** The session of a swarm now; every word of it is read from the lease machine. */
export function sessionOf({
  id,
  goal,
  capabilities,
  names,
  state,
  end,
  isRecruiting,
  participants,
  rows,
  createdAt
}: SessionDeps): SwarmSession {
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
    taskDescription: goal,
    participants: [...participants],
    subTasks,
    status: end !== null ? (end === 'completed' ? 'completed' : 'failed') : statusOf(state, isRecruiting),
    sharedState: Object.fromEntries(completed.map((one) => [one.id, one.result])),
    createdAt
  }
}

/** An outcome counts once it is durable, and was told. What was not needed is nobody's work any more: its result is null. */
function rowStatus(status: SwarmItemStatus | undefined): 'completed' | 'failed' | undefined {
  if (status === 'skipped' || status === 'canceled') return 'completed'
  return status === 'unknown' ? 'failed' : status
}

function statusOf(state: SwarmState, isRecruiting: boolean): SwarmSessionStatus {
  if (isRecruiting) return 'recruiting'
  return state.items.some((item) => item.status === 'waiting' || item.status === 'blocked') ? 'active' : 'completing'
}
