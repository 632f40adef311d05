import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { CarryRates } from '../../src/node/carry-rates.js'
import { holds } from '../support/holds.js'
import { ManualClock } from '../support/manual-clock.js'

const MiB = 1024 * 1024

test('however many nodes have much carried, one that has little is carried too, and no more than a neighbour takes', async (t) => {
  const arb = fc.record({
    nodes: fc.integer({ min: 1, max: 60 }),
    bytes: fc.constantFrom(100, 70_000, 4 * MiB),
    isReply: fc.boolean(),
    isHonestReply: fc.boolean(),
    seconds: fc.integer({ min: 1, max: 12 })
  })
  const property = fc.property(arb, ({ nodes, bytes, isReply, isHonestReply, seconds }) => {
    const clock = new ManualClock()
    const rates = new CarryRates(clock)
    let [taken, takenBytes] = [0, 0]
    const flood = (): void => {
      for (let i = 0; i < 60; i++)
        for (let node = 0; node < nodes; node++) {
          if (!rates.take({ node: `m${node}`, isReply, bytes })) continue
          taken++
          takenBytes += bytes
        }
    }
    for (let i = 0; i < seconds; i++) {
      flood()
      clock.advance(1000)
      flood()
      if (i % 5 === 0) assert.ok(rates.take({ node: 'honest', isReply: isHonestReply, bytes: 64 * 1024 }))
    }
    assert.ok(taken <= 1200 + seconds * 480, 'less than the 500 a second that a neighbour takes, but for the first')
    assert.ok(takenBytes <= (36 + 16 * seconds) * MiB + (400 + 80 * seconds) * 64 * 1024)
  })
  await holds(t, property, 100)
})

test('replies to a node and what it sends itself have room of their own', (t) => {
  const rates = new CarryRates(new ManualClock())
  const all = (isReply: boolean): number =>
    Array.from({ length: 600 }, () => rates.take({ node: 'a', isReply, bytes: 1 })).filter(Boolean).length
  t.alike([all(false), all(true)], [500, 305], 'the second as far as there is room for all, and a little beyond')
})
