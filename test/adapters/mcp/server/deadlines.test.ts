import test from 'brittle'
import fc from 'fast-check'
import { Deadlines } from '../../../../src/adapters/mcp/server/deadlines.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** Begins a deadline, or meets the one begun so many before, after some time. */
const arbStep = fc.record({
  waitMs: fc.integer({ min: 0, max: 40 }),
  ms: fc.constantFrom(10, 25, 100),
  meets: fc.option(fc.nat(5))
})

test('each deadline that is not met runs once, at its time and no other; those of one length have one timer', async (t) => {
  await holds(
    t,
    fc.asyncProperty(fc.array(arbStep, { maxLength: 40 }), async (steps) => {
      const clock = new ManualClock()
      const deadlines = new Deadlines(clock)
      const begun: { readonly due: number; readonly deadline: { clear(): void }; met: number | null; ran: number[] }[] =
        []
      for (const { waitMs, ms, meets } of steps) {
        clock.advance(waitMs)
        const ran: number[] = []
        begun.push({
          due: clock.monotonic() + ms,
          deadline: deadlines.after(ms, () => ran.push(clock.monotonic())),
          met: null,
          ran
        })
        const one = meets === null ? undefined : begun.at(-1 - meets)
        if (one === undefined) continue
        one.met ??= clock.monotonic()
        one.deadline.clear()
      }
      clock.advance(1000)
      return begun.every(({ due, met, ran }) =>
        met !== null && met < due ? ran.length === 0 : ran.length === 1 && ran[0] === due
      )
    })
  )
})

test('a deadline that begins another of its length while it runs has it run too, and nothing is left behind', (t) => {
  const clock = new ManualClock()
  const deadlines = new Deadlines(clock)
  const ran: string[] = []
  deadlines.after(10, () => {
    ran.push('first')
    deadlines.after(10, () => ran.push('second'))
  })
  clock.advance(10)
  t.alike(ran, ['first'])
  clock.advance(10)
  t.alike(ran, ['first', 'second'])
  deadlines.after(10, () => ran.push('never')).clear()
  clock.advance(10)
  t.is(clock.pending, 0)
  t.alike(ran, ['first', 'second'])
})
