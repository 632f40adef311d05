import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../src/adapters/agents/schemas/compile-schema.js'
import { statedBy } from '../../../src/domain/gateway/content.js'
import type { Part } from '../../../src/domain/gateway/message.js'
import { answerFault } from '../../../src/domain/gateway/question-answer.js'

const compile = createSchemaCompiler()
const fault = (schema: unknown, ...parts: Part[]): string | null => {
  const question = statedBy({ a2a: { state: 'input-required', message: 'Which?', schema } })
  return answerFault(compile, question, parts)?.message ?? null
}

test('an answer fits a schema as its text, as JSON, or as the input of its agent', (t: Assert) => {
  const seats = { type: 'object', properties: { seats: { type: 'integer' } }, required: ['seats'] }
  t.is(fault({ type: 'string' }, { text: '3' }), null)
  t.is(fault({ type: 'integer' }, { text: '3' }), null)
  t.is(fault({ enum: ['a', 'b'] }, { text: 'a' }), null)
  t.is(fault(seats, { text: '{"seats": 3}' }), null)
  t.is(fault(seats, { data: { seats: 3 } }), null)
  t.is(fault({ type: 'object', required: ['text'] }, { text: 'hello' }), null)
  t.is(fault({ type: 'object', required: ['files'] }, { raw: 'AAAA', mediaType: 'image/png' }), null)
  t.ok(fault({ type: 'integer' }, { text: 'three' })?.includes('must be integer'))
  t.ok(fault({ enum: ['a', 'b'] }, { text: 'c' }))
  t.ok(fault(seats, { data: { seats: 'three' } })?.includes('/seats must be integer'))
})

test('a question without a usable schema takes any answer, and a check that could take long is refused', (t: Assert) => {
  t.is(answerFault(compile, { parts: [{ text: 'Which?' }] }, [{ text: 'x' }]), null)
  t.is(answerFault(compile, null, [{ text: 'x' }]), null)
  t.is(fault({ type: 'nothing' }, { text: 'x' }), null)
  const tree = { type: 'object', properties: { child: { $ref: '#' } }, required: ['name'] }
  t.is(fault(tree, { data: { name: 'root', child: { name: 'leaf' } } }), null, 'the agent checks it')
  const unique = { type: 'array', items: { anyOf: Array.from({ length: 500 }, () => ({ type: 'object' })) } }
  const many = { data: Array.from({ length: 200_000 }, (_, at) => ({ at })) }
  t.ok(fault(unique, many)?.includes('more parts than can be checked'))
})
