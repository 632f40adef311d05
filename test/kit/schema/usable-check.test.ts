import test from 'brittle'
import { createSchemaCompiler } from '../../../src/adapters/agents/schemas/compile-schema.js'
import { usableCheck } from '../../../src/kit/schema/usable-check.js'

const compile = createSchemaCompiler()

test('a schema that cannot be checked in bounded time, or is none, says why; another one checks', (t) => {
  const circular = { $ref: '#/$defs/a', $defs: { a: { properties: { next: { $ref: '#/$defs/a' } } } } }
  for (const schema of [circular, { type: 'strng' }, null, 'text', true, { $ref: 'https://example.com/x' }])
    t.is(typeof usableCheck(compile, schema), 'string', JSON.stringify(schema))
  const check = usableCheck(compile, { type: 'object', required: ['a'] })
  if (typeof check === 'string') return t.fail(check)
  t.is(check({ a: 1 }).length, 0)
  t.is(check({}).length, 1)
  const [fault] = check({ a: Array.from({ length: 2_000_000 }, () => 0) })
  t.is(fault?.message, 'has more parts than can be checked')
})
