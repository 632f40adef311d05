import test from 'brittle'
import { restoreSwarm } from '../../../src/domain/swarm/restore.js'
import { stepSwarm } from '../../../src/domain/swarm/machine.js'

const items = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
const PARTS = { id: 's', items, maxParallel: 8, retries: 2, deadlineAt: 100_000, leaseMs: 1000 }
const lease = { agent: 'w@n', attempt: 3, failures: 1, isRepeatable: true }

test('an item with an outcome keeps it, a lease continues under its number, the rest is leased as if new', (t) => {
  const known = [
    { ...lease, index: 0, status: 'completed' as const },
    { ...lease, index: 1, status: null }
  ]
  const state = restoreSwarm(PARTS, { createdAt: -500, known }, 0)
  t.alike([state.completed, state.failed, state.leases.size], [1, 0, 1])
  const first = stepSwarm(state, { type: 'accepted', agent: 'w@n', slots: 4 }, 10).effects
  t.alike(first, [{ type: 'lease', index: 2, agent: 'w@n', attempt: 1 }])
  const result = { type: 'result', index: 1, agent: 'w@n', outcome: { ok: true, result: 1 } } as const
  t.alike(stepSwarm(state, { ...result, attempt: 2 }, 20).effects, [], 'an older number counts for nothing')
  t.alike(
    stepSwarm(state, { ...result, attempt: 3 }, 30).effects.map(({ type }) => type),
    ['item']
  )
})

test('a lease without heartbeats goes back, and its number rises; unrepeatable work is waited for longer', (t) => {
  for (const [isRepeatable, ms, type] of [
    [true, 2000, 'release'],
    [false, 6000, 'item']
  ] as const) {
    const state = restoreSwarm(PARTS, { createdAt: 0, known: [{ ...lease, isRepeatable, index: 0, status: null }] }, 0)
    t.alike(stepSwarm(state, { type: 'tick' }, ms - 1).effects, [])
    const { effects } = stepSwarm(state, { type: 'tick' }, ms)
    t.ok(effects.some((effect) => effect.type === type))
    const again = stepSwarm(state, { type: 'accepted', agent: 'x@m', slots: 4 }, ms).effects
    t.alike(
      again.flatMap((effect) => (effect.type === 'lease' && effect.index === 0 ? [effect.attempt] : [])),
      isRepeatable ? [4] : []
    )
  }
})

test('a swarm whose items all had their outcome ends with the first step', (t) => {
  const known = items.map((_, index) => ({
    ...lease,
    index,
    status: index === 0 ? ('unknown' as const) : ('completed' as const)
  }))
  const state = restoreSwarm(PARTS, { createdAt: 0, known }, 0)
  t.alike(stepSwarm(state, { type: 'tick' }, 1).effects, [
    { type: 'done', status: 'partial', counts: { total: 3, completed: 2, failed: 1 } }
  ])
})

test('an item that rested when the launcher ended rests on, under its number; it waits for nobody who had it', (t) => {
  const known = [{ ...lease, index: 0, status: null, retryAt: 7000 }]
  const state = restoreSwarm({ ...PARTS, items: items.slice(0, 1) }, { createdAt: -500, known }, 0)
  t.is(state.leases.size, 0)
  t.alike(stepSwarm(state, { type: 'accepted', agent: 'w@n', slots: 4 }, 10).effects, [])
  t.alike(stepSwarm(state, { type: 'tick' }, 6999).effects, [])
  t.alike(stepSwarm(state, { type: 'tick' }, 7000).effects, [{ type: 'lease', index: 0, agent: 'w@n', attempt: 4 }])
})
