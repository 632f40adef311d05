import test from 'brittle'
import { TimedCheck } from '../../../../src/adapters/agents/schemas/timed-check.js'
import { TimeLimit } from '../../../../src/adapters/agents/process/time-limit.js'
import type { SchemaFault } from '../../../../src/kit/sign.js'

/** A limit that lets nothing by exact patterns end, and notes the time that each check was given. */
class NotedLimit extends TimeLimit {
  readonly given: number[] = []
  /** Do checks that are given so many milliseconds end? */
  ends: (ms: number) => boolean = () => true

  override within<T extends object>(ms: number, run: () => T): T | null {
    this.given.push(ms)
    return this.ends(ms) ? run() : null
  }
}

const FITS: readonly SchemaFault[] = []

test('a check that exact patterns cannot end is given them for 10 ms, later ones for 1 ms, and ends by linear patterns', (t) => {
  const limit = new NotedLimit()
  limit.ends = (ms) => ms === 400
  const checks = new TimedCheck({ limit, exact: () => FITS, makeLinear: () => () => FITS })
  for (let at = 0; at < 3; at++) t.alike(checks.check('a'), [])
  t.alike(limit.given, [10, 400, 1, 400, 1, 400])
})

test('a value that linear patterns cannot check is given to exact ones for 250 ms, and does not fit when they do not end', (t) => {
  const limit = new NotedLimit()
  const checks = new TimedCheck({
    limit,
    exact: () => FITS,
    makeLinear: () => {
      throw new Error('unknown syntax')
    }
  })
  limit.ends = (ms) => ms > 200
  t.alike(checks.check('a'), [])
  t.alike(limit.given.splice(0), [10, 400, 250])
  limit.ends = (ms) => ms === 400
  t.is(checks.check('a').length, 1)
  t.alike(limit.given, [1, 400, 250])
})
