import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { applyTask, createTask, foldTask, type TaskInput, type TaskParts } from '../../../src/domain/task/machine.js'
import { FINAL_STATES, type Task, type TaskEvent, type TaskState } from '../../../src/domain/task/task.js'
import { NodeError } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'

const PARTS: TaskParts = {
  id: 't1',
  kind: 'request',
  role: 'caller',
  agent: 'a@n',
  capability: 'text.stats',
  description: '',
  waitingFor: 'peer'
}
const ERROR = new NodeError('TASK_FAILED', 'it broke').toBody()
const STATES: readonly TaskState[] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'unknown'
]

const arbInput: fc.Arbitrary<TaskInput> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...STATES).map((state): TaskInput => ({ type: 'state', state })) },
  fc
    .constantFrom('peer' as const, 'slot' as const)
    .map((waitingFor): TaskInput => ({ type: 'state', state: 'submitted', waitingFor })),
  fc.nat({ max: 5 }).map((attempt): TaskInput => ({ type: 'attempt', attempt })),
  fc.jsonValue().map((data): TaskInput => ({ type: 'progress', data })),
  fc.jsonValue().map((result): TaskInput => ({ type: 'result', result })),
  fc
    .constantFrom('failed' as const, 'rejected' as const, 'canceled' as const)
    .map((state): TaskInput => ({ type: 'error', error: ERROR, state })),
  fc.constant<TaskInput>({ type: 'error', error: ERROR })
)

/** The state after moves that must all be legal. */
function at(...inputs: TaskInput[]): Task {
  return inputs.reduce((task, input) => {
    const step = applyTask(task, input, 2)
    assert.ok(step.ok, step.ok ? '' : step.reason)
    return step.task
  }, createTask(PARTS, 1).task)
}

function to(name: TaskState): TaskInput {
  return { type: 'state', state: name }
}

function mayMove(task: Task, next: TaskState): boolean {
  if (next === 'completed') return applyTask(task, { type: 'result', result: 1 }, 3).ok
  return applyTask(task, { type: 'state', state: next }, 3).ok
}

test('a new task is submitted, with the first event of its log', (t) => {
  const { task, event } = createTask(PARTS, 7)
  t.alike([task.state, task.waitingFor, task.generation, task.attempt, task.createdAt], ['submitted', 'peer', 1, 1, 7])
  t.alike(event, { generation: 1, at: 7, type: 'state', state: 'submitted', waitingFor: 'peer' })
})

test('generations rise by one, final states are never left, and the log folds to the task', async (t) => {
  await holds(
    t,
    fc.property(fc.array(arbInput, { maxLength: 40 }), (inputs) => {
      const first = createTask(PARTS, 0)
      let task = first.task
      const log: TaskEvent[] = []
      for (const [i, input] of inputs.entries()) {
        const before = task
        const step = applyTask(task, input, i)
        if (!step.ok) continue
        assert.equal(FINAL_STATES.has(before.state), false)
        assert.equal(step.event.generation, before.generation + 1)
        assert.equal(step.event.generation, step.task.generation)
        task = step.task
        log.push(step.event)
      }
      assert.deepEqual(log.reduce(foldTask, first.task), task)
      assert.equal(
        task.state === 'completed',
        log.some((event) => event.type === 'result')
      )
      assert.equal(
        task.error !== null,
        log.some((event) => event.type === 'error')
      )
    }),
    1000
  )
})

test('each state leads only where it may', (t) => {
  const working = at(to('working'))
  const from: Record<string, Task> = {
    submitted: at(),
    working,
    'input-required': at(to('working'), to('input-required')),
    'auth-required': at(to('working'), to('auth-required')),
    unknown: at(to('unknown'))
  }
  const legal: Record<string, readonly TaskState[]> = {
    submitted: ['working', 'failed', 'canceled', 'rejected', 'unknown'],
    working: ['submitted', 'input-required', 'auth-required', 'completed', 'failed', 'canceled', 'rejected', 'unknown'],
    'input-required': ['working', 'failed', 'canceled', 'unknown'],
    'auth-required': ['working', 'failed', 'canceled', 'rejected', 'unknown'],
    unknown: ['completed', 'failed']
  }
  for (const [name, task] of Object.entries(from)) {
    t.alike(
      STATES.filter((next) => next !== task.state && mayMove(task, next)),
      [...(legal[name] ?? [])].sort((a, b) => STATES.indexOf(a) - STATES.indexOf(b)),
      name
    )
  }
})

test('a result completes the task and an error ends it as it says', (t) => {
  const completed = at(to('working'), { type: 'result', result: { ok: 1 } })
  t.alike([completed.state, completed.result, completed.error], ['completed', { ok: 1 }, null])
  const failed = at({ type: 'error', error: ERROR })
  t.alike([failed.state, failed.error], ['failed', ERROR])
  t.is(at({ type: 'error', error: ERROR, state: 'rejected' }).state, 'rejected')
  t.is(at(to('unknown'), { type: 'result', result: 1 }).state, 'completed', 'a late answer')
})

test('attempts rise and progress is reported only while working', (t) => {
  t.is(at({ type: 'attempt', attempt: 2 }).attempt, 2)
  t.is(applyTask(at(), { type: 'attempt', attempt: 1 }, 3).ok, false)
  t.is(applyTask(at(), { type: 'progress', data: 1 }, 3).ok, false)
  t.is(applyTask(at(to('working')), { type: 'progress', data: 1 }, 3).ok, true)
})

test('the reason why a submitted task waits may change, a repeat of it is refused', (t) => {
  const waiting = at({ type: 'state', state: 'submitted', waitingFor: 'slot' })
  t.is(waiting.waitingFor, 'slot')
  t.is(applyTask(waiting, { type: 'state', state: 'submitted', waitingFor: 'slot' }, 3).ok, false)
  t.is(at(to('working')).waitingFor, null)
})
