import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { AskedElsewhere, LoadEstimate, MAX_IN_FLIGHT_MS } from '../../../src/node/agents/load-estimate.js'
import { holds } from '../../support/holds.js'

test('a task that an agent was chosen for counts until it arrives, or its time is over', (t: Assert) => {
  const estimate = new LoadEstimate()
  estimate.add(0)
  estimate.add(10)
  t.is(estimate.count(10), 2)
  estimate.arrived()
  t.is(estimate.count(10), 1)
  t.is(estimate.count(9 + MAX_IN_FLIGHT_MS), 1)
  t.is(estimate.count(10 + MAX_IN_FLIGHT_MS), 0)
  estimate.arrived()
  estimate.add(5000)
  t.is(estimate.count(5000), 1, 'one that nobody was chosen for takes none of later ones away')
})

test('tasks elsewhere are begun ones, and those on their way to a chosen agent', async (t: Assert) => {
  const act = fc.constantFrom('expect' as const, 'begun' as const, 'ended' as const)
  await holds(
    t,
    fc.property(fc.array(fc.tuple(act, fc.constantFrom('a', 'b')), { maxLength: 30 }), (acts) => {
      const elsewhere = new AskedElsewhere({ clock: { monotonic: () => 0 } })
      const model = { a: { open: 0, expected: 0 }, b: { open: 0, expected: 0 } }
      for (const [what, address] of acts) {
        const one = model[address]
        if (what === 'ended' && one.open === 0) continue
        elsewhere[what](address)
        if (what === 'expect') one.expected++
        else one.open += what === 'begun' ? 1 : -1
        if (what === 'begun') one.expected = Math.max(0, one.expected - 1)
      }
      return (['a', 'b'] as const).every(
        (address) => elsewhere.tasks(address) === model[address].open + model[address].expected
      )
    })
  )
  let now = 0
  const late = new AskedElsewhere({ clock: { monotonic: () => now } })
  late.expect('a')
  t.is(late.tasks('a'), 1)
  now = MAX_IN_FLIGHT_MS
  t.is(late.tasks('a'), 0)
})
