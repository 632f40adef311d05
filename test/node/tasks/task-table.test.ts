import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { TaskEvent } from '../../../src/domain/task/task.js'
import { NodeError } from '../../../src/kit/errors.js'
import { sizeOf } from '../../../src/kit/size.js'
import { TaskTable, type TaskOpening } from '../../../src/node/tasks/task-table.js'
import { countingIds } from '../../support/counting-ids.js'
import { ManualClock } from '../../support/manual-clock.js'

const opening: TaskOpening = { kind: 'request', role: 'caller', agent: 'a@b', capability: 'a.do', description: '' }
const error = new NodeError('TASK_FAILED', 'no').toBody()

function table(): { tasks: TaskTable; lines: string[]; clock: ManualClock } {
  const clock = new ManualClock()
  const lines: string[] = []
  const telemetry = new MemoryTelemetry({ clock, level: 'debug', format: 'text', write: (line) => lines.push(line) })
  return { tasks: new TaskTable({ clock, ids: countingIds(), telemetry }), lines, clock }
}

const MIB = 1024 * 1024
/** Bytes that tasks may hold: 32 MiB of contents, and a little for the events themselves. */
const MOST_BYTES = 34 * MIB

/** Of everything that can be read of the tasks. */
function bytesOf(tasks: TaskTable): number {
  return tasks
    .list()
    .reduce(
      (sum, task) =>
        sum + sizeOf(task.description) + tasks.events(task.id).reduce((all, event) => all + sizeOf(event), 0),
      0
    )
}

test('a task goes from submitted over working to its end, each step an event', (t) => {
  const { tasks } = table()
  const changes: string[] = []
  tasks.onChange((task) => changes.push(task.state))
  const id = tasks.open(opening)
  tasks.waitFor(id, 'slot')
  tasks.working(id)
  tasks.working(id)
  tasks.progress(id, 1)
  tasks.complete(id, 'result')
  tasks.complete(id, 'another')
  t.is(tasks.get(id)?.result, 'result')
  t.alike(changes, ['submitted', 'submitted', 'working', 'working', 'completed'])
  t.alike(
    tasks.events(id).map((event) => event.generation),
    [1, 2, 3, 4, 5]
  )
})

test('a canceled task is canceled, another failure failed; unknown may still end', (t) => {
  const { tasks } = table()
  const [canceled, failed, late] = [tasks.open(opening), tasks.open(opening), tasks.open(opening)]
  tasks.fail(canceled, new NodeError('CANCELED', 'enough').toBody())
  tasks.fail(failed, error)
  tasks.unknown(late, error)
  t.is(tasks.get(late)?.state, 'unknown')
  tasks.complete(late, 1)
  t.alike(
    [canceled, failed, late].map((id) => tasks.get(id)?.state),
    ['canceled', 'failed', 'completed']
  )
})

test('the reason why a task waits is noted once, and an ended task does not wait', (t) => {
  const { tasks, lines } = table()
  const id = tasks.open(opening)
  for (let i = 0; i < 5; i++) tasks.waitFor(id, 'peer')
  tasks.waitFor(id, null)
  tasks.waitFor(id, null)
  t.is(tasks.events(id).length, 3)
  tasks.fail(id, error)
  tasks.waitFor(id, 'peer')
  t.is(tasks.get(id)?.waitingFor, null)
  t.alike(lines, [])
})

test('of many progress reports the first event and the newest stay', (t) => {
  const { tasks } = table()
  const id = tasks.open(opening)
  for (let i = 0; i < 1000; i++) tasks.progress(id, i)
  const events = tasks.events(id)
  t.is(events.length, 200)
  t.is(events[0]?.type, 'state')
  t.alike(events.at(-1)?.type === 'progress' ? events.at(-1) : null, {
    generation: 1002,
    at: 1_700_000_000_000,
    type: 'progress',
    data: 999
  })
})

test('of large reports few stay, of huge ones none, and live tasks together take bounded memory', (t) => {
  const { tasks } = table()
  const report = 'x'.repeat(60 * 1024)
  const id = tasks.open(opening)
  for (let i = 0; i < 50; i++) tasks.progress(id, `${i} ${report}`)
  const kept = tasks.events(id).flatMap((event) => (event.type === 'progress' ? [String(event.data).slice(0, 2)] : []))
  t.alike(kept, ['46', '47', '48', '49'])
  const quiet = tasks.open(opening)
  tasks.progress(quiet, 'x'.repeat(64 * 1024))
  t.is(tasks.get(quiet)?.state, 'working')
  t.is(tasks.events(quiet).length, 2, 'that it works is known, its report is not kept')
  const many = Array.from({ length: 1000 }, () => tasks.open(opening))
  for (const one of many) for (let i = 0; i < 4; i++) tasks.progress(one, report)
  t.ok(bytesOf(tasks) <= MOST_BYTES, `${bytesOf(tasks)} bytes`)
  t.is(tasks.list().length, 1002, 'no live task is forgotten')
  t.is(tasks.events(many.at(-1) ?? '').at(-1)?.generation, 6, 'the last event of the last change is there')
})

test('results, errors and descriptions of tasks that have ended take bounded memory', (t) => {
  const { tasks } = table()
  const big = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 200; i++) tasks.fail(tasks.open(opening), { ...error, data: big + i })
  t.ok(bytesOf(tasks) <= MOST_BYTES)
  for (let i = 0; i < 200; i++) tasks.complete(tasks.open(opening), big + i)
  t.ok(bytesOf(tasks) <= MOST_BYTES)
  for (let i = 0; i < 200; i++) tasks.unknown(tasks.open({ ...opening, description: big + i }), error)
  t.ok(bytesOf(tasks) <= MOST_BYTES)
})

test('finished tasks are forgotten, oldest first, when there are too many; live ones never', (t) => {
  const { tasks } = table()
  const live = tasks.open(opening)
  const first = tasks.open(opening)
  tasks.complete(first, null)
  for (let i = 0; i < 5000; i++) tasks.complete(tasks.open(opening), null)
  const kept = tasks.list().length
  t.ok(kept <= 5000 && kept >= 4900)
  t.is(tasks.get(first), undefined)
  t.ok(tasks.get(live))
})

test('results take bounded memory: the oldest go first, never the one that has just come', (t) => {
  const { tasks } = table()
  const big = 'x'.repeat(12 * MIB)
  const ids = [1, 2, 3, 4].map(() => {
    const id = tasks.open(opening)
    tasks.complete(id, big)
    return id
  })
  t.alike(
    ids.map((id) => tasks.get(id) !== undefined),
    [false, false, true, true]
  )
  const huge = tasks.open(opening)
  tasks.complete(huge, 'x'.repeat(50 * MIB))
  t.ok(tasks.get(huge))
})

test('tasks for other nodes hold 16 MiB, and displace no task of the node itself', (t) => {
  const { tasks } = table()
  const own = tasks.open(opening)
  tasks.complete(own, 'x'.repeat(12 * MIB))
  for (let i = 0; i < 100; i++) tasks.complete(tasks.open({ ...opening, role: 'callee' }), 'x'.repeat(MIB))
  t.ok(tasks.get(own), 'the older task of the node itself is still there')
  t.is(tasks.list().length - 1, 14)
  // A character above U+00FF holds two bytes.
  for (let i = 0; i < 100; i++) tasks.complete(tasks.open({ ...opening, role: 'callee' }), '\u0416'.repeat(MIB))
  t.is(tasks.list().length - 1, 7)
})

test('a follower of a task gets each change of that task, and of no other, until it stops', (t) => {
  const { tasks } = table()
  const [one, other] = [tasks.open(opening), tasks.open(opening)]
  const states: string[] = []
  const stop = tasks.follow(one, ({ id, state }) => states.push(`${id === one ? 'one' : 'other'} ${state}`))
  const failing = tasks.follow(one, () => {
    throw new Error('a listener fails')
  })
  tasks.working(other)
  tasks.working(one)
  failing()
  tasks.progress(one, 'half')
  tasks.complete(other, 1)
  stop()
  stop()
  tasks.complete(one, 1)
  t.alike(states, ['one working', 'one working'])
  const again: string[] = []
  tasks.follow(other, ({ state }) => again.push(state))
  tasks.fail(other, new NodeError('TIMEOUT', 'late').toBody())
  t.alike(again, [], 'a task that has ended does not change')
})

test('tasks are listed newest first', (t) => {
  const { tasks } = table()
  const ids = [tasks.open(opening), tasks.open(opening)]
  t.alike(
    tasks.list().map((task) => task.id),
    [...ids].reverse()
  )
})

test('the record of work that began at once has the events that were reported while they happened', (t) => {
  const { tasks, clock } = table()
  const told = new Map<string, readonly TaskEvent[]>()
  tasks.onChange(({ id }) => told.set(id, [...tasks.events(id)]))
  const [done, failed, reported, waited] = [1, 2, 3, 4].map(() => tasks.open({ ...opening, state: 'working' }))
  clock.advance(7)
  tasks.complete(done ?? '', { text: 'result' })
  tasks.fail(failed ?? '', error)
  tasks.progress(reported ?? '', 1)
  tasks.complete(reported ?? '', null)
  tasks.waitFor(waited ?? '', 'approval')
  tasks.complete(waited ?? '', null)
  for (const [id, events] of told) t.alike(tasks.events(id), events, tasks.get(id)?.state)
  t.alike(
    tasks.events(done ?? '').map(({ generation, at }) => [generation, at]),
    [
      [1, clock.now() - 7],
      [2, clock.now()]
    ]
  )
  tasks.complete(done ?? '', 'late')
  t.is(tasks.events(done ?? '').length, 2)
})
