import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { Bag, TransientMap } from '../../src/kit/transient.js'
import { holds } from '../support/holds.js'

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')

test('a transient map has what a map has, also when it is emptied again and again', async (t) => {
  const steps = fc.array(fc.record({ isSet: fc.boolean(), key, value: fc.nat(9) }), { maxLength: 60 })
  await holds(
    t,
    fc.property(steps, (all) => {
      const [one, other] = [new TransientMap<string, number>(), new Map<string, number>()]
      for (const step of all) {
        if (step.isSet) {
          one.set(step.key, step.value)
          other.set(step.key, step.value)
        } else assert.equal(one.delete(step.key), other.delete(step.key))
        assert.deepEqual(
          [one.size, one.has(step.key), one.get(step.key), [...one.values()]],
          [other.size, other.has(step.key), other.get(step.key), [...other.values()]]
        )
      }
    })
  )
})

test('a bag has what was put into it and not taken out, once', async (t) => {
  await holds(
    t,
    fc.property(fc.array(fc.record({ isIn: fc.boolean(), key }), { maxLength: 60 }), (all) => {
      const [bag, set] = [new Bag<string>(), new Set<string>()]
      for (const step of all) {
        if (!step.isIn) assert.equal(bag.delete(step.key), set.delete(step.key))
        else if (!set.has(step.key)) {
          bag.add(step.key)
          set.add(step.key)
        }
        assert.deepEqual([bag.size, [...bag].sort()], [set.size, [...set].sort()])
      }
    })
  )
})
