import test from 'brittle'
import { TokenDays } from '../../../src/adapters/agents/llm-days.js'
import { ManualClock } from '../../support/manual-clock.js'

test('each agent has its own tokens of a day, which are never less than none', (t) => {
  const clock = new ManualClock(Date.parse('2026-01-01T12:00:00Z'))
  const days = new TokenDays(clock)
  days.spend('a', 70)
  days.spend('a', 50)
  t.alike([days.left('a', 100), days.left('a', 130), days.left('b', 100)], [0, 10, 100])
  t.is(days.untilNextDay(), 43_200)
  clock.advance(43_200_000)
  t.is(days.left('a', 100), 100)
})

test('a clock that is put back gives no second budget for the day', (t) => {
  let now = Date.parse('2026-01-02T12:00:00Z')
  const days = new TokenDays({ now: () => now })
  days.spend('a', 70)
  now -= 86_400_000
  t.is(days.left('a', 100), 30)
})
