import test from 'brittle'
import fc from 'fast-check'
import { RateTable, TokenBucket } from '../../src/kit/rate.js'
import { holds } from '../support/holds.js'
import { ManualClock } from '../support/manual-clock.js'

test('a key has its burst at once, and then its rate', (t) => {
  const clock = new ManualClock()
  const table = new RateTable({ perSecond: 2, burst: 3 }, clock)
  t.alike(
    [1, 2, 3, 4].map(() => table.take('a')),
    [true, true, true, false]
  )
  t.ok(table.take('b'), 'another key has its own')
  clock.advance(499)
  t.absent(table.take('a'))
  clock.advance(1)
  t.ok(table.take('a'))
  t.absent(table.take('a'))
  clock.advance(60_000)
  t.alike(
    [1, 2, 3, 4].map(() => table.take('a')),
    [true, true, true, false],
    'a pause saves up no more than the burst'
  )
})

test('in no span of time is more let through than burst and rate allow', async (t) => {
  const steps = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 200 })
  const property = fc.property(steps, (waits) => {
    const clock = new ManualClock()
    const table = new RateTable({ perSecond: 10, burst: 5 }, clock)
    const taken: number[] = []
    for (const wait of waits) {
      clock.advance(wait)
      if (table.take('a')) taken.push(clock.monotonic())
    }
    return taken.every((from, first) =>
      taken.slice(first).every((to, count) => count + 1 <= 5 + ((to - from) / 1000) * 10 + 1e-6)
    )
  })
  await holds(t, property)
})

test('keys that did nothing for a while are forgotten', (t) => {
  const clock = new ManualClock()
  const table = new RateTable({ perSecond: 5, burst: 5 }, clock)
  for (let second = 0; second < 200; second++) {
    for (let one = 0; one < 50; one++) table.take(`${second}/${one}`)
    clock.advance(1000)
  }
  t.ok(table.size <= 306, `${table.size} keys of 10,000 are remembered`)
})

test('the wait that a bucket states for a cost over its content is exact', async (t) => {
  const steps = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 50 })
  const property = fc.property(steps, (costs) => {
    const clock = new ManualClock()
    const bucket = new TokenBucket({ perSecond: 7, burst: 5 }, clock)
    return costs.every((cost) => {
      const waitMs = bucket.waitMs(cost)
      if (waitMs > 1) {
        clock.advance(waitMs - 1)
        if (bucket.take(cost)) return false
        clock.advance(1)
      } else clock.advance(waitMs)
      return bucket.take(cost)
    })
  })
  await holds(t, property)
})
