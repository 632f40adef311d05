import test from 'brittle'
import type { RequestRecord } from '../../../src/domain/reliable/records.js'
import { swarmOutcome, taskFromRecord } from '../../../src/node/tasks/from-record.js'

const RECORD: RequestRecord = {
  role: 'caller',
  requestId: 'req_1',
  attempt: 1,
  source: 'operator@one',
  target: 'text@two',
  capability: 'upper',
  description: 'shout',
  swarm: null,
  correlationId: 'msg_1',
  taskId: 'task_1',
  status: 'pending',
  isRepeatable: true,
  tries: 0,
  createdAt: 100,
  updatedAt: 200,
  deadline: 900,
  retryAt: null,
  expiresAt: 900,
  error: null,
  asking: null
}

const ERROR = { code: 'TASK_FAILED', message: 'no', retryable: false, next: [] } as const

test('a record without a task gives none', (t) => {
  t.is(taskFromRecord({ ...RECORD, taskId: null }, null), null)
})

test('a task has the state of its record, from its creation to its last change', (t) => {
  const stateOf = (change: Partial<RequestRecord>, result: unknown = null): string | undefined =>
    taskFromRecord({ ...RECORD, ...change }, result)?.task.state
  t.is(stateOf({}), 'submitted')
  t.is(stateOf({ status: 'started', tries: 1 }), 'working')
  t.is(stateOf({ status: 'failed', error: ERROR }), 'failed')
  t.is(stateOf({ status: 'failed', error: { ...ERROR, code: 'CANCELED' } }), 'canceled')
  t.is(stateOf({ status: 'unknown', error: ERROR }), 'unknown')
  const done = taskFromRecord({ ...RECORD, status: 'completed', tries: 1 }, { text: 'HI' })
  t.alike(
    [done?.task.state, done?.task.result, done?.task.createdAt, done?.task.updatedAt],
    ['completed', { text: 'HI' }, 100, 200]
  )
  t.ok((done?.events.length ?? 0) >= 3, 'created, working, result')
})

test('a request that was never sent waits for its peer, one that was sent does not', (t) => {
  t.is(taskFromRecord(RECORD, null)?.task.waitingFor, 'peer')
  t.is(taskFromRecord({ ...RECORD, tries: 1 }, null)?.task.waitingFor, null)
})

test('each run that its node cut short makes a further attempt at the agent', (t) => {
  t.is(taskFromRecord({ ...RECORD, role: 'callee', status: 'started', tries: 3 }, null)?.task.attempt, 3)
  t.is(taskFromRecord({ ...RECORD, tries: 3, asking: { mayQueue: true, run: 2 } }, null)?.task.attempt, 2)
})

test('the task of a swarm ends with its result, or with its error or one that says how it ended', (t) => {
  const counts = {} as Parameters<typeof swarmOutcome>[0]['counts']
  t.alike(swarmOutcome({ status: 'partial', counts, error: null }), {
    type: 'result',
    result: { status: 'partial', counts }
  })
  const canceled = swarmOutcome({ status: 'canceled', counts, error: null })
  t.alike(canceled.type === 'error' && [canceled.state, canceled.error.code], ['canceled', 'CANCELED'])
  const failed = swarmOutcome({ status: 'failed', counts, error: ERROR })
  t.alike(failed.type === 'error' && [failed.state, failed.error], ['failed', ERROR])
})
