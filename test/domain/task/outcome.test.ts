import test from 'brittle'
import fc from 'fast-check'
import { decideRepeat, errorForCaller, retryAfterMs } from '../../../src/domain/reliable/repeat.js'
import { ENDINGS, endedBy, type ReportedFailure } from '../../../src/domain/task/outcome.js'
import { doubt } from '../../../src/domain/swarm/finish.js'
import { ERROR_CODES, type ErrorCode } from '../../../src/kit/errors.js'
import { demand } from '../../support/demand.js'

const report = (changes: Partial<ReportedFailure> = {}): ReportedFailure => ({
  code: 'TASK_FAILED',
  message: 'it failed',
  ...changes
})

test('an error names a time for the next try only when there may be one', (t) => {
  const wait = { data: { retryAfter: 7 } }
  const shown = (reported: ReportedFailure, isRepeatable: boolean): unknown[] => {
    const { error } = endedBy(reported, isRepeatable)
    return [error.retryable, error.data]
  }
  t.alike(shown(report(wait), true), [true, { retryAfter: 7 }], 'a tool that asks to wait')
  t.alike(shown(report(wait), false), [false, undefined], 'the same, which may not be repeated')
  t.alike(shown(report({ ...wait, retryable: false }), true), [false, undefined], 'a used quota with a time')
  t.alike(shown(report({ ...wait, isUnknown: true }), false), [false, undefined], 'an unknown outcome')
  t.alike(
    shown(report({ data: { retryAfter: 7, left: 3 }, retryable: false }), true),
    [false, { left: 3 }],
    'other details stay'
  )
  t.alike(shown(report({ data: { retryAfter: 'soon' } }), true), [false, undefined], 'a time that is none')
  t.alike(shown(report({ code: 'OVERLOADED', ...wait }), false), [true, { retryAfter: 7 }], 'no slot was free')
})

test('the error of any report of an agent is consistent, for the node that decides about the next try and for its caller', (t) => {
  const codes = Object.keys(ERROR_CODES) as ErrorCode[]
  fc.assert(
    fc.property(
      fc.record({
        code: fc.constantFrom(...codes),
        retryable: fc.option(fc.boolean(), { nil: undefined }),
        isUnknown: fc.boolean(),
        isRepeatable: fc.boolean(),
        data: fc.option(
          fc.record({ retryAfter: fc.oneof(fc.integer({ min: -5, max: 90_000 }), fc.string()), more: fc.boolean() }),
          {
            nil: undefined
          }
        )
      }),
      ({ code, retryable, isUnknown, isRepeatable, data }) => {
        const reported = report({
          code,
          isUnknown,
          ...(retryable === undefined ? {} : { retryable }),
          ...(data === undefined ? {} : { data })
        })
        const { error, status } = endedBy(reported, isRepeatable)
        const toCaller = errorForCaller({ error, isUnknown: status === 'unknown', isRepeatable })
        for (const one of [error, toCaller])
          demand(one.retryable || retryAfterMs(one) === 0, `a wait of ${JSON.stringify(one)}`)
        if (isRepeatable && retryable === undefined && retryAfterMs({ data }) > 0)
          demand(error.retryable, 'a wait says that it may be retried')
        if (retryable === false) demand(!toCaller.retryable, 'an agent that says no is believed')
        const next = decideRepeat({
          error,
          isUnknown: status === 'unknown',
          isRepeatable,
          failures: 0,
          retries: 2,
          leftMs: 1e12
        })
        if (next.type === 'repeat') demand(next.afterMs >= retryAfterMs(error), 'the wait is kept')
      }
    )
  )
  for (const { error } of Object.values(ENDINGS)) t.ok(error.retryable || retryAfterMs(error) === 0)
})

test('endings of tasks and of items of a swarm name no command or option, as clients of every protocol read them', (t) => {
  const lost = doubt('its node was lost', 'PEER_OFFLINE')
  const errors = [...Object.values(ENDINGS).map(({ error }) => error), ...(lost.ok ? [] : [lost.error])]
  t.ok(errors.length > Object.keys(ENDINGS).length)
  for (const { message } of errors) t.absent(/--[a-z]|a2a-node [a-z]/.test(message), message)
})
