import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { padded, rangeUpTo } from '../../../src/domain/reliable/keys.js'

test('keys are in the order of their numbers, for any fractions', (t: Assert) => {
  const number = fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true })
  fc.assert(fc.property(number, number, (a, b) => padded(Math.min(a, b)) <= padded(Math.max(a, b))))
  const { to } = rangeUpTo('request-expiry', 1_700_000_618_082.5127)
  t.ok(to < `request-expiry/${padded(1_700_000_618_084)}`, 'a time with a fraction takes nothing that is later')
})
