import test from 'brittle'
import { createMemoryLedger } from '../support/memory-ledger.js'
import { SWARM_KEYS } from '../../src/domain/reliable/swarm-keys.js'
import { utf8 } from '../../src/kit/ids.js'
import { SwarmStore } from '../../src/node/swarms/store.js'
import { type RequestRecord, requestRecord } from '../../src/domain/reliable/records.js'
import type { LedgerChange } from '../../src/ports/ledger.js'
import { Simulation } from './simulation.js'
import { SwarmWitness } from './swarm-witness.js'
import { Witness } from './witness.js'
import { Trace } from './trace.js'
import { faultOf, traceOf } from './worlds.js'

test('the same seed gives the same world, byte for byte; another seed another one', async (t) => {
  for (const seed of [3, 77, 4711, 6000]) {
    const first = await traceOf(seed)
    t.ok(first.split('\n').length > 20)
    t.ok((await traceOf(seed)) === first, `world ${seed} is the same`)
    t.ok((await traceOf(seed + 1)) !== first, `world ${seed + 1} is another`)
  }
})

test('a witness says when a request runs twice at once or against its word, when an acknowledgement exceeds the disk, and when an end changes', (t) => {
  const witness = new Witness(new Trace(() => 0))
  const task = {
    taskId: 'task_1',
    requestId: 'req_1',
    attempt: 1,
    capability: 'slow.once',
    description: '',
    swarm: null,
    input: { ask: 1, mayRepeat: false }
  }
  witness.begins('a', task)
  witness.begins('a', task)
  witness.acknowledges('a', 'x@b>y@a', 1)
  const told = { id: 'task_1', role: 'caller', state: 'completed', result: 1 }
  witness.tells('b', told as Parameters<Witness['tells']>[1])
  witness.tells('b', { ...told, state: 'failed' } as Parameters<Witness['tells']>[1])
  t.alike(witness.faults, [
    'req_1 runs twice at once',
    'req_1 may not be repeated, and is',
    'a acknowledges 1 of x@b>y@a, and its disk has 0',
    'task task_1 at b was completed 1, and is failed null'
  ])
})

test('a witness reports a failed task of a callee that goes on, unless the record of its request has gone', (t) => {
  const witness = new Witness(new Trace(() => 0))
  const at = { source: 'x@a', target: 'y@b', createdAt: 1, updatedAt: 1, deadline: 10, expiresAt: 20, tries: 0 }
  const named = { requestId: 'req_1', attempt: 1, capability: 'c', description: '', swarm: null, taskId: 'task_1' }
  const rest = { correlationId: 'thr_1', isRepeatable: true, retryAt: null, error: null, asking: null }
  const record: RequestRecord = { role: 'callee', status: 'pending', ...at, ...named, ...rest }
  const tells = (state: 'failed' | 'submitted'): void => {
    witness.tells('b', { id: 'task_1', role: 'callee', state, result: null } as Parameters<Witness['tells']>[1])
  }
  witness.keeps('b', [{ key: 'request/one', value: requestRecord.encode(record) }])
  tells('failed')
  tells('submitted')
  t.alike(witness.faults, ['task task_1 at b was failed null, and is submitted null'])
  witness.keeps('b', [{ key: 'request/one', value: null }])
  tells('submitted')
  t.is(witness.faults.length, 1)
})

test('a witness of swarms says when an item is begun against its word, and when leases, outcomes, keys or ends are not what they were', (t) => {
  const faults: string[] = []
  const witness = new SwarmWitness({ fault: (what) => faults.push(what), calleeRecord: () => null })
  const book = new SwarmStore(createMemoryLedger(), (bytes) => bytes)
  const task = {
    taskId: 't',
    requestId: 'swarm_1.0',
    attempt: 1,
    capability: 'c',
    description: '',
    swarm: 'swarm_1',
    input: { ask: 1, mayRepeat: false }
  }
  const run = witness.begins('b', task)
  witness.killed('b')
  witness.begins('c', { ...task, attempt: 2 })
  witness.ends(run, { ok: true, result: 'late' })
  const lease = { index: 0, agent: 'x@b', attempt: 2, failures: 0, isRepeatable: false }
  const row = {
    item: 'i',
    agent: 'x@b',
    attempt: 2,
    status: 'completed',
    result: 1,
    error: null,
    durationMs: 0
  } as const
  const rowOf = (result: unknown): LedgerChange =>
    book.settled({ id: 'swarm_1' }, { index: 0, order: 1, holder: 'x@b', row: { ...row, result } })
  for (const change of [
    book.leased('swarm_1', lease),
    book.leased('swarm_1', { ...lease, attempt: 1 }),
    rowOf(1),
    rowOf(2)
  ])
    witness.keeps('a', change)
  for (const id of ['swarm_1', 'swarm_2']) witness.keeps('a', { key: SWARM_KEYS.key('k'), value: utf8(id) })
  const { durationMs: _ms, ...told } = row
  witness.tells('a', 'swarm_1', { type: 'item', ...told, result: 3 })
  t.alike(
    faults.map((one) => one.replace(/\{.*/, '')),
    [
      'swarm_1.0 may not be repeated, and is',
      'the leases of a swarm_1/0000000000000000 go back to 1',
      'no run of x@b gave the result of a swarm_1/0000000000000000',
      'the outcome of a swarm_1/0000000000000000 changes',
      'the idempotency key a swarm-key/k names another swarm',
      'of i of swarm_1 '
    ]
  )
})

test('a witness of swarms reports nodes that vote in one and report different outcomes of an item', (t) => {
  const faults: string[] = []
  const witness = new SwarmWitness({ fault: (what) => faults.push(what), calleeRecord: () => null })
  const book = new SwarmStore(createMemoryLedger(), (bytes) => bytes)
  const told = { item: 'i', agent: '-', attempt: 0, status: 'skipped', error: null } as const
  for (const [node, result] of Object.entries({ a: null, b: null, c: 'other' })) {
    witness.keeps(
      node,
      book.settled({ id: 'swarm_1' }, { index: 0, order: 1, holder: '', row: { ...told, result, durationMs: 0 } })
    )
    witness.tells(node, 'swarm_1', { type: 'item', ...told, result })
  }
  t.is(faults.length, 1)
  t.ok(/^of i of swarm_1 .* was accepted/.test(faults[0] ?? ''))
})

test('a world asks what it is made to ask', async (t) => {
  let [asked, launched] = [0, 0]
  for (let seed = 1; seed <= 30; seed++) {
    const world = await new Simulation(seed).run()
    asked += world.asked
    launched += world.launched
  }
  t.ok(asked > 60, `${asked} requests in 30 worlds`)
  t.ok(launched > 20, `${launched} launches in 30 worlds`)
})

test('a world in which a wall clock is put back by 42 minutes while a request has no outcome comes to its end', async (t) => {
  t.is(await faultOf(1735), null)
})
