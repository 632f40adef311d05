import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { trimFairly } from '../../src/node/fair-share.js'
import { holds } from '../support/holds.js'

test('nobody loses anything while there is room', (t) => {
  const byPeer = new Map([
    ['a', [3, 3]],
    ['b', [4]]
  ])
  trimFairly(byPeer, { most: 3, measure: (one) => one.length, drop: (one) => one.shift() })
  t.alike([...byPeer.values()], [[3, 3], [4]])
  trimFairly(new Map<string, number[]>(), { most: 0, measure: (one) => one.length, drop: (one) => one.shift() })
})

test('who holds no more than its share keeps everything, and no more is dropped than needed', async (t) => {
  const held = fc.array(fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 9 }), { minLength: 1, maxLength: 5 })
  const property = fc.property(held, fc.nat(60), (lists, most) => {
    const byPeer = new Map(lists.map((list, index): [string, number[]] => [`${index}`, [...list]]))
    const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0)
    let last = 0
    trimFairly(byPeer, { most, measure: (one: number[]) => sum(one), drop: (one) => (last = one.shift() ?? 0) })
    const total = sum([...byPeer.values()].map(sum))
    assert.ok(total <= most)
    if (last > 0) assert.ok(total + last > most, 'no more than needed')
    for (const [index, list] of lists.entries()) {
      const kept = byPeer.get(`${index}`) ?? []
      assert.deepEqual(kept, list.slice(list.length - kept.length), 'the oldest go first')
      if (sum(list) <= most / lists.length) assert.equal(kept.length, list.length)
    }
  })
  await holds(t, property, 500)
})
