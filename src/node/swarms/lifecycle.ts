import { shown } from '../../kit/text.js'
import type { Audit } from '../../ports/audit.js'
import type { NodeEvents } from '../observe/events.js'
import { recordedSwarmTask, swarmOutcome } from '../tasks/from-record.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { Eligibility } from './eligibility.js'
import type { SwarmObserver } from './finished-swarm.js'
import { coordinatorOf, type SwarmHere, type SwarmMemory } from './memory.js'
import type { SwarmHead } from './store.js'

/** Characters of the name of a caller in the audit log. */
const MAX_CALLER = 256

/** Dependencies of the lifecycle. */
export interface SwarmLifecycleDeps {
  readonly tasks: TaskTable
  readonly audit: Audit
  readonly events: NodeEvents
  readonly memory: Pick<SwarmMemory, 'evict' | 'running'>
  readonly eligibility: Pick<Eligibility, 'end'>
}

/** Reports swarms as tasks and events of this node, from launch to end. */
export class SwarmLifecycle implements SwarmObserver<SwarmHere> {
  readonly #deps: SwarmLifecycleDeps

  constructor(deps: SwarmLifecycleDeps) {
    this.#deps = deps
  }

  /** A swarm was launched here. */
  launched({ id, taskId, itemCount, request: { capability, goal } }: SwarmHead): void {
    const { tasks, events } = this.#deps
    tasks.open({ kind: 'swarm', role: 'caller', agent: capability, capability, description: goal }, taskId)
    tasks.working(taskId)
    events.add('swarm', 'a swarm was launched', { swarm: id, capability, items: itemCount })
  }

  /** A swarm resumes after a restart; only its launcher has a task for it. */
  resumed(head: SwarmHead): void {
    const { task, events } = recordedSwarmTask(head)
    if (head.taskId !== '') this.#deps.tasks.restore(task, events)
  }

  /** Shows which swarms wait for a person. */
  showApprovals(): void {
    const { tasks, memory } = this.#deps
    for (const swarm of memory.running()) {
      const { taskId } = swarm.head
      const awaitsApproval = coordinatorOf(swarm)?.awaitsApproval === true
      if (awaitsApproval) tasks.lost(taskId)
      else tasks.working(taskId)
      tasks.waitFor(taskId, awaitsApproval ? 'approval' : null)
    }
  }

  onStatus({ head }: SwarmHere, status: 'running' | 'stalled'): void {
    const text = status === 'stalled' ? 'a swarm has nobody who could go on' : 'a swarm goes on'
    this.#deps.events.add('swarm', text, { swarm: head.id })
  }

  onEnd(swarm: SwarmHere): void {
    const { tasks, events, memory, eligibility } = this.#deps
    const { id, taskId } = swarm.head
    eligibility.end(id)
    const { counts, status } = swarm.info()
    events.add('swarm', 'a swarm ended', { swarm: id, status, ...counts })
    this.#recordCancellation(swarm)
    const outcome = swarmOutcome({ status, counts, error: swarm.end?.error ?? null })
    if (outcome.type === 'result') tasks.complete(taskId, outcome.result)
    else tasks.fail(taskId, outcome.error)
    memory.evict()
  }

  /** On every node of the swarm. The caller is known to its node, and to all when that coordinated the swarm. */
  #recordCancellation({ head: { id }, end }: SwarmHere): void {
    const canceledBy = end?.canceledBy
    if (canceledBy === undefined) return
    const { node, caller } = canceledBy
    const reason = caller === null ? id : `${id} by ${shown(caller, MAX_CALLER)}`
    this.#deps.audit.append({ kind: 'control', code: 'swarm-canceled', reason, by: node, ref: `canceled ${id}` })
  }
}
