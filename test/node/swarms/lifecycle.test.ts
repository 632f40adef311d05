import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeEvents } from '../../../src/node/observe/events.js'
import { SwarmLifecycle } from '../../../src/node/swarms/lifecycle.js'
import type { SwarmHere } from '../../../src/node/swarms/memory.js'
import type { SwarmHead } from '../../../src/node/swarms/store.js'
import { TaskTable } from '../../../src/node/tasks/task-table.js'
import { countingIds } from '../../support/counting-ids.js'
import { FakeAudit } from '../../support/fake-node.js'
import { ManualClock } from '../../support/manual-clock.js'

const head = {
  id: 'swarm_1',
  taskId: 'task_1',
  itemCount: 2,
  request: { goal: 'count', capability: 'work.do', strategy: 'map' },
  createdAt: 0,
  end: null
} as unknown as SwarmHead

interface FakeSwarm {
  readonly head: SwarmHead
  readonly status: string
  awaitsApproval: boolean
}

function scene(): {
  lifecycle: SwarmLifecycle
  tasks: TaskTable
  audit: FakeAudit
  events: NodeEvents
  /** Swarms that run. */
  running: FakeSwarm[]
  /** Calls at the end of a swarm. */
  calls: string[]
  swarm(status?: string): FakeSwarm & SwarmHere
} {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const tasks = new TaskTable({ clock, ids: countingIds(), telemetry })
  const events = new NodeEvents(clock, telemetry)
  const running: FakeSwarm[] = []
  const calls: string[] = []
  const memory = { running: () => running as unknown as SwarmHere[], evict: () => calls.push('evict') }
  const audit = new FakeAudit()
  const lifecycle = new SwarmLifecycle({
    tasks,
    audit,
    events,
    memory,
    eligibility: { end: (id) => void calls.push(`end ${id}`) }
  })
  const swarm = (status = 'running'): FakeSwarm & SwarmHere =>
    ({
      ...{ head, status, awaitsApproval: false, end: null },
      info: () => ({ status, counts: { total: 2, completed: 2, failed: 0 } })
    }) as unknown as FakeSwarm & SwarmHere
  return { lifecycle, tasks, audit, events, running, calls, swarm }
}

test('a launch opens a task and adds an event', (t) => {
  const { lifecycle, tasks, events } = scene()
  lifecycle.launched(head)
  t.is(tasks.get('task_1')?.state, 'working')
  t.alike(events.recent()[0]?.data, { swarm: 'swarm_1', capability: 'work.do', items: 2 })
})

test('after a restart only the launcher has the task of a swarm', (t) => {
  const { lifecycle, tasks } = scene()
  lifecycle.resumed({ ...head, taskId: '' })
  t.is(tasks.list().length, 0)
  lifecycle.resumed(head)
  t.is(tasks.get('task_1')?.state, 'working')
})

test('the task shows whether the swarm waits for the approval of a person', (t) => {
  const { lifecycle, tasks, running, swarm } = scene()
  lifecycle.launched(head)
  const one = swarm()
  running.push(one)
  one.awaitsApproval = true
  lifecycle.showApprovals()
  t.alike([tasks.get('task_1')?.state, tasks.get('task_1')?.waitingFor], ['submitted', 'approval'])
  one.awaitsApproval = false
  lifecycle.showApprovals()
  t.alike([tasks.get('task_1')?.state, tasks.get('task_1')?.waitingFor], ['working', null])
})

test('the end of a swarm ends its task, and old swarms are dropped for new ones', (t) => {
  for (const [status, state] of [
    ['completed', 'completed'],
    ['partial', 'completed'],
    ['failed', 'failed'],
    ['canceled', 'canceled']
  ] as const) {
    const { lifecycle, tasks, events, calls, swarm } = scene()
    lifecycle.launched(head)
    lifecycle.onEnd(swarm(status))
    t.is(tasks.get('task_1')?.state, state)
    t.alike(calls, ['end swarm_1', 'evict'])
    t.alike(events.recent().at(-1)?.data, { swarm: 'swarm_1', status, total: 2, completed: 2, failed: 0 })
  }
})

test('a swarm that stalls, and one that goes on, is an event', (t) => {
  const { lifecycle, events, swarm } = scene()
  lifecycle.onStatus(swarm(), 'stalled')
  lifecycle.onStatus(swarm(), 'running')
  t.alike(
    events.recent().map(({ message }) => message),
    ['a swarm has nobody who could go on', 'a swarm goes on']
  )
})

test('the end of a canceled swarm is one control line of the audit log with node and caller; other ends are none', (t) => {
  const { lifecycle, audit, swarm } = scene()
  lifecycle.onEnd(swarm('completed'))
  t.alike(audit.all, [])
  const canceledBy = { node: 'n1', caller: 'token ci\u001b[31m', at: 5 }
  lifecycle.onEnd({ ...swarm('canceled'), end: { canceledBy, error: null } } as unknown as SwarmHere)
  const { id } = head
  t.alike(audit.all, [
    { kind: 'control', code: 'swarm-canceled', reason: `${id} by token ci[31m`, by: 'n1', ref: `canceled ${id}` }
  ])
})
