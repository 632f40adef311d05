import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { RelayLimits } from '../../../src/node/relay/forwarder.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

const MiB = 1024 * 1024

test('however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes', async (t) => {
  const arb = fc.record({
    nodes: fc.integer({ min: 1, max: 60 }),
    bytes: fc.constantFrom(100, 70_000, 4 * MiB),
    isOfLane: fc.boolean(),
    isOpening: fc.boolean(),
    isHonestOpening: fc.boolean(),
    seconds: fc.integer({ min: 1, max: 12 })
  })
  const property = fc.property(arb, ({ nodes, bytes, isOfLane, isOpening, isHonestOpening, seconds }) => {
    const clock = new ManualClock()
    const rates = new RelayLimits(clock)
    let [taken, takenBytes] = [0, 0]
    const flood = (): void => {
      for (let i = 0; i < 60; i++)
        for (let node = 0; node < nodes; node++) {
          if (!rates.take({ origin: `m${node}`, target: 't', isOpening, isOfLane, bytes })) continue
          taken++
          takenBytes += bytes
        }
    }
    for (let i = 0; i < seconds; i++) {
      flood()
      clock.advance(1000)
      flood()
      const honest = { origin: 'honest', target: 't', isOpening: isHonestOpening, isOfLane, bytes: 64 * 1024 }
      if (i % 5 === 0) assert.ok(rates.take(honest))
    }
    assert.ok(taken <= 2400 + seconds * 1080, 'less than the 2,000 a second that a neighbour takes, but for the first')
    assert.ok(takenBytes <= (36 + 16 * seconds) * MiB + (400 + 80 * seconds) * 64 * 1024)
  })
  await holds(t, property, 100)
})

test('messages that a node opens, its answers to each other node, and its lanes have separate budgets', (t) => {
  const rates = new RelayLimits(new ManualClock())
  const taken = (target: string, isOpening: boolean, isOfLane: boolean): number =>
    Array.from({ length: 600 }, () => rates.take({ origin: 'a', target, isOpening, isOfLane, bytes: 1 })).filter(
      Boolean
    ).length
  t.alike([taken('b', true, false), taken('c', true, false)], [500, 0], 'all that it opens counts together')
  t.alike(
    [taken('b', false, false), taken('c', false, false)],
    [500, 500],
    'its answers, for each node that it answers'
  )
  t.is(taken('b', true, true), 505, 'lanes as far as there is space for all, and a little beyond')
})
