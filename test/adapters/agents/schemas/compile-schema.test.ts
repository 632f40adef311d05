import test from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { failsWith } from '../../../support/fails.js'

const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema'

test('a compiled schema gives the faults of a value with their places', (t) => {
  const check = createSchemaCompiler()({
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'object', properties: { b: { type: 'string' } } } }
  })
  t.alike(check({ a: { b: 'x' } }), [])
  t.alike(check({}), [{ path: '', message: 'must have "a"' }])
  t.alike(check({ a: { b: 1 } }), [{ path: '/a/b', message: 'must be string' }])
})

test('the property nobody knows and the values that are allowed are named', (t) => {
  const compile = createSchemaCompiler()
  t.alike(compile({ additionalProperties: false })({ x: 1 }), [{ path: '', message: 'must not have "x"' }])
  t.alike(compile({ enum: ['a', 'b'] })('c'), [{ path: '', message: 'must be one of ["a","b"]' }])
})

test('where one of several ways has to fit, one fault names what each lacks', (t) => {
  const compile = createSchemaCompiler()
  const either = { anyOf: [{ required: ['a'] }, { required: ['b'], properties: { b: { type: 'string' } } }] }
  t.alike(compile(either)({}), [{ path: '', message: 'must have "a" or must have "b"' }])
  t.alike(compile({ properties: { x: either } })({ x: { b: 1 } }), [
    { path: '/x', message: 'must have "a" or /b must be string' }
  ])
  const both = { oneOf: [{ required: ['a'] }, { required: ['b'] }] }
  t.alike(compile(both)({ a: 1, b: 1 }), [{ path: '', message: 'must match exactly one schema in oneOf' }])
})

test('a schema without $schema is draft-07, with one it is what it says', (t) => {
  const compile = createSchemaCompiler()
  const prefix = { prefixItems: [{ type: 'string' }] }
  t.is(compile(prefix)([1]).length, 0, 'draft-07 has no prefixItems')
  t.is(compile({ ...prefix, $schema: DRAFT_2020 })([1]).length, 1)
  t.is(compile({ items: [{ type: 'string' }], $schema: 'http://json-schema.org/draft-07/schema#' })([1]).length, 1)
})

test('equal schemas share one check, for any order of their keys', (t) => {
  const compile = createSchemaCompiler()
  t.is(compile({ type: 'object', title: 'x' }), compile({ title: 'x', type: 'object' }))
  t.not(compile({ type: 'object' }), compile({ type: 'string' }))
})

test('a schema may refer to itself and to its own parts', (t) => {
  const compile = createSchemaCompiler()
  const tree = compile({
    type: 'object',
    properties: { child: { $ref: '#' }, name: { $ref: '#/$defs/name' } },
    $defs: { name: { type: 'string' } }
  })
  t.alike(tree({ child: { child: {} }, name: 'x' }), [])
  t.is(tree({ child: { child: 1 } })[0]?.path, '/child/child')
  t.is(tree({ child: { name: 1 } })[0]?.path, '/child/name')
})

test('two schemas may have the same $id, and neither sees the other', async (t) => {
  const compile = createSchemaCompiler()
  compile({ $defs: { a: { $id: 'http://x.test/inner', type: 'string' } } })
  t.is(
    compile({ $defs: { b: { $id: 'http://x.test/inner', type: 'number' } }, $ref: 'http://x.test/inner' })('a').length,
    1
  )
  await failsWith(t, 'INVALID_CARD', () => compile({ $ref: 'http://x.test/inner' }))
  t.is(compile({ $id: 'http://x.test/a', type: 'string' })(1).length, 1)
  t.is(compile({ $id: 'http://x.test/a', type: 'number' })(1).length, 0)
})

test('unknown keywords and formats pass, booleans are schemas, and patterns of both modes work', (t) => {
  const compile = createSchemaCompiler()
  t.is(compile({ format: 'no-such-format', 'x-note': 1 })('a').length, 0)
  t.is(compile(true)(1).length, 0)
  t.is(compile(false)(1).length, 1)
  t.is(compile({ pattern: '^\\p{L}+$' })('é').length, 0)
  t.is(compile({ pattern: '^[\\w\\-]+$' })('a-b').length, 0)
})

test('an inherited member of an object meets no requirement', (t) => {
  t.is(createSchemaCompiler()({ required: ['toString'] })({}).length, 1)
})

test('an invalid schema is INVALID_CARD with the reason', async (t) => {
  const compile = createSchemaCompiler()
  const deep = (n: number): unknown => (n === 0 ? {} : { not: deep(n - 1) })
  const bad: [unknown, RegExp][] = [
    ['text', /object or a boolean/],
    [null, /object or a boolean/],
    [[1], /object or a boolean/],
    [{ type: 'thing' }, /schema\/type must be/],
    [{ pattern: '(' }, /: "\(" is no regular expression$/],
    [
      { $ref: 'https://elsewhere.test/schema.json' },
      /its \$ref "https:\/\/elsewhere\.test\/schema\.json" points to no part of it$/
    ],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, /draft-07/],
    [{ $schema: 7 }, /draft-07/],
    [{ $async: true, type: 'string' }, /\$async/],
    [{ description: 'x'.repeat(70_000) }, /64 KiB/],
    [{ minimum: Number.NaN }, /not finite/],
    [deep(40), /nested deeper/]
  ]
  for (const [schema, reason] of bad) {
    const error = await failsWith(t, 'INVALID_CARD', () => compile(schema))
    t.ok(reason.test(error.message), error.message)
  }
})

test('an unknown keyword of a schema is reported with the allowed ones, and nothing else', async (t) => {
  const schema = { type: 'object', properties: { a: { type: 'strng' } } }
  const { message } = await failsWith(t, 'INVALID_CARD', () => createSchemaCompiler()(schema))
  t.ok(
    message.includes(
      'schema/properties/a/type must be one of ["array","boolean","integer","null","number","object","string"]'
    ),
    message
  )
  t.absent(/anyOf|allowed values|must be array/.test(message), message)
  const listed = await failsWith(t, 'INVALID_CARD', () => createSchemaCompiler()({ type: ['string', 'strng'] }))
  t.ok(/schema\/type .*\/1 must be one of/.test(listed.message), listed.message)
})

test('a schema that refers to itself without end gives a fault, not an exception', (t) => {
  const [fault] = createSchemaCompiler()({ $ref: '#' })({})
  t.ok(fault?.message.includes('could not be checked'), fault?.message)
})

const HOST = String.raw`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])+\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`

test('a pattern that would take minutes for 36 characters gives its answer, at each try', (t) => {
  const compile = createSchemaCompiler()
  const host = compile({ properties: { name: { pattern: HOST } } })
  for (const name of [
    'a.example',
    `${'a'.repeat(36)}!`,
    `${'a'.repeat(36)}!`,
    'b.example',
    `${'b.'.repeat(400)}example`
  ])
    t.alike(
      host({ name }),
      name.endsWith('!') ? [{ path: '/name', message: `must match pattern "${HOST}"` }] : [],
      name
    )
  const byName = compile({ patternProperties: { '^(a+)+$': { type: 'string' } }, additionalProperties: false })
  t.is(byName({ [`${'a'.repeat(40)}!`]: 'x' }).length, 1)
  t.alike(byName({ aaa: 'x' }), [])
})

test('a value that no engine can check in time does not fit, and the next one is checked', (t) => {
  const compile = createSchemaCompiler()
  const tooLong = /could not be checked: .* takes too long/
  const ahead = compile({ pattern: '^(?=(a+)+$)a' })
  t.ok(tooLong.test(ahead(`${'a'.repeat(40)}!`)[0]?.message ?? ''), 'RE2 knows no look-ahead')
  t.alike(ahead('aa'), [])
  const long = compile({ pattern: '^(a|b|ab)*c$' })
  t.ok(tooLong.test(long('ab'.repeat(500_000))[0]?.message ?? ''), 'there is a limit for texts of linear patterns, too')
  t.alike(long('abc'), [])
  const child = { properties: { a: { $ref: '#' } } }
  const tree = compile({ allOf: [child, child], properties: { b: { type: 'number' } } })
  const deep = Array.from({ length: 60 }).reduce<unknown>((a) => ({ a }), {})
  t.ok(tooLong.test(tree(deep)[0]?.message ?? ''), 'each level is read twice')
  t.is(tree({ a: { b: 'x' } })[0]?.path, '/a/b')
})

test('a check that a hostile value changed gives others the same answers', (t) => {
  const check = createSchemaCompiler()({ pattern: String.raw`^(\s*\w+\s*)+$` })
  t.alike(check('a\u00a0b'), [])
  t.is(check(`${'a'.repeat(40)}!`).length, 1)
  // On a machine with much to do a check may take longer than it is given.
  t.ok(
    Array.from({ length: 20 }).some(() => check('a\u00a0b').length === 0),
    'RE2 takes this for no space'
  )
})

test('many checks that take as long as the value each are no quick schema', (t) => {
  const items = Array.from({ length: 50_000 }, (_, at) => at)
  const [fault] = createSchemaCompiler()({ allOf: Array.from({ length: 500 }, () => ({ uniqueItems: true })) })(items)
  t.ok(fault?.message.includes('takes too long'))
})

test('long texts are matched by patterns that may take long, but do not', (t) => {
  const base64 = createSchemaCompiler()({ pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' })
  t.alike(base64('AAAA'.repeat(50_000)), [])
  t.is(base64(`${'AAAA'.repeat(50_000)}!`).length, 1)
})

test('the items of a long list are compared in time linear to it', (t) => {
  const check = createSchemaCompiler()({ uniqueItems: true })
  const items = Array.from({ length: 20_000 }, (_, at) => ({ at, deep: [at, { at }] }))
  t.alike(check(items), [])
  t.alike(check([...items, { deep: [7, { at: 7 }], at: 7 }]), [{ path: '', message: 'must NOT have duplicate items' }])
  t.alike(createSchemaCompiler()({ uniqueItems: false })([1, 1]), [])
})
