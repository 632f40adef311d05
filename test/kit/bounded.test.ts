import test from 'brittle'
import fc from 'fast-check'
import { BoundedMap, BoundedSet } from '../../src/kit/bounded.js'
import { holds } from '../support/holds.js'

const arbKey = fc.nat(12)
const arbMax = fc.integer({ min: 1, max: 6 })

test('a bounded set has the values that were added last, after any removals', async (t) => {
  const arbSteps = fc.array(fc.record({ isRemoval: fc.boolean(), key: arbKey }), { maxLength: 300 })
  const property = fc.property(arbMax, arbSteps, (max, steps) => {
    const set = new BoundedSet<number>(max)
    let expected: number[] = []
    return steps.every(({ isRemoval, key }) => {
      const isKnown = expected.includes(key)
      if (isRemoval) {
        expected = expected.filter((one) => one !== key)
        return set.delete(key) === isKnown && alike([...set], expected)
      }
      if (!isKnown) expected = [...expected, key].slice(-max)
      return set.add(key) === set && set.size <= max && alike([...set], expected)
    })
  })
  await holds(t, property, 500)
})

test('a bounded map has the entries that were set last; one that is made the newest is dropped last', async (t) => {
  const arbSteps = fc.array(
    fc.record({ does: fc.constantFrom('set', 'setNewest', 'delete'), key: arbKey, value: fc.nat() } as const),
    {
      maxLength: 300
    }
  )
  const property = fc.property(arbMax, arbSteps, (max, steps) => {
    const map = new BoundedMap<number, number>(max)
    let expected: [number, number][] = []
    return steps.every(({ does, key, value }) => {
      const known = expected.find(([one]) => one === key)
      if (does === 'set' && known !== undefined) known[1] = value
      else {
        const others = expected.filter(([one]) => one !== key)
        expected = does === 'delete' ? others : [...others, [key, value] as [number, number]].slice(-max)
      }
      if (does === 'delete') map.delete(key)
      else map[does](key, value)
      return map.size <= max && alike([...map], expected)
    })
  })
  await holds(t, property, 500)
})

function alike(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
