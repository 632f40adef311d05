import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  kindOf,
  MAX_LOG_LINE,
  MAX_QUESTION,
  QUESTION_KINDS,
  readAnswer,
  readLogLine,
  readQuestion
} from '../../../src/domain/task/question.js'

const FORM = { type: 'object', properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] }
const MESSAGES = [{ role: 'user', content: { type: 'text', text: 'x' } }]

test('a question is read with the members of its kind', (t: Assert) => {
  const cases = [
    ['form', { method: 'elicitation/create', params: { mode: 'form', message: 'm', requestedSchema: FORM } }],
    ['url', { method: 'elicitation/create', params: { mode: 'url', message: 'm', url: 'https://example.org/a' } }],
    ['sampling', { method: 'sampling/createMessage', params: { messages: MESSAGES, maxTokens: 1, systemPrompt: 's' } }],
    ['tools', { method: 'sampling/createMessage', params: { messages: MESSAGES, maxTokens: 1, tools: [] } }],
    ['roots', { method: 'roots/list', params: {} }]
  ] as const
  for (const [kind, value] of cases) {
    const question = readQuestion({ ...value, id: 1, jsonrpc: '2.0', name: 'a name' })
    t.alike(question, value)
    t.is(question === null ? null : kindOf(question), kind)
  }
  t.is(readQuestion({ method: 'roots/list', name: 'folders' })?.name, 'folders')
  const bare = { method: 'elicitation/create', params: { message: 'm', requestedSchema: FORM, _meta: { a: 1 } } }
  t.alike(readQuestion(bare)?.params, { mode: 'form', message: 'm', requestedSchema: FORM })
})

test('a question with a wrong URL, form or size is none', (t: Assert) => {
  const elicit = (params: object): unknown => readQuestion({ method: 'elicitation/create', params })
  for (const url of [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'https://',
    'data:text/html,x',
    'https://bank.example@other.example/',
    'https://bank.example\\@other.example/',
    'https://example.org/\u202ea',
    'https://example.org/a\nb: c',
    `https://${'x'.repeat(3000)}`
  ])
    t.is(elicit({ mode: 'url', message: 'm', url }), null, url.slice(0, 20))
  t.is(elicit({ message: 'm', requestedSchema: { type: 'array' } }), null)
  t.is(elicit({ message: 'm'.repeat(5000), requestedSchema: FORM }), null)
  const properties = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`p${i}`, {}]))
  t.is(elicit({ message: 'm', requestedSchema: { type: 'object', properties } }), null)
  t.is(readQuestion({ method: 'tools/call', params: {} }), null)
  const large = [{ role: 'user', content: { type: 'text', text: 'x'.repeat(MAX_QUESTION) } }]
  t.is(readQuestion({ method: 'sampling/createMessage', params: { messages: large, maxTokens: 1 } }), null)
  t.is(readLogLine({ level: 'info', data: 'x'.repeat(MAX_LOG_LINE) }), null)
  t.is(readLogLine({ level: 'loud', data: 'x' }), null)
})

test('readers take any value, and read their own results alike', (t: Assert) => {
  let read = 0
  fc.assert(
    fc.property(
      fc.oneof(
        fc.jsonValue(),
        fc.record({
          method: fc.constantFrom('elicitation/create', 'sampling/createMessage', 'roots/list'),
          params: fc.record(
            {
              mode: fc.constantFrom('form', 'url', 'other'),
              message: fc.string(),
              url: fc.webUrl(),
              requestedSchema: fc.record({
                type: fc.constant('object'),
                properties: fc.dictionary(fc.string(), fc.object())
              }),
              messages: fc.array(fc.object()),
              maxTokens: fc.integer()
            },
            { requiredKeys: [] }
          )
        })
      ),
      fc.constantFrom(...QUESTION_KINDS),
      (value, kind) => {
        const question = readQuestion(value)
        if (question !== null) {
          t.alike(readQuestion(question), question)
          read++
        }
        const line = readLogLine(value)
        if (line !== null) t.alike(readLogLine(line), line)
        const answer = readAnswer(value, kind)
        t.alike(readAnswer(answer, kind), answer)
      }
    ),
    { numRuns: 500 }
  )
  t.ok(read > 0, `${read} questions were read`)
})
