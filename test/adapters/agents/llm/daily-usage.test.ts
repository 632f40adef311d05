import test from 'brittle'
import { TokenDays } from '../../../../src/adapters/agents/llm/daily-usage.js'
import { FakeStore } from '../../../support/fake-store.js'
import { ManualClock } from '../../../support/manual-clock.js'

test('each agent has its own tokens of a day, which are never less than none', (t) => {
  const clock = new ManualClock(Date.parse('2026-01-01T12:00:00Z'))
  const days = new TokenDays({ clock, store: null, onFault: () => {} })
  void days.spend('a', 70)
  void days.spend('a', 50)
  t.alike([days.left('a', 100), days.left('a', 130), days.left('b', 100)], [0, 10, 100])
  t.is(days.untilNextDay(), 43_200)
  clock.advance(43_200_000)
  t.is(days.left('a', 100), 100)
})

test('a clock that is put back gives no second budget for the day', (t) => {
  let now = Date.parse('2026-01-02T12:00:00Z')
  const days = new TokenDays({ clock: { now: () => now }, store: null, onFault: () => {} })
  void days.spend('a', 70)
  now -= 86_400_000
  t.is(days.left('a', 100), 30)
})

test('the usage of a day is known after a restart, until the day is over', async (t) => {
  const clock = new ManualClock(Date.parse('2026-01-01T12:00:00Z'))
  const store = new FakeStore()
  const faults: unknown[] = []
  const begin = () => new TokenDays({ clock, store, onFault: (error) => faults.push(error) })
  const days = begin()
  await days.ready()
  await Promise.all([days.spend('a', 70), days.spend('b', 1), days.spend('a', 20)])
  const again = begin()
  await again.ready()
  t.alike([again.left('a', 100), again.left('b', 100)], [10, 99])
  clock.advance(43_200_000)
  const tomorrow = begin()
  await tomorrow.ready()
  t.is(tomorrow.left('a', 100), 100)
  await store.write('llm-days', { day: 'none', used: [] })
  const garbled = begin()
  await garbled.ready()
  t.alike([garbled.left('a', 100), faults], [100, []])
})

test('a store that fails stops nobody', async (t) => {
  const faults: unknown[] = []
  const broken = { read: () => Promise.reject(new Error('no')), write: () => Promise.reject(new Error('full')) }
  const days = new TokenDays({ clock: new ManualClock(), store: broken, onFault: (error) => faults.push(error) })
  await days.ready()
  await days.spend('a', 70)
  t.alike([days.left('a', 100), faults.length], [30, 2])
})
