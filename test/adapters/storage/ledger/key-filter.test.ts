import test from 'brittle'
import fc from 'fast-check'
import { KeyFilter } from '../../../../src/adapters/storage/ledger/key-filter.js'
import { holds } from '../../../support/holds.js'

const keys = fc.uniqueArray(fc.string({ maxLength: 40 }), { maxLength: 300 })

test('an added key is never reported as absent', async (t) => {
  await holds(
    t,
    fc.property(keys, fc.integer({ min: 1, max: 200 }), (added, capacity) => {
      const filter = new KeyFilter(capacity)
      for (const key of added) filter.add(key)
      return (
        added.every((key) => filter.mayHave(key)) &&
        filter.count === added.length &&
        filter.isFull === added.length >= capacity
      )
    }),
    200
  )
})

test('of keys that were not added, alike ones too, few are taken for known ones', (t) => {
  const filter = new KeyFilter(20_000)
  for (let key = 0; key < 20_000; key++) filter.add(`request/${key}`)
  let taken = 0
  for (let key = 20_000; key < 40_000; key++) if (filter.mayHave(`request/${key}`)) taken++
  t.ok(taken < 200, `${taken} of 20,000`)
})
