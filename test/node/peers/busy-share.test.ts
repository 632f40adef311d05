import test from 'brittle'
import { BusyShare } from '../../../src/node/peers/busy-share.js'
import { ManualClock } from '../../support/manual-clock.js'

const LIMIT = { perSecond: 10, burst: 20 }

interface Scene {
  readonly clock: ManualClock
  readonly share: BusyShare
  isAlone: boolean
}

function scene(): Scene {
  const clock = new ManualClock()
  const state: Scene = {
    clock,
    isAlone: false,
    share: new BusyShare({ clock, limit: LIMIT, isAlone: () => state.isAlone })
  }
  return state
}

test('a member over its share waits until the rest has come back, while others are served', (t) => {
  const { clock, share } = scene()
  t.ok(share.isWithin('one'))
  share.charge('one', 20)
  t.ok(share.isWithin('one'), 'the whole burst is its share')
  share.charge('one', 5)
  t.absent(share.isWithin('one'))
  t.is(share.waitMs('one'), 500)
  t.ok(share.isWithin('two'), 'others are not touched')
  clock.advance(499)
  t.absent(share.isWithin('one'))
  clock.advance(1)
  t.alike([share.isWithin('one'), share.waitMs('one')], [true, 0])
})

test('a member that is alone waits for nothing', (t) => {
  const state = scene()
  state.share.charge('one', 20)
  state.share.charge('one', 20)
  t.absent(state.share.isWithin('one'))
  state.isAlone = true
  t.ok(state.share.isWithin('one'))
})

test('a single cost beyond the burst counts as the burst', (t) => {
  const { share, clock } = scene()
  share.charge('one', 1)
  share.charge('one', 1_000_000)
  t.is(share.waitMs('one'), 100)
  clock.advance(100)
  t.ok(share.isWithin('one'))
})
