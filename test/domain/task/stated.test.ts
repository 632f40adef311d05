import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import { answerIn, statedBy } from '../../../src/domain/gateway/content.js'
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

/** The spellings of A2A 0.3, of the gateway document, of A2A 1.0 and of SDKs. */
const SPELLINGS = [
  (state: string): string => state,
  (state: string): string => state.replaceAll('-', '_'),
  (state: string): string => `TASK_STATE_${state.replaceAll('-', '_').toUpperCase()}`,
  (state: string): string => state.toUpperCase(),
  (state: string): string => state.replace('canceled', 'cancelled'),
  (state: string): string => state.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
  (state: string): string => `TaskState.${state.replaceAll('-', '_')}`,
  (state: string): string => ` ${state.replaceAll('-', ' ')} `
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
  for (const other of [
    'completed',
    'working',
    'Submitted',
    'TASK_STATE_',
    'TaskState.unknown',
    'required',
    '',
    7,
    null
  ])
    t.is(statedState({ a2a: { state: other } }), null, `${String(other)} is no end and no question`)
})

test('the message beside a stated state may be an A2A message of any version: its parts reach the client', (t) => {
  const messages: readonly (readonly [unknown, string, unknown])[] = [
    [{ role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: 'why' }] }, 'why', [{ text: 'why' }]],
    [{ role: 'ROLE_AGENT', parts: [{ text: 'one' }, { text: 'two' }] }, 'one two', [{ text: 'one\ntwo' }]],
    [{ text: 'short' }, '{"text":"short"}', [{ text: 'short' }]],
    [{ parts: [] }, '', null],
    [{ parts: [{ text: '' }], contextId: null }, '', null],
    [
      { parts: [{ text: 'a' }, { data: { x: 1 } }] },
      '{"parts":[{"text":"a"},{"data":{"x":1}}]}',
      [{ text: 'a' }, { data: { x: 1 } }]
    ],
    [{ parts: 7 }, '{"parts":7}', [{ data: { parts: 7 }, mediaType: 'application/json' }]]
  ]
  for (const state of STATES)
    for (const [message, words, parts] of messages) {
      const result = { a2a: { state, message } }
      const absent = { a2a: { state } }
      t.alike(statedBy(result)?.parts, parts ?? statedBy(absent)?.parts, JSON.stringify(message))
      const failure = failureOf(result)
      t.is(failure?.message, failure === null ? undefined : words === '' ? failureOf(absent)?.message : words)
    }
  t.alike(answerIn({ a2a: { message: { role: 'agent', parts: [{ text: 'hello' }] } } })?.parts, [{ text: 'hello' }])
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
