import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MAX_AGE_MS, Replays } from '../../../src/domain/routing/replays.js'
import { holds } from '../../support/holds.js'

const START = 1_000_000

test('nothing counts twice, for any repeats and any times', async (t) => {
  const arbStep = fc.record({
    origin: fc.constantFrom('a', 'b'),
    id: fc.constantFrom('1', '2', '3'),
    age: fc.integer({ min: -MAX_AGE_MS - 1000, max: MAX_AGE_MS + 1000 }),
    passes: fc.nat(MAX_AGE_MS / 2)
  })
  const property = fc.property(fc.array(arbStep, { maxLength: 40 }), (steps) => {
    const replays = new Replays(START)
    const taken = new Set<string>()
    let now = START
    for (const { origin, id, age, passes } of steps) {
      now += passes
      const message = { origin, id, timestamp: now - age }
      // A copy has the id and the time that were signed.
      const copy = `${origin} ${id} ${message.timestamp}`
      if (replays.judge(message, now) !== 'new') continue
      assert.ok(!taken.has(copy))
      assert.ok(Math.abs(age) <= MAX_AGE_MS && message.timestamp >= START)
      taken.add(copy)
      replays.add(message)
      assert.equal(replays.judge(message, now), 'repeated')
    }
    for (const copy of taken) {
      const [origin = '', id = '', timestamp] = copy.split(' ')
      const message = { origin, id, timestamp: Number(timestamp) }
      for (const later of [now, now + MAX_AGE_MS / 2, now + 2 * MAX_AGE_MS])
        assert.notEqual(replays.judge(message, later), 'new')
    }
  })
  await holds(t, property, 500)
})

test('the messages of one node are remembered up to a bound, then it waits; others do not', (t) => {
  const replays = new Replays(START)
  let [taken, id] = [0, 0]
  const send = (origin: string, now: number): string => {
    const message = { origin, id: String(id++), timestamp: now }
    const freshness = replays.judge(message, now)
    if (freshness === 'new') replays.add(message)
    return freshness
  }
  while (send('a', START) === 'new') taken++
  t.is(taken, 32_768)
  t.is(send('b', START), 'new')
  t.is(send('a', START + MAX_AGE_MS), 'full', 'a copy would still be in time')
  t.is(send('a', START + MAX_AGE_MS + 1), 'new')
  const origins = ['c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k']
  for (const origin of origins) while (send(origin, START + MAX_AGE_MS + 1) === 'new') taken++
  t.ok(replays.size < 262_144, 'and all together, each with no more than it leaves free')
  t.is(send('honest', START + MAX_AGE_MS + 1), 'new')
  t.is(send('k', START + MAX_AGE_MS + 1), 'full')
  t.is(send('k', START + 2 * MAX_AGE_MS + 2), 'new')
})

test('the frames of hops, 400 a second of eight nodes and more, are remembered for as long as they may pass', (t) => {
  const replays = new Replays(START)
  let full = 0
  for (let second = 0; second < 600; second++) {
    const now = START + second * 1000
    for (let one = 0; one < 400; one++) {
      const message = { origin: `n${one % 8}`, id: `${second}.${one}`, timestamp: now }
      if (replays.judge(message, now) === 'new') replays.add(message)
      else full++
    }
  }
  t.is(full, 0)
})
