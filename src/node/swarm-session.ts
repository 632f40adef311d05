import type { SwarmState } from '../domain/swarm/machine.js'

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
export interface SessionParts {
  readonly id: string
  readonly goal: string
  readonly capabilities: readonly string[]
  readonly names: readonly string[]
  readonly state: SwarmState
  readonly isRecruiting: boolean
  readonly participants: ReadonlySet<string>
  /** Accepted results by index of the item. */
  readonly results: ReadonlyMap<number, unknown>
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

const SUB_TASK_STATUS = { waiting: 'pending', leased: 'running', completed: 'completed', failed: 'failed' } as const

/** The session of a swarm now; every word of it is read from the lease machine. */
export function sessionOf({
  id,
  goal,
  capabilities,
  names,
  state,
  isRecruiting,
  participants,
  results,
  createdAt
}: SessionParts): SwarmSession {
  const subTasks = state.items.map((item, index): SwarmSubTask => {
    const base = {
      id: subTaskId(id, index),
      description: names[index] ?? item.name,
      assignedAgent: item.agent,
      requiredCapabilities: capabilities,
      status: SUB_TASK_STATUS[item.status]
    }
    return results.has(index) ? { ...base, result: results.get(index) } : base
  })
  const completed = subTasks.filter((one) => one.status === 'completed')
  return {
    id,
    taskDescription: goal,
    participants: [...participants],
    subTasks,
    status: statusOf(state, isRecruiting),
    sharedState: Object.fromEntries(completed.map((one) => [one.id, one.result])),
    createdAt
  }
}

function statusOf(state: SwarmState, isRecruiting: boolean): SwarmSessionStatus {
  if (state.status !== 'running') return state.status === 'completed' ? 'completed' : 'failed'
  if (isRecruiting) return 'recruiting'
  return state.items.some((item) => item.status === 'waiting') ? 'active' : 'completing'
}
