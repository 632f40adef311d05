import test from 'brittle'
import { ConnectionLimits, MAX_STRANGERS } from '../../../../src/adapters/mesh/links/connection-limits.js'
import { ManualClock } from '../../../support/manual-clock.js'

const one = { peer: 'a', isInbound: true, isMember: false, strangers: 0 }

test('at most eight strangers stand at the gate; members need no place', (t) => {
  const door = new ConnectionLimits(new ManualClock())
  t.is(MAX_STRANGERS, 8)
  t.is(door.refuses({ ...one, strangers: 7 }), null)
  t.is(door.refuses({ ...one, strangers: 8 }), 'full')
  t.is(door.refuses({ ...one, strangers: 8, isInbound: false }), 'full')
  t.is(door.refuses({ ...one, strangers: 8, isMember: true }), null)
})

test('one key opens five streams a second, dials of this node do not count', (t) => {
  const clock = new ManualClock()
  const door = new ConnectionLimits(clock)
  for (let open = 0; open < 5; open++) t.is(door.refuses(one), null)
  t.is(door.refuses(one), 'rate')
  t.is(door.refuses({ ...one, isInbound: false }), null)
  t.is(door.refuses({ ...one, peer: 'b' }), null)
  clock.advance(200)
  t.is(door.refuses(one), null)
  t.is(door.refuses(one), 'rate')
})

test('the rate of a key binds a member as well', (t) => {
  const door = new ConnectionLimits(new ManualClock())
  const member = { ...one, isMember: true }
  for (let open = 0; open < 5; open++) t.is(door.refuses(member), null)
  t.is(door.refuses(member), 'rate')
})

test('fifty fresh keys a second come to the gate, and a member comes in between them all the same', (t) => {
  const clock = new ManualClock()
  const door = new ConnectionLimits(clock)
  const opened = Array.from({ length: 500 }, (_, key) => door.refuses({ ...one, peer: `key ${key}` })).filter(
    (fault) => fault === null
  )
  t.is(opened.length, 50)
  t.is(door.refuses({ ...one, peer: 'member', isMember: true }), null)
  clock.advance(1000)
  t.is(door.refuses({ ...one, peer: 'late' }), null)
})
