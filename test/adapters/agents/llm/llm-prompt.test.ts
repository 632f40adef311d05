import test from 'brittle'
import { answerOf, promptMessages, systemPrompt, userPrompt } from '../../../../src/adapters/agents/llm/llm-prompt.js'
import type { Message, Part } from '../../../../src/domain/gateway/message.js'
import type { AgentTask } from '../../../../src/ports/agent-runtime.js'
import { definitionOf } from '../../../support/agents/definition.js'

const TEXT = { id: 'a.text', name: 'Text', description: 'Writes.', inputSchema: {}, outputSchema: {} }
const DATA = { ...TEXT, id: 'a.data', description: '', outputSchema: { type: ['object', 'null'] } }

test('text and prompt are asked as they are, anything else as JSON, behind the goal of the task', (t) => {
  const asked = (input: unknown, description = ''): string => userPrompt({ input, description })
  t.is(asked({ text: 'hi' }), 'hi')
  t.is(asked({ prompt: 'hi' }), 'hi')
  t.is(asked('hi'), 'hi')
  t.is(asked({ text: 'hi', lang: 'de' }), '{"text":"hi","lang":"de"}')
  t.is(asked({ text: 1 }), '{"text":1}')
  t.is(asked(null), 'null')
  t.is(asked({ text: 'hi' }, 'Greet.'), 'Greet.\n\nhi')
})

test('a model gets the conversation before its question: the newest part that fits, from a message of the user on', (t) => {
  const said = (role: 'user' | 'agent', ...parts: Part[]): Message => ({ messageId: 'm', role, parts })
  const history = [
    said('user', { text: 'one' }),
    said('agent', { text: 'first' }, { data: { n: 1 } }),
    said('user', { text: 'two' }),
    said('user', { raw: 'aGk=', filename: 'a.txt', mediaType: 'text/plain' }),
    said('agent', { text: 'second' })
  ]
  const [message, caller] = [said('user', { text: 'three' }), { kind: 'token', id: 'tok_a' }]
  const conversation = { contextId: 'c', taskId: 't', message, history, isCut: false, caller }
  const task: AgentTask = {
    taskId: 't',
    requestId: 'r',
    attempt: 1,
    capability: 'a.text',
    description: '',
    swarm: null,
    input: { text: 'three' }
  }
  const asked = (maxBytes: number): string[] =>
    promptMessages({ ...task, conversation }, maxBytes).map(({ role, content }) => `${role}: ${content}`)
  const tail = ['user: two\n\n[file a.txt text/plain]', 'assistant: second', 'user: three']
  t.alike(asked(1000), ['user: one', 'assistant: first\n{"n":1}', ...tail])
  t.alike(asked('second[file a.txt text/plain]twofirst{"n":1}.'.length), tail, 'it begins with a message of the user')
  t.alike(asked(0), ['user: three'])
  t.alike(promptMessages(task, 1000), [{ role: 'user', content: 'three' }])
})

test('the text of the file is the system prompt; of several capabilities the one that is asked for is named', (t) => {
  const one = { ...definitionOf('llm'), capabilities: [TEXT] }
  t.is(systemPrompt(one, '\nBe brief.\n', 'a.text'), 'Be brief.')
  t.is(systemPrompt(one, '', 'a.text'), '')
  const two = { ...one, capabilities: [TEXT, DATA] }
  t.is(systemPrompt(two, 'Be brief.', 'a.text'), 'Be brief.\n\nYou are asked for a.text: Writes.')
  t.ok(systemPrompt(two, 'Be brief.', 'a.data').endsWith('It must fit this JSON Schema: {"type":["object","null"]}'))
})

test('an answer is text unless its capability gives none; JSON is bounded and holds no key that is not allowed', (t) => {
  t.alike(answerOf('{"a":1}', TEXT), { ok: true, result: '{"a":1}' })
  t.alike(answerOf('{"a":1}', { ...TEXT, outputSchema: { type: 'string' } }), { ok: true, result: '{"a":1}' })
  t.alike(answerOf(' {"a":1}\n', DATA), { ok: true, result: { a: 1 } })
  for (const text of ['', 'a', '{"__proto__":1}', '['.repeat(40) + ']'.repeat(40)]) {
    const outcome = answerOf(text, DATA)
    t.is(outcome.ok ? 'ok' : outcome.code, 'INVALID_OUTPUT', text.slice(0, 20))
  }
})

test('the only JSON value of an answer counts, with any text around it; several are no answer', (t) => {
  const around = [
    '```json\n{"a":1}\n```',
    'Here it is:\n```\n{"a":1}\n```\nAnything else? {',
    'Sure! {"a":1}',
    'See [1] for "details": {"a":1} :-}',
    '{ no } {"a":1}'
  ]
  for (const text of around) t.alike(answerOf(text, DATA), { ok: true, result: { a: 1 } }, text)
  const LIST = { ...DATA, outputSchema: { type: 'array' } }
  t.alike(answerOf('The list: [{"a":"]"},2]. {"b":1}', LIST), { ok: true, result: [{ a: ']' }, 2] })
  t.alike(answerOf('So: {"a":{"b":[{"c":"}\\""}]}}', DATA), { ok: true, result: { a: { b: [{ c: '}"' }] } } })
  const NUMBER = { ...DATA, outputSchema: { type: 'number' } }
  t.alike(answerOf('```json\n5\n```', NUMBER), { ok: true, result: 5 })
  t.is(answerOf('It is 5.', NUMBER).ok, false)
  t.is(answerOf('{"list":[1]', LIST).ok, false, 'a part of a broken value is no answer')
  t.is(answerOf('So: {"list":[1]}', LIST).ok, false)
  for (const text of [
    '{"a":{"b":1}',
    '{"a":[{"b":1}], oops}',
    '{"a":1} or {"a":2}',
    'none',
    '{"a":1',
    'so {"__proto__":1}',
    '{'.repeat(100_000)
  ]) {
    const outcome = answerOf(text, DATA)
    t.is(outcome.ok ? 'ok' : outcome.code, 'INVALID_OUTPUT', text.slice(0, 20))
  }
})
