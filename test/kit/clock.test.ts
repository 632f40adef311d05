import test from 'brittle'
import { ExpiryClock, Stamps, wait } from '../../src/kit/clock.js'
import { clockContract } from '../contracts/clock.js'
import { ManualClock } from '../support/manual-clock.js'

clockContract('manual clock', () => {
  const clock = new ManualClock()
  return {
    clock,
    until: async (happened) => {
      let done = false
      const end = happened.then(() => {
        done = true
      })
      while (!done) {
        clock.advance(1)
        await Promise.resolve()
      }
      await end
    }
  }
})

test('wait leaves no timer and no listener behind, however it ends', async (t) => {
  const clock = new ManualClock()
  const listeners = new Set<() => void>()
  const signal = {
    aborted: false,
    addEventListener: (_type: 'abort', listener: () => void) => void listeners.add(listener),
    removeEventListener: (_type: 'abort', listener: () => void) => void listeners.delete(listener)
  }
  const byTime = wait(clock, 10, signal)
  clock.advance(10)
  await byTime
  const byAbort = wait(clock, 10, signal)
  for (const listener of listeners) listener()
  await byAbort
  t.is(clock.pending, 0)
  t.is(listeners.size, 0)
})

test('a stamp is at most a millisecond behind the wall clock, also when that is set', (t) => {
  const clock = new ManualClock(5000)
  const stamps = new Stamps(clock)
  t.is(stamps.of(clock.monotonic()), 5000)
  clock.advance(0.5)
  t.is(stamps.of(clock.monotonic()), 5000, 'not read again')
  clock.advance(0.5)
  t.is(stamps.of(clock.monotonic()), 5001)
  clock.setNow(100)
  clock.advance(1)
  t.is(stamps.of(clock.monotonic()), 101)
})

test('a wall clock that jumps forward counts for expiry once it has stayed there for ten minutes; a set-back clock counts at once', (t) => {
  const clock = new ManualClock(5000)
  const expiry = new ExpiryClock({ now: () => Math.floor(clock.now()), monotonic: () => clock.monotonic() })
  clock.advance(10.25)
  t.is(expiry.now(), 5010, 'whole milliseconds')
  clock.setNow(86_400_000)
  clock.advance(1000.5)
  t.is(expiry.now(), 6010, 'also while it is ahead')
  clock.setNow(6200)
  t.is(expiry.now(), 6200)
  clock.setNow(86_400_000)
  t.is(expiry.now(), 6200)
  clock.advance(599_000)
  t.is(expiry.now(), 605_200)
  clock.advance(1000)
  t.is(expiry.now(), 87_000_000)
  clock.setNow(1000)
  t.is(expiry.now(), 1000)
})
