import test from 'brittle'
import { nextTickAt } from '../../../src/domain/swarm/machine.js'
import { leases, ofType, Swarm, failWith } from './machine-swarm.js'

test('an item is not leased before the time that its failure asks for, to nobody; then it is', (t) => {
  const swarm = new Swarm({ names: ['one', 'two'] })
  swarm.join('a')
  swarm.join('b')
  t.alike(ofType(failWith(swarm, { data: { retryAfter: 7 } }), 'retry')[0]?.afterMs, 7000)
  t.is(nextTickAt(swarm.state, 6), 1000, 'the lease of the other item comes first')
  swarm.ok(1, 1, 'b', 10)
  t.alike(leases(swarm.join('c', 1, 20)), [], 'one who comes does not get it either')
  t.is(nextTickAt(swarm.state, 20), 7005)
  t.alike(leases(swarm.do({ type: 'tick' }, 7004)), [])
  t.is(leases(swarm.do({ type: 'tick' }, 7005)).length, 1)
})

test('an item that rests beyond the deadline ends at once, with the text of its agent', (t) => {
  const swarm = new Swarm({ deadlineAt: 5000 })
  swarm.join('a')
  t.is(ofType(failWith(swarm, { data: { retryAfter: 7 } }), 'item')[0]?.error?.message, 'it broke')
})

test('a full agent that names a time gets nothing before; another one gets its item at once, and no retry is spent', (t) => {
  const swarm = new Swarm({ retries: 0, deadlineAt: 60_000 })
  swarm.join('a')
  // Longer than the swarm: that is no reason to end what others can do.
  const full = failWith(swarm, { code: 'OVERLOADED', retryable: true, data: { retryAfter: 90 } })
  t.alike(full, [{ type: 'release', index: 0, agent: 'a', attempt: 1, reason: 'busy' }])
  t.alike(leases(swarm.do({ type: 'tick' }, 50_000)), [])
  t.alike(leases(swarm.join('b', 1, 50_001)), ['0:b#2'])
})

test('a pinned item whose agent goes while it rests is given up when the agent stays away', (t) => {
  const swarm = new Swarm({ items: [{ name: 'one', pinnedTo: 'a' }] })
  swarm.join('a')
  failWith(swarm, { data: { retryAfter: 7 } })
  swarm.do({ type: 'gone', agents: ['a'], reason: 'its node is gone' }, 10)
  t.alike(swarm.do({ type: 'tick' }, 7005), [])
  t.is(ofType(swarm.do({ type: 'tick' }, 9005), 'item')[0]?.error?.code, 'PEER_OFFLINE')
  const back = new Swarm({ items: [{ name: 'one', pinnedTo: 'a' }] })
  back.join('a')
  failWith(back, { data: { retryAfter: 7 } })
  t.alike(leases(back.do({ type: 'tick' }, 7005)), ['0:a#2'])
})

test('an item that rests ends as every item does: dropped, canceled or past the deadline', (t) => {
  for (const input of [
    { type: 'drop', from: 0, count: 1, status: 'canceled', reason: 'won' },
    { type: 'tick' },
    { type: 'cancel' }
  ] as const) {
    const swarm = new Swarm({ deadlineAt: 8000 })
    swarm.join('a')
    failWith(swarm, { data: { retryAfter: 7 } })
    t.is(ofType(swarm.do(input, 8000), 'done').length, 1)
    t.alike(leases(swarm.do({ type: 'tick' }, 9000)), [])
  }
})
