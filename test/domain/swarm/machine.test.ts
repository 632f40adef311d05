import assert from 'node:assert/strict'
import test from 'brittle'
import {
  counts,
  liveLease,
  nextTickAt,
  swarmStatus,
  type SwarmEffect,
  type SwarmParts
} from '../../../src/domain/swarm/machine.js'
import { NodeError } from '../../../src/kit/errors.js'
import { ERROR, leases, ofType, Swarm, failWith } from './machine-swarm.js'

test('an item is leased, its result accepted, and the swarm completes', (t) => {
  const swarm = new Swarm()
  t.alike(swarm.join('a'), [{ type: 'lease', index: 0, agent: 'a', attempt: 1 }])
  t.alike(swarm.ok(0, 1, 'a', 40), [
    {
      type: 'item',
      index: 0,
      agent: 'a',
      attempt: 1,
      status: 'completed',
      result: 'fine',
      error: null,
      durationMs: 40
    },
    { type: 'done', status: 'completed', counts: { total: 1, completed: 1, failed: 0 } }
  ])
  t.alike(swarm.ok(0, 1, 'a'), [], 'nothing follows done')
})

test('an agent without the right to an item is not asked for it again; another is, and without another it has failed', (t) => {
  const refuse = (swarm: Swarm, attempt: number, agent: string): readonly SwarmEffect[] =>
    swarm.do(
      { type: 'result', index: 0, attempt, agent, outcome: { ok: false, error: ERROR, isRefusal: true } },
      attempt
    )
  const alone = new Swarm({ retries: 9 })
  alone.join('a')
  t.alike(
    ofType(refuse(alone, 1, 'a'), 'item').map(({ status, attempt }) => [status, attempt]),
    [['failed', 1]]
  )
  const two = new Swarm({ retries: 9 })
  two.join('a')
  two.join('b')
  t.alike(leases(refuse(two, 1, 'a')), ['0:b#2'])
  t.alike(leases(two.fail(0, 2, 'b', 3)), ['0:b#3'], 'b again, though a is free')
  t.is(ofType(refuse(two, 3, 'b'), 'done').length, 1)
  const away = new Swarm({ retries: 9 })
  away.join('a')
  away.join('b', 1)
  refuse(away, 1, 'a')
  away.do({ type: 'gone', agents: ['b'], reason: 'lost' }, 3)
  t.alike(leases(away.do({ type: 'tick' }, 50_000)), [], 'it waits for one that may')
  t.alike(leases(away.join('b', 1, 50_001)), ['0:b#3'])
  const pinned = new Swarm({ items: [{ name: 'one', pinnedTo: 'a' }], retries: 9 })
  pinned.join('a')
  pinned.join('b')
  t.is(ofType(refuse(pinned, 1, 'a'), 'done').length, 1, 'an exclusive question ends')
})

test('leases go to the agent with most free slots, then to the one that waited longest', (t) => {
  const swarm = new Swarm({ names: Array.from({ length: 12 }, (_, i) => `${i}`), maxParallel: 1 })
  swarm.join('a', 2)
  swarm.join('b', 2)
  swarm.join('c', 3)
  const order = ['a']
  for (let index = 0; index < 6; index++) {
    const next = ofType(swarm.ok(index, 1, order.at(-1) as string), 'lease')[0]
    order.push(next?.agent ?? '')
  }
  t.alike(order, ['a', 'c', 'c', 'c', 'c', 'c', 'c'], 'with one lease at a time c has always most free')
  const wide = new Swarm({ names: Array.from({ length: 12 }, (_, i) => `${i}`), maxParallel: 0 })
  t.is(leases(wide.join('a', 3)).length, 1, 'at least one lease at a time')
  const even = new Swarm({ names: ['1', '2', '3', '4', '5', '6'], maxParallel: 1 })
  even.join('a')
  even.join('b')
  t.alike(leases(even.ok(0, 1, 'a')), ['1:b#1'])
  t.alike(leases(even.ok(1, 1, 'b')), ['2:a#1'])
})

test('free slots fill at once, spread over the agents, up to maxParallel', (t) => {
  const swarm = new Swarm({ names: ['1', '2', '3', '4', '5', '6'], maxParallel: 4 })
  t.alike(leases(swarm.join('a', 2)), ['0:a#1', '1:a#1'])
  t.alike(leases(swarm.join('b', 5)), ['2:b#1', '3:b#1'])
})

test('the agents of a node get four leases, and one more with each result, for any claims', (t) => {
  const swarm = new Swarm({ names: Array.from({ length: 60 }, (_, i) => `${i}`), maxParallel: 100 })
  const agents = [
    { agent: 'x@mal', slots: 1024 },
    { agent: 'y@mal', slots: 1024 },
    { agent: 'h@good', slots: 6 }
  ]
  const first = leases(swarm.do({ type: 'recruited', agents }))
  t.is(first.filter((one) => one.includes('@mal')).length, 4)
  const mine = first.filter((one) => one.includes('h@good')).map((one) => Number(one.split(':')[0]))
  t.is(mine.length, 4)
  const more = mine.map((index) => leases(swarm.ok(index, 1, 'h@good')).length)
  t.alike(more, [2, 2, 1, 1], 'the place that is free and one more, never more than its places')
  t.is(leases(swarm.do({ type: 'recruited', agents: [{ agent: 'z@mal', slots: 1024 }] })).length, 0)
})

test('an item that takes far longer than others goes to a proven agent that is idle; only the new result counts', (t) => {
  const swarm = new Swarm({ names: ['held', 'quick', 'quick too'] })
  for (const agent of ['m@mal', 'h@good', 'i@idle']) swarm.join(agent)
  const beat = (attempt: number, now: number): readonly SwarmEffect[] =>
    swarm.do({ type: 'heartbeat', leases: [{ index: 0, attempt }] }, now)
  swarm.ok(1, 1, 'h@good', 100)
  swarm.ok(2, 1, 'i@idle', 100)
  for (let now = 500; now < 12_000; now += 500) assert.deepEqual(beat(1, now), [])
  t.is(nextTickAt(swarm.state, 11_900), 12_000)
  t.alike(beat(1, 12_000), [
    { type: 'release', index: 0, agent: 'm@mal', attempt: 1, reason: 'others are far faster' },
    { type: 'lease', index: 0, agent: 'h@good', attempt: 2 }
  ])
  t.alike(swarm.ok(0, 1, 'm@mal', 12_001), [])
  for (let now = 12_500; now < 36_000; now += 500)
    assert.deepEqual(beat(2, now), [], 'the next one is given twice as long')
  t.alike(leases(beat(2, 36_000)), ['0:i@idle#3'])
  for (let now = 36_500; now < 99_000; now += 500)
    assert.deepEqual(beat(3, now), [], 'nobody is left that was not found slow')
  t.is(ofType(swarm.ok(0, 3, 'i@idle', 99_000), 'done')[0]?.status, 'completed')
})

test('nothing is taken from an agent while nobody has shown to be faster, nor a pinned item ever', (t) => {
  const unknown = new Swarm({ names: ['held', 'held too'] })
  for (const agent of ['m@mal', 'h@good', 'i@idle']) unknown.join(agent)
  const both = [0, 1].map((index) => ({ index, attempt: 1 }))
  for (let now = 500; now <= 90_000; now += 500)
    assert.deepEqual(unknown.do({ type: 'heartbeat', leases: both }, now), [])
  const pinned = new Swarm({ items: [{ name: 'pinned', pinnedTo: 'm@mal' }, { name: 'quick' }] })
  for (const agent of ['m@mal', 'h@good']) pinned.join(agent)
  pinned.ok(1, 1, 'h@good', 100)
  for (let now = 500; now <= 90_000; now += 500) {
    assert.deepEqual(pinned.do({ type: 'heartbeat', leases: [{ index: 0, attempt: 1 }] }, now), [])
  }
  t.ok(liveLease(pinned.state, { index: 0, attempt: 1, agent: 'm@mal' }))
})

test('a failed run is tried again by another agent, and only as often as allowed', (t) => {
  const swarm = new Swarm({ retries: 1, names: ['1', '2'] })
  swarm.join('a', 1)
  swarm.join('b', 1)
  t.alike(
    swarm.fail(0, 1, 'a', 5),
    [{ type: 'retry', index: 0, agent: 'a', attempt: 1, error: ERROR, afterMs: 0 }],
    'a is free, but b may soon be'
  )
  t.alike(leases(swarm.ok(1, 1, 'b', 6)), ['0:b#2'])
  const last = swarm.fail(0, 2, 'b', 7)
  t.alike(
    ofType(last, 'item').map((item) => [item.status, item.error]),
    [['failed', ERROR]]
  )
  t.is(ofType(last, 'done')[0]?.status, 'partial')
})

test('a failed run goes back to the only agent at once, and to a tried one when the others stay busy for a lease', (t) => {
  const alone = new Swarm()
  alone.join('a')
  t.alike(leases(alone.fail(0, 1, 'a')), ['0:a#2'])
  const two = new Swarm({ names: ['1', '2'] })
  two.join('a')
  two.join('b')
  t.alike(leases(two.fail(0, 1, 'a', 1)), [])
  two.do({ type: 'heartbeat', leases: [{ index: 1, attempt: 1 }] }, 900)
  t.is(nextTickAt(two.state, 900), 1001)
  t.alike(leases(two.do({ type: 'tick' }, 1001)), ['0:a#2'])
})

test('only the live attempt of the agent that holds it brings a result', (t) => {
  const swarm = new Swarm()
  swarm.join('a')
  t.alike(swarm.ok(0, 2, 'a'), [])
  t.alike(swarm.ok(0, 1, 'b'), [])
  t.alike(swarm.ok(7, 1, 'a'), [])
  swarm.do({ type: 'gone', agents: ['a'], reason: 'link lost' }, 1)
  t.alike(swarm.ok(0, 1, 'a', 2), [], 'the lease was given back')
  t.alike(leases(swarm.join('a', 1, 3)), ['0:a#2'])
  t.alike(swarm.ok(0, 1, 'a', 4), [], 'the late result of the first attempt')
  t.is(ofType(swarm.ok(0, 2, 'a', 5), 'item').length, 1)
})

test('leases of a lost link go to others at once and cost no retry', (t) => {
  const swarm = new Swarm({ retries: 0 })
  swarm.join('a')
  swarm.join('b', 0)
  swarm.join('c')
  for (let round = 1; round <= 3; round++) {
    const holder = round % 2 === 1 ? 'a' : 'c'
    const next = round % 2 === 1 ? 'c' : 'a'
    const effects = swarm.do({ type: 'gone', agents: [holder], reason: 'link lost' }, round)
    t.alike(effects, [
      { type: 'release', index: 0, agent: holder, attempt: round, reason: 'link lost' },
      { type: 'lease', index: 0, agent: next, attempt: round + 1 }
    ])
    swarm.join(holder, 1, round)
  }
})

test('a lease without a heartbeat goes back, one with heartbeats stays', (t) => {
  const swarm = new Swarm({ names: ['1', '2'] })
  swarm.join('a', 2)
  swarm.do(
    {
      type: 'heartbeat',
      leases: [
        { index: 0, attempt: 1 },
        { index: 1, attempt: 9 }
      ]
    },
    600
  )
  t.is(nextTickAt(swarm.state, 600), 1000)
  t.alike(
    ofType(swarm.do({ type: 'tick' }, 1000), 'release').map((one) => one.index),
    [1]
  )
  t.ok(liveLease(swarm.state, { index: 0, attempt: 1, agent: 'a' }) !== null)
  t.is(liveLease(swarm.state, { index: 0, attempt: 1, agent: 'b' }), null)
  t.alike(
    ofType(swarm.do({ type: 'tick' }, 1600), 'release').map((one) => one.index),
    [0]
  )
})

test('a busy agent gets its next lease after a rest that grows, and no retry is counted', (t) => {
  const swarm = new Swarm({ retries: 0 })
  swarm.join('a')
  let now = 0
  for (const [i, rest] of [250, 500, 1000, 2000, 4000, 5000, 5000].entries()) {
    const effects = swarm.do({ type: 'busy', index: 0, attempt: i + 1, agent: 'a' }, now)
    t.alike(effects, [{ type: 'release', index: 0, agent: 'a', attempt: i + 1, reason: 'busy' }])
    t.is((nextTickAt(swarm.state, now) as number) <= now + rest, true)
    t.alike(leases(swarm.do({ type: 'tick' }, now + rest - 1)), [])
    now += rest
    t.alike(leases(swarm.do({ type: 'tick' }, now)), [`0:a#${i + 2}`])
  }
})

test('a pinned item waits for its agent and for nobody else', (t) => {
  const swarm = new Swarm({ items: [{ name: 'on b', pinnedTo: 'b' }, { name: 'any' }] })
  t.alike(leases(swarm.join('a', 5)), ['1:a#1'])
  t.alike(leases(swarm.join('b')), ['0:b#1'])
})

test('a pinned item fails with PEER_OFFLINE when its agent stays away for two leases, not when it comes back', (t) => {
  const swarm = new Swarm({ items: [{ name: 'on a', pinnedTo: 'a' }] })
  swarm.join('a')
  swarm.do({ type: 'gone', agents: ['a'], reason: 'link lost' }, 100)
  t.alike(swarm.do({ type: 'tick' }, 2099), [])
  t.alike(leases(swarm.join('a', 1, 2099)), ['0:a#2'])
  swarm.do({ type: 'gone', agents: ['a'], reason: 'link lost' }, 3000)
  t.is(nextTickAt(swarm.state, 3000), 5000)
  const effects = swarm.do({ type: 'tick' }, 5000)
  t.alike(
    ofType(effects, 'item').map((item) => [item.agent, item.error?.code]),
    [['a', 'PEER_OFFLINE']]
  )
  t.is(ofType(effects, 'done')[0]?.status, 'failed')
})

test('when an agent leaves for good its leases go to others and its pinned items fail at once with the reason', (t) => {
  const swarm = new Swarm({
    items: [{ name: 'on a', pinnedTo: 'a' }, { name: 'any' }, { name: 'on b', pinnedTo: 'b' }]
  })
  swarm.join('a', 2)
  const effects = swarm.do({ type: 'left', agent: 'a', reason: 'revoked' }, 1)
  t.alike(
    ofType(effects, 'release').map((one) => [one.index, one.reason]),
    [
      [0, 'revoked'],
      [1, 'revoked']
    ]
  )
  t.alike(
    ofType(effects, 'item').map((item) => [item.index, item.error?.code]),
    [[0, 'PEER_OFFLINE']]
  )
  const error = new NodeError('TIER_VIOLATION', 'may not').toBody()
  t.alike(
    ofType(swarm.do({ type: 'left', agent: 'b', reason: 'declined', error }, 2), 'item').map(
      (item) => item.error?.code
    ),
    ['TIER_VIOLATION']
  )
  t.is(swarmStatus(swarm.state), 'stalled')
  t.alike(leases(swarm.join('c', 1, 3)), ['1:c#2'])
  t.is(swarmStatus(swarm.state), 'running')
})

test('at the deadline what is unfinished fails with TIMEOUT and every lease is released', (t) => {
  const swarm = new Swarm({ names: ['1', '2', '3'], maxParallel: 2 })
  swarm.join('a', 2)
  swarm.ok(0, 1, 'a')
  const effects = swarm.ok(1, 1, 'a', 100_000)
  t.alike(
    ofType(effects, 'release').map((one) => one.reason),
    ['deadline', 'deadline']
  )
  t.alike(
    ofType(effects, 'item').map((item) => [item.index, item.error?.code]),
    [
      [1, 'TIMEOUT'],
      [2, 'TIMEOUT']
    ]
  )
  t.alike(ofType(effects, 'done'), [{ type: 'done', status: 'partial', counts: { total: 3, completed: 1, failed: 2 } }])
  t.is(nextTickAt(swarm.state, 100_000), null)
})

test('a canceled swarm releases its leases and says so', (t) => {
  const swarm = new Swarm({ names: ['1', '2'] })
  swarm.join('a', 1)
  t.alike(swarm.do({ type: 'cancel' }, 1), [
    { type: 'release', index: 0, agent: 'a', attempt: 1, reason: 'canceled' },
    { type: 'done', status: 'canceled', counts: { total: 2, completed: 0, failed: 0 } }
  ])
  t.alike(counts(swarm.state), { total: 2, completed: 0, failed: 0 })
})

test('ten thousand items finish with a step for each', (t) => {
  const total = 10_000
  const swarm = new Swarm({ names: Array.from({ length: total }, (_, i) => `${i}`), maxParallel: 50 })
  const waiting = [...swarm.join('a', 30), ...swarm.join('b', 30)]
  let steps = 0
  for (let lease = waiting.shift(); lease !== undefined; lease = waiting.shift()) {
    if (lease.type !== 'lease') continue
    steps++
    waiting.push(...swarm.ok(lease.index, lease.attempt, lease.agent))
  }
  t.is(steps, total)
  assert.equal(swarm.state.status, 'completed')
})

test('repeatable work is never in doubt: an answer without a known outcome fails it when its retries are over', (t) => {
  const swarm = new Swarm({ retries: 0 })
  swarm.join('a')
  const outcome = { ok: false, error: ERROR, isUnknown: true } as const
  const [item] = ofType(swarm.do({ type: 'result', index: 0, attempt: 1, agent: 'a', outcome }, 1), 'item')
  t.is(item?.status, 'failed')
  const once = new Swarm({ retries: 0 })
  once.do({ type: 'accepted', agent: 'a', slots: 1, isRepeatable: false })
  t.is(ofType(once.do({ type: 'result', index: 0, attempt: 1, agent: 'a', outcome }, 1), 'item')[0]?.status, 'unknown')
})

/** One agent of what may not be repeated, with the only item. */
function unrepeatable(parts: Partial<SwarmParts> = {}): Swarm {
  const swarm = new Swarm(parts)
  swarm.do({ type: 'accepted', agent: 'a', slots: 1, isRepeatable: false })
  swarm.do({ type: 'accepted', agent: 'b', slots: 1, isRepeatable: false })
  return swarm
}

test('a failed run of unrepeatable work is its last: the item ends failed, and no other agent is asked', (t) => {
  for (const error of [{}, { code: 'TIMEOUT', retryable: true }] as const) {
    const effects = failWith(unrepeatable(), error)
    t.alike(
      effects.map((effect) => (effect.type === 'item' ? [effect.type, effect.status, effect.attempt] : [effect.type])),
      [['item', 'failed', 1], ['done']]
    )
  }
})

test('a failure that says that nothing was done lets another agent try what may not be repeated, as often as allowed', (t) => {
  const swarm = unrepeatable({ retries: 1 })
  t.alike(leases(failWith(swarm, { retryable: true })), ['0:b#2'])
  const last = failWith(swarm, { retryable: true }, { attempt: 2, agent: 'b' })
  t.is(ofType(last, 'item')[0]?.status, 'failed')
  const unsent = unrepeatable()
  const outcome = { ok: false, error: ERROR, isUnsent: true } as const
  t.alike(
    leases(unsent.do({ type: 'result', index: 0, attempt: 1, agent: 'a', outcome }, 5)),
    ['0:b#2'],
    'nor did a lease begin that never left'
  )
})

test('a failure that says that it is final is not tried again, though the item may be repeated', (t) => {
  const swarm = new Swarm()
  swarm.join('a')
  swarm.join('b')
  t.is(ofType(failWith(swarm, { isFinal: true }), 'item')[0]?.status, 'failed')
})
