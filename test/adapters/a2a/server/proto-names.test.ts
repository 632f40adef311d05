import { isDeepStrictEqual } from 'node:util'
import test from 'brittle'
import fc from 'fast-check'
import { fieldName, withFieldNames } from '../../../../src/adapters/a2a/server/proto-names.js'

const FIELDS = [
  'messageId',
  'contextId',
  'taskId',
  'pageSize',
  'historyLength',
  'parts',
  'text',
  'a1B2',
  'url'
] as const
const DATA = ['data', 'metadata'] as const

/** The name in the proto file. */
function protoName(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** JSON with field names of the protocol, in which data of a client has any names. */
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    fc.integer(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom(...FIELDS), tie('value'), { noNullPrototype: true }),
        fc.dictionary(fc.constantFrom(...DATA), fc.object(), { noNullPrototype: true })
      )
      .map(([fields, data]) => ({ ...fields, ...data }))
  )
})).value

/** The same with the names of the proto file. */
function inProto(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inProto)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      protoName(name),
      (DATA as readonly string[]).includes(name) ? member : inProto(member)
    ])
  )
}

test('names of the proto file are read as lowerCamelCase names, and data of the client keeps its names', (t) => {
  fc.assert(
    fc.property(json, (value) => {
      const read = withFieldNames(inProto(value))
      return isDeepStrictEqual(read, value) && withFieldNames(value) === value
    })
  )
  t.alike(withFieldNames({ page_size: 1, metadata: { my_key: 1 }, x: [{ context_id: 'c', data: { a_b: 2 } }] }), {
    metadata: { my_key: 1 },
    x: [{ data: { a_b: 2 }, contextId: 'c' }],
    pageSize: 1
  })
})

test('a field in both forms is refused with its place', (t) => {
  void t.exception(
    () => withFieldNames({ message: { messageId: 'a', message_id: 'a' } }),
    /message\.message_id: is given as messageId too/
  )
})

test('names that are none of a proto file stay', (t) => {
  for (const name of ['_a', 'a_', 'a__b', 'A_b', '__proto__', 'a-b', 'skill_Id', '']) t.is(fieldName(name), name)
})
