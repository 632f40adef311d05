import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { holds } from '../../support/holds.js'
import { World, type WorldOptions } from './world.js'

const rate = (max: number): fc.Arbitrary<number> => fc.oneof(fc.constant(0), fc.double({ min: 0, max, noNaN: true }))

const arbItems = fc
  .tuple(fc.integer({ min: 1, max: 25 }), fc.array(fc.nat({ max: 4 }), { maxLength: 6 }))
  .map(([free, pinned]) => [
    ...Array.from({ length: free }, (_, i) => ({ name: `item ${i}` })),
    ...pinned.map((agent) => ({ name: `pin ${agent}`, pinnedTo: `a${agent}@n${agent}` }))
  ])

const arbWorld: fc.Arbitrary<WorldOptions> = fc.record(
  {
    seed: fc.nat(),
    items: arbItems,
    agents: fc.integer({ min: 1, max: 5 }),
    maxParallel: fc.integer({ min: 1, max: 8 }),
    retries: fc.nat({ max: 3 }),
    deadlineAt: fc.integer({ min: 500, max: 40_000 }),
    loss: rate(0.3),
    duplication: rate(0.5),
    failure: rate(0.5),
    hang: rate(0.1),
    outage: rate(0.05),
    full: rate(0.3),
    hoarders: fc.nat({ max: 3 }),
    cancelAt: fc.integer({ min: 1, max: 60_000 })
  },
  {
    requiredKeys: [
      'seed',
      'items',
      'agents',
      'maxParallel',
      'retries',
      'deadlineAt',
      'loss',
      'duplication',
      'failure',
      'hang',
      'outage',
      'full',
      'hoarders'
    ]
  }
)

test('over a network that loses, repeats and reorders, every item gets exactly one outcome and no item two leases', async (t) => {
  await holds(
    t,
    fc.property(arbWorld, (options) => {
      new World(options).run()
    }),
    400
  )
})

test('the same world runs the same way again', async (t) => {
  await holds(
    t,
    fc.property(arbWorld, (options) => {
      assert.deepEqual(new World(options).run().log, new World(options).run().log)
    }),
    100
  )
})

test('when no run fails, lost messages and links cost time but no item', async (t) => {
  await holds(
    t,
    fc.property(arbWorld, ({ seed, items, agents, maxParallel, loss, duplication, outage, full }) => {
      const free = items.filter((item) => item.pinnedTo === undefined)
      const world = new World({
        seed,
        items: free,
        agents,
        maxParallel,
        loss,
        duplication,
        outage,
        full,
        retries: 0,
        deadlineAt: 1e7,
        failure: 0,
        hang: 0.02
      })
      assert.equal(world.run().exam.done?.status, 'completed')
    }),
    150
  )
})

test('agents that claim many places, take work and only heartbeat do not keep a swarm from its end', async (t) => {
  await holds(
    t,
    fc.property(arbWorld, ({ seed, items, agents, maxParallel, hoarders = 0 }) => {
      const free = items.filter((item) => item.pinnedTo === undefined)
      const calm = { loss: 0, duplication: 0, outage: 0, full: 0, failure: 0, hang: 0, retries: 0, deadlineAt: 1e6 }
      // The hoarders' node gets four leases: of five items, and five leases at once, one is left for others.
      const five = Array.from({ length: 5 }, (_, index) => ({ name: `more ${index}` }))
      const world = new World({
        ...calm,
        seed,
        items: [...free, ...five],
        agents,
        maxParallel: maxParallel + 4,
        hoarders: hoarders + 1
      })
      assert.equal(world.run().exam.done?.status, 'completed')
      assert.ok(world.now < 600_000, `it took ${world.now} ms`)
    }),
    150
  )
})

test('an item whose agent only sends heartbeats goes to one that brings results, though it was lost there before', (t) => {
  const items = Array.from({ length: 8 }, (_, index) => ({ name: `item ${index}` }))
  const calm = { loss: 0, duplication: 0, outage: 0, full: 0, failure: 0, hang: 0, retries: 0, deadlineAt: 1e6 }
  const world = new World({ ...calm, seed: 6, items, agents: 3, maxParallel: 5, hoarders: 4 }).run()
  t.is(world.exam.done?.status, 'completed')
  t.ok(world.now < 60_000, 'one that only heartbeats had it once')
})
