import test from 'brittle'
import { timely } from '../../../../src/adapters/mesh/network/timely.js'
import { ManualClock } from '../../../support/manual-clock.js'

test('a step that ends in time is waited for, whether it fails or not', async (t) => {
  const clock = new ManualClock()
  t.is(await timely(Promise.resolve(), clock, 100), true)
  t.is(await timely(Promise.reject(new Error('it failed')), clock, 100), true)
  t.is(clock.pending, 0, 'no timer is left')
})

test('a step that does not end is left behind', async (t) => {
  const clock = new ManualClock()
  const waiting = timely(new Promise(() => {}), clock, 100)
  clock.advance(100)
  t.is(await waiting, false)
})
