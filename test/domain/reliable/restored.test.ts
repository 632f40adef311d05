import test from 'brittle'
import fc from 'fast-check'
import { KEYS } from '../../../src/domain/reliable/keys.js'
import { type RequestRecord, requestRecord } from '../../../src/domain/reliable/records.js'
import { recover } from '../../../src/domain/reliable/request.js'
import { decodePayload, encodePayload } from '../../../src/domain/envelope/codec.js'
import { restoredValue } from '../../../src/domain/reliable/restored.js'
import { holds } from '../../support/holds.js'

const RECORD: RequestRecord = {
  role: 'callee',
  requestId: 'r',
  attempt: 0,
  source: 'a@x',
  target: 'b@y',
  capability: null,
  description: '',
  swarm: null,
  correlationId: 'c',
  taskId: 't',
  status: 'pending',
  isRepeatable: false,
  tries: 0,
  createdAt: 1,
  updatedAt: 1,
  deadline: 2,
  retryAt: null,
  expiresAt: 3,
  error: null,
  asking: null
}

function restored(record: RequestRecord): RequestRecord {
  return requestRecord.decode(restoredValue(KEYS.request('name'), requestRecord.encode(record)))
}

test('a request of another that had not begun ends as unknown in a restored ledger, unless it may be repeated', (t) => {
  const after = restored(RECORD)
  t.is(recover({ ...after, runs: after.tries, cuts: 0 }), 'unknown')
  t.is(recover({ ...RECORD, runs: 0, cuts: 0 }), 'run', 'where nothing was restored it runs')
  t.alike(restored({ ...RECORD, isRepeatable: true }), { ...RECORD, isRepeatable: true })
})

test('own requests, begun or ended ones, and entries that are no requests stay unchanged', (t) => {
  for (const change of [
    { role: 'caller' },
    { status: 'started' },
    { status: 'completed' },
    { status: 'failed' },
    { status: 'unknown' }
  ] as const) {
    t.alike(restored({ ...RECORD, ...change }), { ...RECORD, ...change })
  }
  const bytes = requestRecord.encode(RECORD)
  for (const key of [KEYS.input('name'), KEYS.result('name'), KEYS.open(1, 'name'), KEYS.sender('a>b')])
    t.is(restoredValue(key, bytes), bytes)
})

test('a restored ledger has lost its name: its peers must not take it for the one that it was', (t) => {
  t.is(restoredValue(KEYS.ledger, new Uint8Array([108, 49])).byteLength, 0)
})

test('restoring never throws, for any content of a ledger', async (t) => {
  await holds(
    t,
    fc.property(
      fc.string(),
      fc.uint8Array({ maxLength: 200 }),
      (name, bytes) => restoredValue(KEYS.request(name), bytes).length >= 0
    ),
    300
  )
})

test('a swarm that had not ended is marked as restored; one that had is as it was', (t) => {
  const open = encodePayload({ version: 1, head: { id: 'swarm_1', end: null } })
  const ended = encodePayload({ version: 1, head: { id: 'swarm_1', end: { status: 'completed' } } })
  t.alike(decodePayload(restoredValue('swarm/swarm_1', open)), {
    ok: true,
    value: { version: 1, head: { id: 'swarm_1', end: null, isRestored: true } }
  })
  for (const value of [ended, new Uint8Array([9])]) t.alike(restoredValue('swarm/swarm_1', value), value)
  t.alike(restoredValue('swarm-item/swarm_1/0', open), open)
})
