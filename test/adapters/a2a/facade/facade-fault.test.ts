import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { FacadeFault, facadeFaultOf, guardrailFault, taskFault } from '../../../../src/adapters/a2a/facade/facade-fault.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { GatewayTask } from '../../../../src/domain/gateway/task.js'
import { holds } from '../../../support/holds.js'

const told = (fault: FacadeFault): unknown[] => [fault.status, fault.toBody()]

/** A task with that last message. */
const failed = (text: string, state: GatewayTask['state'] = 'failed'): Pick<GatewayTask, 'state' | 'message'> => ({
  state,
  message: { messageId: 'm', role: 'agent', parts: [{ text }] }
})

test('the four errors of the specification are told as it says', (t: Assert) => {
  t.alike(told(facadeFaultOf(new NodeError('AGENT_NOT_FOUND', 'no agent "x"'))), [
    404,
    { error: 'agent_not_found', message: 'no agent "x"' }
  ])
  const broken = { on: 'input', rule: 'maxLength', limit: 1, length: 2 } as const
  t.alike(told(guardrailFault(broken)), [
    400,
    { error: 'guardrail_violation', message: 'what is sent has 2 characters, more than the 1 that are allowed', details: broken }
  ])
  t.alike(told(taskFault(failed('no such endpoint (LLM_INIT_FAILED)'))), [500, { error: 'llm_init_failed', message: 'no such endpoint' }])
  t.alike(told(facadeFaultOf(new TypeError('x is not a function'))), [500, { error: 'internal_error', message: 'Unexpected failure' }])
})

test('a task that failed is told by the code at its end; what has none that is meant for clients is unexpected', async (t: Assert) => {
  t.is(taskFault(failed('it is late (TIMEOUT)')).status, 504)
  t.is(taskFault(failed('quoting (AGENT_NOT_FOUND) it broke (TASK_FAILED)')).kind, 'internal_error')
  t.is(taskFault(failed('the agent wrote more than 9 bytes (PAYLOAD_TOO_LARGE)')).status, 500)
  t.is(taskFault(failed('two\nlines (POLICY_DENIED)')).message, 'two\nlines')
  for (const words of ['', 'failed', 'x (toString)', 'x (CONSTRUCTOR)', '(', 'x (AGENT_NOT_FOUND) '])
    t.is(taskFault(failed(words)).kind, 'internal_error', words)
  await holds(
    t,
    fc.property(fc.string(), (secret) => {
      const text = JSON.stringify(taskFault(failed(`${secret} (TASK_FAILED)`)).toBody())
      return text === '{"error":"internal_error","message":"Unexpected failure"}'
    })
  )
})

test('an agent that rejects or cancels its task is heard; a failure that it states stays internal', (t: Assert) => {
  t.alike(told(taskFault(failed('not today', 'rejected'))), [422, { error: 'task_rejected', message: 'not today' }])
  t.is(taskFault(failed('not today', 'canceled')).status, 409)
  t.is(taskFault(failed('not today', 'failed')).kind, 'internal_error')
  t.is(taskFault(failed('no agent (AGENT_NOT_FOUND)', 'rejected')).status, 404, 'a refusal of the node keeps its code')
})

test('what is unavailable says when to come again', (t: Assert) => {
  t.alike(new FacadeFault('unavailable', 'away').headers, { 'retry-after': '5' })
  t.alike(facadeFaultOf(new NodeError('OVERLOADED', 'full')).headers, { 'retry-after': '5' })
  t.alike(new FacadeFault('conflict', 'no').headers, {})
})
