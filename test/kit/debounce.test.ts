import test, { type Assert } from 'brittle'
import { Debounce } from '../../src/kit/clock.js'
import { ManualClock } from '../support/manual-clock.js'

test('a function that is often due runs at once, then once an interval, and never after its end', (t: Assert) => {
  const clock = new ManualClock()
  let runs = 0
  const pace = new Debounce(clock, 100, () => runs++)
  pace.due()
  t.is(runs, 1)
  for (let i = 0; i < 5; i++) pace.due()
  t.is(runs, 1)
  clock.advance(99)
  t.is(runs, 1)
  clock.advance(1)
  t.is(runs, 2)
  clock.advance(1000)
  t.is(runs, 2, 'nothing was due')
  pace.due()
  pace.due()
  pace.close()
  clock.advance(1000)
  pace.due()
  t.is(runs, 3)
})
