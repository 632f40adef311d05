import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  FacadeFault,
  facadeFaultOf,
  guardrailFault,
  taskFault
} from '../../../../src/adapters/a2a/facade/facade-fault.js'
import { type ErrorCode, NodeError } from '../../../../src/kit/errors.js'
import { failurePart } from '../../../../src/domain/gateway/content.js'
import type { GatewayTask } from '../../../../src/domain/gateway/task.js'
import { holds } from '../../../support/holds.js'

const told = (fault: FacadeFault): unknown[] => [fault.status, fault.toBody()]

/** A task whose last message is words of its agent, or a failure of the node. */
const failed = (
  last: string | NodeError,
  state: GatewayTask['state'] = 'failed'
): Pick<GatewayTask, 'state' | 'message'> => ({
  state,
  message: { messageId: 'm', role: 'agent', parts: [typeof last === 'string' ? { text: last } : failurePart(last)] }
})
const CODES: readonly ErrorCode[] = [
  'FORBIDDEN',
  'AGENT_NOT_FOUND',
  'TIMEOUT',
  'CONFLICT',
  'OVERLOADED',
  'LLM_INIT_FAILED',
  'TASK_FAILED'
]

test('the four errors of the specification are reported in its form', (t: Assert) => {
  t.alike(told(facadeFaultOf(new NodeError('AGENT_NOT_FOUND', 'no agent "x"'))), [
    404,
    { error: 'agent_not_found', message: 'no agent "x"', code: 'AGENT_NOT_FOUND' }
  ])
  const broken = { on: 'input', rule: 'maxLength', limit: 1, length: 2 } as const
  t.alike(told(guardrailFault(broken)), [
    400,
    {
      error: 'guardrail_violation',
      message: 'what is sent has 2 characters, more than the 1 that are allowed',
      details: broken
    }
  ])
  t.alike(told(taskFault(failed(new NodeError('LLM_INIT_FAILED', 'no such endpoint')))), [
    500,
    { error: 'llm_init_failed', message: 'no such endpoint', code: 'LLM_INIT_FAILED' }
  ])
  t.alike(told(facadeFaultOf(new TypeError('x is not a function'))), [
    500,
    { error: 'internal_error', message: 'Unexpected failure' }
  ])
})

test('a failed task is reported by its code and text; an error not meant for clients is unexpected', async (t: Assert) => {
  t.is(taskFault(failed(new NodeError('TIMEOUT', 'it is late'))).status, 504)
  t.is(taskFault(failed(new NodeError('TASK_FAILED', 'quoting (AGENT_NOT_FOUND) it broke'))).kind, 'internal_error')
  t.is(taskFault(failed(new NodeError('PAYLOAD_TOO_LARGE', 'the agent wrote more than 9 bytes'))).status, 500)
  t.is(taskFault(failed(new NodeError('POLICY_DENIED', 'two\nlines'))).message, 'two\nlines')
  await holds(
    t,
    fc.property(fc.string(), (secret) => {
      const text = JSON.stringify(taskFault(failed(new NodeError('TASK_FAILED', secret))).toBody())
      return text === '{"error":"internal_error","message":"Unexpected failure"}'
    })
  )
})

test('words of an agent that end like a failure of the node are words', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.string(),
      fc.constantFrom(...CODES),
      fc.constantFrom('failed', 'rejected', 'canceled'),
      (words, code, state) => {
        const fault = taskFault(failed(`${words} (${code})`, state))
        const kind = { failed: 'internal_error', rejected: 'task_rejected', canceled: 'conflict' }[state]
        return fault.kind === kind && fault.code === undefined && fault.message === `${words} (${code})`
      }
    )
  )
  for (const words of ['', 'failed', 'x (toString)', 'x (CONSTRUCTOR)', '('])
    t.is(taskFault(failed(words)).kind, 'internal_error', words)
})

test('a rejection or cancellation by the agent is reported; a failure that it states stays internal', (t: Assert) => {
  t.alike(told(taskFault(failed('not today', 'rejected'))), [422, { error: 'task_rejected', message: 'not today' }])
  t.is(taskFault(failed('not today', 'canceled')).status, 409)
  t.is(taskFault(failed('not today', 'failed')).kind, 'internal_error')
  const refused = taskFault(failed(new NodeError('AGENT_NOT_FOUND', 'no agent'), 'rejected'))
  t.alike(
    told(refused),
    [404, { error: 'agent_not_found', message: 'no agent', code: 'AGENT_NOT_FOUND' }],
    'a refusal of the node keeps its code'
  )
})

test('an unavailable resource states when to retry', (t: Assert) => {
  t.alike(new FacadeFault('unavailable', 'away').headers, { 'retry-after': '5' })
  t.alike(facadeFaultOf(new NodeError('OVERLOADED', 'full')).headers, { 'retry-after': '5' })
  t.alike(new FacadeFault('conflict', 'no').headers, {})
})
