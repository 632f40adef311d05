import test from 'brittle'
import { MAX_POINTS, Strikes } from '../../../../src/adapters/mesh/links/strikes.js'
import type { Strike } from '../../../../src/ports/mesh.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** Strikes of one kind until the peer is kept out: how many it took, and for how long it is out. */
function untilOut(strikes: Strikes, strike: Strike): { readonly count: number; readonly forMs: number } {
  for (let count = 1; ; count++) {
    const forMs = strikes.add('eve', strike)
    if (forMs > 0) return { count, forMs }
  }
}

test('a peer is kept out by ten faults, twenty forgeries or a thousand doubtful messages; the next is too many', (t) => {
  t.is(MAX_POINTS, 1000)
  for (const [strike, count] of [
    ['fault', 11],
    ['forged', 21],
    ['doubtful', 1001]
  ] as const) {
    const strikes = new Strikes(new ManualClock())
    t.is(untilOut(strikes, strike).count, count, strike)
    t.ok(strikes.isOut('eve'))
    t.absent(strikes.isOut('ann'))
    t.is(strikes.add('ann', strike), 0)
  }
})

test('old faults are forgiven: one fault in six seconds continues for ever', (t) => {
  const clock = new ManualClock()
  const strikes = new Strikes(clock)
  for (let i = 0; i < 1000; i++) {
    t.is(strikes.add('eve', 'fault'), 0)
    clock.advance(6000)
  }
})

test('each time it is out for longer, up to an hour; after a quiet day it begins anew', (t) => {
  const clock = new ManualClock()
  const strikes = new Strikes(clock)
  for (const expected of [10_000, 60_000, 360_000, 2_160_000, 3_600_000, 3_600_000]) {
    const { forMs } = untilOut(strikes, 'fault')
    t.is(forMs, expected)
    t.is(strikes.add('eve', 'fault'), 0, 'it is out already')
    clock.advance(forMs - 1)
    t.ok(strikes.isOut('eve'))
    clock.advance(1)
    t.absent(strikes.isOut('eve'))
  }
  clock.advance(24 * 3_600_000 + 1)
  t.is(untilOut(strikes, 'fault').forMs, 10_000)
})

test('any number of keys leaves a bounded table, and recently excluded keys stay excluded', (t) => {
  const strikes = new Strikes(new ManualClock())
  for (let key = 0; key < 1500; key++) while (strikes.add(`key ${key}`, 'fault') === 0) {}
  t.absent(strikes.isOut('key 0'))
  t.ok(strikes.isOut('key 476'))
  t.ok(strikes.isOut('key 1499'))
})
