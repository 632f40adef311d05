import test from 'brittle'
import fc from 'fast-check'
import { Oldest } from '../../src/kit/oldest.js'
import { holds } from '../support/holds.js'

test('the oldest key is always the first that is left, whatever comes and goes', async (t) => {
  const arbSteps = fc.array(fc.record({ does: fc.constantFrom('add', 'delete', 'oldest'), key: fc.nat(8) }), { maxLength: 200 })
  const property = fc.property(arbSteps, (steps) => {
    const keys = new Set<number>()
    const oldest = new Oldest(keys)
    return steps.every(({ does, key }) => {
      if (does === 'add') keys.add(key)
      else if (does === 'delete') keys.delete(key)
      else {
        const [expected] = keys
        const found = oldest.next()
        if (found !== undefined) keys.delete(found)
        return found === expected
      }
      return true
    })
  })
  await holds(t, property, 500)
})
