import test from 'brittle'
import fc from 'fast-check'
import { RunAgentInputSchema } from '@ag-ui/core/schemas'
import { MAX_AGUI_MESSAGES, readAguiInput } from '../../../../src/adapters/a2a/agui/agui-input.js'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import { holds } from '../../../support/holds.js'
import { arbJson } from '../../../support/mcp.js'

const whole = {
  threadId: 't',
  runId: 'r',
  protocolVersion: '1.0',
  parentRunId: 'r0',
  state: { a: 1 },
  messages: [
    { id: 'm1', role: 'user', content: 'first' },
    { id: 'm2', role: 'assistant', toolCalls: [] },
    { id: 'm3', role: 'user', content: [{ type: 'text', text: 'last' }] },
    { id: 'm4', role: 'tool', toolCallId: 'c', content: 'x' }
  ],
  tools: [],
  context: [],
  forwardedProps: { agent: 'text', skill: 'text.do', theme: 'dark' }
}

function faultOf(value: unknown): string {
  try {
    readAguiInput(value)
    return ''
  } catch (error) {
    if (error instanceof A2AFault && error.kind === 'INVALID_PARAMS') return error.message
    throw error
  }
}

test('an input gives its last user message, its recipient and its unusable members', (t) => {
  t.ok(RunAgentInputSchema.safeParse(whole).success)
  t.alike(readAguiInput(whole), {
    threadId: 't',
    runId: 'r',
    parentRunId: 'r0',
    userMessage: { messageId: 'm3', parts: [{ text: 'last' }] },
    agent: 'text',
    skill: 'text.do',
    justification: null,
    resume: [],
    warnings: []
  })
  const { warnings } = readAguiInput({
    ...whole,
    protocolVersion: '1.7',
    tools: [{ name: 'x', description: 'x' }],
    context: [{ description: 'a', value: 'b' }]
  })
  t.is(warnings.length, 3)
  const old = {
    ...whole,
    parentRunId: null,
    state: null,
    context: null,
    forwardedProps: null,
    resume: null,
    protocolVersion: null
  }
  t.alike([readAguiInput(old).agent, readAguiInput(old).resume], [null, []], 'as clients before 1.0 send it')
  t.is(readAguiInput({ threadId: 't', runId: 'r', messages: [] }).userMessage, null, 'the least there can be')
  t.alike(readAguiInput({ ...whole, resume: [{ interruptId: 'q', status: 'cancelled' }] }).resume, [
    { interruptId: 'q', status: 'cancelled' }
  ])
  const resume = [{ interruptId: 'q', status: 'resolved', payload: { yes: true } }]
  t.alike(readAguiInput({ ...whole, resume, messages: [] }).resume, resume)
})

test('an invalid input is reported member by member with the expected value, without texts of a library', async (t) => {
  t.is(faultOf({}), 'threadId: must be a text; runId: must be a text; messages: must be a list')
  t.is(faultOf([]), 'the body: must be an object')
  const resume = [{ interruptId: 'q', status: 'done' }]
  t.is(
    faultOf({ ...whole, threadId: '', resume }),
    'threadId: must not be empty; resume[0].status: must be one of resolved, cancelled'
  )
  t.is(faultOf({ ...whole, forwardedProps: { agent: 7 } }), 'forwardedProps.agent: must be a text')
  t.is(faultOf({ ...whole, messages: [{ id: 7, role: 'user' }] }), 'messages[0].id: must be a text')
  const odd = fc.record(
    {
      threadId: fc.jsonValue(),
      runId: fc.jsonValue(),
      messages: fc.jsonValue(),
      resume: fc.jsonValue(),
      forwardedProps: fc.jsonValue()
    },
    { requiredKeys: [] }
  )
  await holds(
    t,
    fc.property(odd, (given) => !/Invalid|Too |expected|received/.test(faultOf(given)))
  )
})

test('pictures and files are parts of the message; parts for others alone are left out', (t) => {
  const content = [
    { type: 'text', text: 'look' },
    { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } },
    { type: 'document', source: { type: 'url', value: 'https://example.com/a.pdf' } },
    { type: 'audio', source: { type: 'file', value: 'file-1' } },
    { type: 'hologram', source: {} }
  ]
  const messages = [{ id: 'm', role: 'user', content }]
  const { userMessage: said, warnings } = readAguiInput({ ...whole, messages })
  t.alike(said?.parts, [
    { text: 'look' },
    { raw: 'aGk=', mediaType: 'image/png' },
    { url: 'https://example.com/a.pdf' }
  ])
  t.alike(warnings, [
    'content: parts of the kind audio are left out',
    'content: parts of the kind hologram are left out'
  ])
  const binary = [{ type: 'binary', mimeType: 'text/plain', data: 'aGk=', filename: 'a.txt' }]
  t.alike(readAguiInput({ ...whole, messages: [{ id: 'm', role: 'user', content: binary }] }).userMessage?.parts, [
    { raw: 'aGk=', filename: 'a.txt', mediaType: 'text/plain' }
  ])
})

test('an invalid input is refused with all its faults', (t) => {
  for (const [value, what] of [
    [null, 'the body: '],
    [[], 'the body: '],
    [{ ...whole, threadId: '' }, 'threadId: '],
    [{ ...whole, runId: 'x'.repeat(257) }, 'runId: '],
    [{ ...whole, messages: {} }, 'messages: '],
    [{ ...whole, messages: [{ id: 1, role: 'user' }] }, 'messages[0].id: '],
    [
      { ...whole, messages: Array.from({ length: MAX_AGUI_MESSAGES + 1 }, () => ({ id: 'a', role: 'b' })) },
      'messages: '
    ],
    [{ ...whole, tools: 'x' }, 'tools: '],
    [{ ...whole, forwardedProps: { agent: 7 } }, 'forwardedProps.agent: '],
    [{ ...whole, forwardedProps: { justification: 'é'.repeat(513) } }, 'forwardedProps.justification: '],
    [{ ...whole, resume: [{ interruptId: 'x', status: 'maybe' }] }, 'resume[0].status: '],
    [{ ...whole, messages: [{ id: 'a', role: 'user' }] }, 'content of the last message'],
    [{ ...whole, messages: [{ id: 'a', role: 'user', content: [1] }] }, 'content: '],
    [{ ...whole, messages: [{ id: 'a', role: 'user', content: [{ type: 'text' }] }] }, 'content: '],
    [{ ...whole, messages: [{ id: 'a', role: 'user', content: [{ type: 'image' }] }] }, 'content: '],
    [
      { ...whole, messages: [{ id: 'a', role: 'user', content: Array.from({ length: 65 }, () => ({ type: 'x' })) }] },
      'content: '
    ]
  ] as const)
    t.ok(faultOf(value).startsWith(what), `${what} of ${JSON.stringify(value)?.slice(0, 60)}`)
  t.ok(/threadId: .*; messages: /.test(faultOf({ runId: 'r' })))
})

test('any input is read or refused', async (t) => {
  const keys = Object.keys(whole) as (keyof typeof whole)[]
  await holds(
    t,
    fc.property(fc.constantFrom(...keys, 'resume'), arbJson(), arbJson(), (key, value, content) => {
      faultOf({ ...whole, [key]: value })
      faultOf({ ...whole, messages: [{ id: 'm', role: 'user', content }] })
      faultOf({ ...whole, messages: [{ id: 'm', role: 'user', content: [{ type: 'image', source: content }, value] }] })
    }),
    500
  )
})
