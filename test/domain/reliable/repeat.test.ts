import test from 'brittle'
import fc from 'fast-check'
import { decideRepeat, type FailedTry, retryAfterMs } from '../../../src/domain/reliable/repeat.js'
import { ERROR_CODES, NodeError } from '../../../src/kit/errors.js'
import type { ErrorBody, ErrorCode } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'

const FAILED = { type: 'end', status: 'failed' } as const
const UNKNOWN = { type: 'end', status: 'unknown' } as const
const AGAIN = { type: 'repeat', afterMs: 0, isCounted: true } as const
const NO_PLACE = { type: 'repeat', afterMs: 0, isCounted: false } as const

/** A try that failed of what may not be repeated, with two retries and a minute left. */
function tried(
  code: ErrorCode,
  changes: Partial<Omit<FailedTry, 'error'>> & { readonly error?: Partial<ErrorBody> } = {}
): FailedTry {
  const { error, ...rest } = changes
  const base = { isUnknown: false, isRepeatable: false, failures: 0, retries: 2, leftMs: 60_000 }
  return { ...base, ...rest, error: { ...new NodeError(code, 'it failed').toBody(), ...error } }
}

const repeatable = { isRepeatable: true }

test('unrepeatable work ends failed after a run, unknown without a known outcome, and is tried again where nothing was done', (t) => {
  t.alike(decideRepeat(tried('TASK_FAILED')), FAILED)
  t.alike(
    decideRepeat(tried('TIMEOUT')),
    FAILED,
    'it was killed at its timeout; TIMEOUT says of itself only that it may succeed later'
  )
  t.alike(decideRepeat(tried('INVALID_OUTPUT')), FAILED)
  t.alike(decideRepeat(tried('TIMEOUT', { isUnknown: true })), UNKNOWN)
  t.alike(
    decideRepeat(tried('TASK_FAILED', { error: { retryable: true } })),
    AGAIN,
    'its agent says that nothing was done'
  )
  t.alike(
    decideRepeat(tried('TASK_FAILED', { error: { retryable: true }, isUnknown: true })),
    UNKNOWN,
    'that is no word of its agent'
  )
  t.alike(decideRepeat(tried('DELIVERY_FAILED', { isUnsent: true })), AGAIN)
  t.alike(decideRepeat(tried('DELIVERY_FAILED')), FAILED)
  for (const code of ['POLICY_DENIED', 'TIER_VIOLATION', 'LLM_INIT_FAILED', 'FORBIDDEN'] as const)
    t.alike(decideRepeat(tried(code)), AGAIN, code)
  t.alike(decideRepeat(tried('OVERLOADED')), NO_PLACE)
})

test('repeatable work is repeated, after every failure, up to its limit', (t) => {
  for (const code of ['TASK_FAILED', 'TIMEOUT', 'INVALID_OUTPUT'] as const) {
    t.alike(decideRepeat(tried(code, { ...repeatable, failures: 1 })), AGAIN, code)
    t.alike(decideRepeat(tried(code, { ...repeatable, failures: 2 })), FAILED, code)
    t.alike(decideRepeat(tried(code, { ...repeatable, retries: 0 })), FAILED, code)
  }
  t.alike(decideRepeat(tried('TIMEOUT', { ...repeatable, isUnknown: true })), AGAIN)
  t.alike(
    decideRepeat(tried('TIMEOUT', { ...repeatable, isUnknown: true, failures: 2 })),
    FAILED,
    'it is never in doubt'
  )
  t.alike(decideRepeat(tried('OVERLOADED', { failures: 2 })), NO_PLACE, 'no place costs nothing')
})

test('a failure that is final is never tried again, for any repeatable request', (t) => {
  t.alike(decideRepeat(tried('TASK_FAILED', { ...repeatable, error: { isFinal: true } })), FAILED)
  for (const code of ['INVALID_INPUT', 'PAYLOAD_TOO_LARGE'] as const)
    t.alike(decideRepeat(tried(code, repeatable)), FAILED, code)
  for (const code of ['TIMEOUT', 'OVERLOADED'] as const)
    t.alike(
      decideRepeat(tried(code, { ...repeatable, error: { retryable: false } })),
      FAILED,
      `${code} is retryable unless it says otherwise`
    )
})

test('retryAfter is waited for; where the time is over before, it ends', (t) => {
  const later = (seconds: unknown): ReturnType<typeof decideRepeat> =>
    decideRepeat(tried('TASK_FAILED', { ...repeatable, error: { data: { retryAfter: seconds } } }))
  t.alike(later(7), { ...AGAIN, afterMs: 7000 })
  t.alike(later(60), FAILED)
  for (const [seconds, ms] of [
    [0.0015, 2],
    [1e300, 60 * 86_400_000],
    [Number.POSITIVE_INFINITY, 60 * 86_400_000]
  ] as const)
    t.is(retryAfterMs({ data: { retryAfter: seconds } }), ms, 'a record takes whole numbers alone')
  for (const none of [0, -1, Number.NaN, '7', null]) t.alike(later(none), AGAIN, String(none))
  t.alike(decideRepeat(tried('OVERLOADED', { error: { data: { retryAfter: 7 } } })), { ...NO_PLACE, afterMs: 7000 })
  t.alike(
    decideRepeat(tried('OVERLOADED', { isForAnyone: true, error: { data: { retryAfter: 1e6 } } })),
    NO_PLACE,
    'others are asked'
  )
})

test('that one agent is not there costs nothing where another can be asked, and ends a request to it alone', (t) => {
  for (const code of ['AGENT_NOT_FOUND', 'CAPABILITY_NOT_FOUND', 'CHANNEL_CLOSED'] as const) {
    t.alike(decideRepeat(tried(code, { isForAnyone: true, retries: 0 })), NO_PLACE, code)
    t.alike(decideRepeat(tried(code, { retries: 0 })), FAILED, code)
  }
})

const anyTry: fc.Arbitrary<FailedTry> = fc.record({
  error: fc
    .record({
      code: fc.constantFrom(...(Object.keys(ERROR_CODES) as ErrorCode[])),
      retryable: fc.boolean(),
      isSaidFinal: fc.boolean(),
      retryAfter: fc.option(fc.double({ min: 0, max: 120, noNaN: true }))
    })
    .map(({ code, retryable, isSaidFinal, retryAfter }) => ({
      ...new NodeError(code, 'it failed', { retryable }).toBody(),
      ...(isSaidFinal ? { isFinal: true as const } : {}),
      ...(retryAfter === null ? {} : { data: { retryAfter } })
    })),
  isUnknown: fc.boolean(),
  isUnsent: fc.boolean(),
  isRepeatable: fc.boolean(),
  isForAnyone: fc.boolean(),
  failures: fc.nat({ max: 5 }),
  retries: fc.nat({ max: 5 }),
  leftMs: fc.nat({ max: 100_000 })
})

test('only safe work is repeated, never a final failure or one over its retries, never too early or too late', async (t) => {
  await holds(
    t,
    fc.property(anyTry, (one) => {
      const { error, isUnknown, isRepeatable, failures, retries, leftMs } = one
      const next = decideRepeat(one)
      if (next.type === 'end') return next.status === (isUnknown && !isRepeatable ? 'unknown' : 'failed')
      const isForOthers = one.isForAnyone === true && !next.isCounted
      const asked = isForOthers ? 0 : ((error.data as { readonly retryAfter?: number } | undefined)?.retryAfter ?? 0)
      const isSafe = isRepeatable || !isUnknown
      const isOpen = isUnknown || (error.isFinal !== true && (error.retryable || !ERROR_CODES[error.code].retryable))
      return (
        isSafe &&
        isOpen &&
        (!next.isCounted || failures < retries) &&
        next.afterMs >= asked * 1000 &&
        (asked === 0 || next.afterMs < leftMs)
      )
    }),
    2000
  )
})

test('that work may be repeated, or is known to be unsent, never makes it end where it else went on', async (t) => {
  await holds(
    t,
    fc.property(anyTry, (one) => {
      if (decideRepeat(one).type === 'end') return true
      const more = decideRepeat({ ...one, isRepeatable: true })
      return more.type === 'repeat'
    }),
    2000
  )
})
