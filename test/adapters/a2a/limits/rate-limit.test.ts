import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { CallLimit } from '../../../../src/adapters/a2a/limits/rate-limit.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

const caller = (id: string) => ({ kind: 'token', name: 'the same name', id }) as const

test('however a caller calls, no span of time lets through more than the burst and its share, and Retry-After is kept', async (t: Assert) => {
  const calls = fc.array(fc.record({ after: fc.integer({ min: 0, max: 5000 }), who: fc.constantFrom('a', 'b') }), {
    minLength: 1,
    maxLength: 80
  })
  const property = fc.property(
    fc.integer({ min: 1, max: 300 }),
    fc.integer({ min: 1, max: 10 }),
    calls,
    (perMinute, burst, made) => {
      const clock = new ManualClock()
      const limit = new CallLimit({ perMinute, burst }, clock)
      const passed: Record<string, number[]> = { a: [], b: [] }
      for (const { after, who } of made) {
        clock.advance(after)
        const seconds = limit.take(caller(who))
        if (seconds === 0) passed[who]?.push(clock.monotonic())
        else if (!Number.isInteger(seconds) || seconds < 1 || seconds > Math.ceil(60 / perMinute)) return false
      }
      const fits = (times: readonly number[]): boolean =>
        times.every((from, i) =>
          times.slice(i).every((to, more) => more + 1 <= burst + ((to - from) / 60_000) * perMinute + 1e-6)
        )
      const seconds = limit.take(caller('a'))
      clock.advance(seconds * 1000)
      return fits(passed['a'] ?? []) && fits(passed['b'] ?? []) && (seconds === 0 || limit.take(caller('a')) === 0)
    }
  )
  await holds(t, property, 300)
})

test("the first calls up to the burst pass, and one token does not use up what is another one's", (t: Assert) => {
  const limit = new CallLimit({ perMinute: 60, burst: 3 }, new ManualClock())
  t.alike(
    [1, 2, 3, 4].map(() => limit.take(caller('a'))),
    [0, 0, 0, 1]
  )
  t.is(limit.take(caller('b')), 0)
})
