import test from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import {
  isNotDone,
  isOfOneCopy,
  hasNoRecord,
  lateMs,
  leftMs,
  outcomeOf,
  readReply,
  requestPayload
} from '../../../../src/node/requests/caller/request-codec.js'
import type { Answer, Asking, RequestMaking } from '../../../../src/node/requests/caller/request-codec.js'
import type { EnvelopeHeader } from '../../../../src/domain/envelope/codec.js'
import { MAX_TTL_MS, requestPayloadSchema } from '../../../../src/domain/task/payloads.js'
import { actor } from '../../../support/membership.js'

const [here, peer] = [actor('here').id, actor('peer').id]
const asking: Asking = {
  sender: { agentId: 'operator', nodeId: here },
  target: { agentId: 'echo', nodeId: peer },
  capability: 'echo.say',
  input: 'hello',
  description: 'say it',
  timeoutMs: 5000,
  mayQueue: false
}
const names = { requestId: 'req_1', attempt: 1, correlationId: 'thr_1', taskId: 'task_1' }
const sent = { isQuery: false, isAgain: false, isUnrecorded: false, input: 'hello' }

function header(type: EnvelopeHeader['type']): EnvelopeHeader {
  return {
    id: 'msg_1',
    schemaVersion: 1,
    timestamp: 0,
    sender: `echo@${peer}`,
    recipient: `operator@${here}`,
    correlationId: 'thr_1',
    type
  }
}

test('the times of a request are whole milliseconds that any node takes', (t) => {
  for (const [ms, expected] of [
    [-5, 1],
    [0.2, 1],
    [1500.6, 1501],
    [Number.POSITIVE_INFINITY, MAX_TTL_MS]
  ] as const) {
    const payload = requestPayload(asking, names, { ...sent, timeoutMs: ms, ttlMs: ms })
    t.alike([payload.timeoutMs, payload.ttlMs], [expected, expected])
    t.ok(requestPayloadSchema.safeParse(payload).success, `${ms} ms`)
  }
})

test('the lease of a swarm states its epoch and the earlier requester, as far as known', (t) => {
  const lease = { swarm: 'swarm_1', requestId: 'swarm_1.0', attempt: 3, isQuery: true, changes: () => [] }
  const times = { ...sent, timeoutMs: 1, ttlMs: 1 }
  const plain = requestPayload({ ...asking, lease }, names, times)
  t.is(plain.swarm, 'swarm_1')
  for (const field of ['epoch', 'askedBy', 'voters', 'amongVoters']) t.absent(field in plain)
  const full = requestPayload(
    { ...asking, lease: { ...lease, epoch: 2, askedBy: asking.sender, amongVoters: [here, peer] } },
    names,
    times
  )
  t.alike([full.epoch, full.askedBy, full.amongVoters], [2, `operator@${here}`, [here, peer]])
})

test('a reply counts when it is of the request and its attempt', (t) => {
  const read = (type: EnvelopeHeader['type'], payload: unknown): unknown =>
    readReply(header(type), payload, { names, peer })
  const done = { requestId: 'req_1', attempt: 1, outcome: 'COMPLETED', result: 'hello', error: null }
  t.alike(read('response', done), { outcome: 'COMPLETED', result: 'hello' })
  t.alike(read('response', { ...done, run: 2 }), { outcome: 'COMPLETED', result: 'hello', run: 2 })
  t.is(read('response', { ...done, requestId: 'req_2' }), null)
  t.is(read('response', { ...done, attempt: 2 }), null)
  t.is(read('response', 'nonsense'), null)
  t.alike(read('stream-data', { requestId: 'req_1', attempt: 1, progress: 7 }), { progress: 7 })
  t.is(read('error', { code: 'no such code' }), null)
  t.is(read('task-accept', done), null)
  const refused = read('error', new NodeError('OVERLOADED', 'no room').toBody())
  t.is((refused as Extract<Answer, { outcome: 'FAILED' }>).error.code, 'OVERLOADED')
})

test('only a peer that has forgotten a request, or a neighbour on the way, speaks of one copy', (t) => {
  const failed = (code: 'PEER_OFFLINE' | 'TASK_FAILED' | 'TIER_VIOLATION', data?: unknown): Answer => ({
    outcome: 'FAILED',
    error: { ...new NodeError(code, 'why').toBody(), ...(data === undefined ? {} : { data }) }
  })
  t.alike([isNotDone(failed('PEER_OFFLINE')), isOfOneCopy(failed('PEER_OFFLINE'))], [true, true])
  t.alike([isNotDone(failed('TASK_FAILED')), isOfOneCopy(failed('TASK_FAILED'))], [false, false])
  t.alike(
    [isNotDone(failed('TIER_VIOLATION', { via: peer })), isOfOneCopy(failed('TIER_VIOLATION', { via: peer }))],
    [false, true]
  )
  t.absent(isOfOneCopy({ outcome: 'COMPLETED', result: null }))
})

test('an outcome that its peer does not know is not asked for again', (t) => {
  const error = new NodeError('TIMEOUT', 'no trace').toBody()
  t.alike(outcomeOf({ outcome: 'UNKNOWN', error }), { status: 'unknown', error, retryAt: null })
  t.alike(outcomeOf({ outcome: 'COMPLETED', result: 1, run: 2 }), { status: 'completed', result: 1, run: 2 })
  t.alike(outcomeOf({ outcome: 'FAILED', error }), { status: 'failed', error })
})

test('a request is waited for until its deadline, and no longer than it was given when the clock was put back', (t) => {
  const making = (deadline: number, expiresAt: number): RequestMaking =>
    ({ asking, names, record: { current: { deadline, expiresAt } } }) as unknown as RequestMaking
  t.is(leftMs(making(10_000, 20_000), 7000), 3000)
  t.is(leftMs(making(10_000, 20_000), 0), 5000, 'the clock was put back')
  t.is(leftMs(making(10_000, 20_000), 11_000), 0)
  t.is(lateMs(making(10_000, 20_000), 11_000), 9000)
  t.is(lateMs(making(10_000, 20_000), 21_000), 0)
  const lease = { asking, names, record: null }
  t.is(leftMs(lease, 7000), 5000)
  t.is(lateMs(lease, 7000), 3_600_000)
  t.ok(hasNoRecord(lease))
  t.absent(hasNoRecord(making(1, 1)))
})
