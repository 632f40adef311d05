import test from 'brittle'
import { wait } from '../../src/kit/clock.js'
import type { Clock } from '../../src/kit/clock.js'

/** A clock under test and how its time goes on until something has happened. */
export interface ClockSubject {
  readonly clock: Clock
  readonly until: (happened: Promise<void>) => Promise<void>
}

/** What every Clock keeps. */
export function clockContract(name: string, make: () => ClockSubject): void {
  test(`${name}: timers run in the order they are due, not of the calls`, async (t) => {
    const { clock, until } = make()
    const order: string[] = []
    await until(
      new Promise((resolve) => {
        clock.after(30, () => {
          order.push('late')
          resolve()
        })
        clock.after(1, () => order.push('early'))
      })
    )
    t.alike(order, ['early', 'late'])
  })

  test(`${name}: a periodic timer runs until it is cleared`, async (t) => {
    const { clock, until } = make()
    let runs = 0
    await until(
      new Promise((resolve) => {
        const timer = clock.every(1, () => {
          if (++runs < 3) return
          clock.clear(timer)
          clock.after(10, resolve)
        })
      })
    )
    t.is(runs, 3)
  })

  test(`${name}: a cleared timer never runs, and clearing is always allowed`, async (t) => {
    const { clock, until } = make()
    let ran = false
    const timer = clock.after(1, () => {
      ran = true
    })
    clock.clear(timer)
    clock.clear(timer)
    clock.clear(null)
    await until(new Promise((resolve) => clock.after(5, resolve)))
    t.is(ran, false)
  })

  test(`${name}: a negative delay is due at once`, async (t) => {
    const { clock, until } = make()
    await t.execution(until(new Promise((resolve) => clock.after(-5, resolve))))
  })

  test(`${name}: monotonic time never goes back and now is in unix milliseconds`, async (t) => {
    const { clock, until } = make()
    const before = clock.monotonic()
    await until(new Promise((resolve) => clock.after(2, resolve)))
    t.ok(clock.monotonic() > before)
    t.ok(clock.now() > Date.UTC(2020, 0) && clock.now() < Date.UTC(2200, 0))
  })

  test(`${name}: wait ends with its time, or at once when its signal aborts`, async (t) => {
    const { clock, until } = make()
    await t.execution(until(wait(clock, 3)))
    const abort = new AbortController()
    const waiting = wait(clock, 3_600_000, abort.signal)
    abort.abort()
    await t.execution(waiting)
    await t.execution(wait(clock, 3_600_000, abort.signal))
  })
}
