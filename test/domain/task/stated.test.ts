import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import { statedBy } from '../../../src/domain/gateway/content.js'
import {
  endStateOf,
  isEnd,
  MAX_STATED_REASON,
  statedEnd,
  statedFailure,
  statedState
} from '../../../src/domain/task/stated.js'
import { holds } from '../../support/holds.js'

const STATES = ['input-required', 'auth-required', 'rejected', 'failed', 'canceled'] as const

/** The spellings of A2A 0.3, of the gateway document and of A2A 1.0. */
const SPELLINGS = [
  (state: string): string => state,
  (state: string): string => state.replaceAll('-', '_'),
  (state: string): string => `TASK_STATE_${state.replaceAll('-', '_').toUpperCase()}`,
  (state: string): string => state.toUpperCase(),
  (state: string): string => state.replace('canceled', 'cancelled')
]

const NO_REASONS = [undefined, null, '', ' \n\t'] as const

function isNoReason(message: unknown): boolean {
  return message === undefined || message === null || (typeof message === 'string' && message.trim() === '')
}

/** The failure of a run with that result; null when the result states no end. */
function failureOf(result: unknown): ReturnType<typeof statedFailure> {
  const stated = statedState(result)
  return stated === null ? null : statedFailure(stated)
}

test('a reason that is null or blank is no reason, in the error of a task and in its message', (t) => {
  for (const state of STATES)
    for (const message of NO_REASONS) {
      const result = { a2a: { state, message } }
      const absent = { a2a: { state } }
      t.alike(failureOf(result), failureOf(absent), `${state} ${JSON.stringify(message)}`)
      t.alike(statedBy(result), statedBy(absent))
      const [part] = statedBy(result)?.parts ?? []
      t.ok(/[a-z]/.test(part?.text ?? ''), 'the client reads words')
    }
  t.is(failureOf({ a2a: { state: 'rejected', message: null } })?.message, 'the agent rejected it, and does not say why')
  t.alike(failureOf({ a2a: { state: 'rejected', message: false } })?.data, {
    a2a: { state: 'rejected', message: false }
  })
})

test('an agent states the state of its task in every spelling', async (t) => {
  await holds(
    t,
    fc.property(fc.constantFrom(...STATES), fc.constantFrom(...SPELLINGS), fc.jsonValue(), (state, spell, message) => {
      const stated = statedState({ a2a: { state: spell(state), message } })
      return (
        stated?.state === state && (isNoReason(message) ? stated.message === undefined : stated.message === message)
      )
    })
  )
  for (const other of ['completed', 'working', 'TASK_STATE_', '', 7, null])
    t.is(statedState({ a2a: { state: other } }), null, `${String(other)} is no end and no question`)
})

test('an end that an agent states survives the error of its request, for any reason', async (t) => {
  await holds(
    t,
    fc.property(fc.constantFrom(...STATES), fc.option(fc.jsonValue(), { nil: undefined }), (state, message) => {
      const stated = statedState({ a2a: { state, message } })
      const failure = failureOf({ a2a: { state, message } })
      if (stated === null || !isEnd(stated)) return failure === null
      if (failure === null) return false
      const error = new NodeError(failure.code, failure.message, { data: failure.data }).toBody()
      return statedEnd(error)?.state === state && endStateOf(error) === state && error.message !== ''
    })
  )
  for (const state of ['rejected', 'failed', 'canceled'])
    t.alike(failureOf({ a2a: { state, message: null } }), failureOf({ a2a: { state } }), 'null is absent')
  const long = failureOf({ a2a: { state: 'rejected', message: 'x'.repeat(2 * MAX_STATED_REASON) } })
  t.is(long?.message.length, MAX_STATED_REASON, 'a long reason is cut')
  t.is(
    endStateOf(new NodeError('POLICY_DENIED', 'no', { data: { a2a: { state: 'rejected' } } }).toBody()),
    'failed',
    'only its agent says so'
  )
})
