import test from 'brittle'
import fc from 'fast-check'
import { CompletionReader } from '../../../../src/adapters/agents/llm/llm-completion.js'
import { LlmFault } from '../../../../src/adapters/agents/llm/llm-fault.js'
import { holds } from '../../../support/holds.js'
import { eventsOf, SHAPES } from '../../../support/llm/shapes.js'

interface Read {
  readonly chunks: readonly unknown[]
  readonly fault: LlmFault | null
  readonly isOver: boolean
}

/** Everything that a reader makes of a body in pieces. */
function read(...pieces: readonly (string | Uint8Array)[]): Read {
  const reader = new CompletionReader()
  const chunks: string[] = []
  let fault: LlmFault | null = null
  try {
    for (const piece of pieces) chunks.push(...reader.feed(Buffer.from(piece as string)))
    chunks.push(...reader.end())
  } catch (error) {
    if (!(error instanceof LlmFault)) throw error
    fault = error
  }
  return { chunks: chunks.map((one) => JSON.parse(one) as unknown), fault, isOver: reader.isOver }
}

function chunk(delta: unknown, finish: string | null = null): string {
  return JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })
}

/** A chunk as it is passed on. */
function clean(text: string): unknown {
  return JSON.parse(text, (_name, value: unknown) => value ?? undefined) as unknown
}

/** Errors in which nothing is set. */
const BLANK = [{ error: {} }, { error: { code: null, message: '' } }, { errors: [] }, { error: false }]
const HELLO = chunk({ content: 'hello' })
const STOP = chunk({}, 'stop')

test('odd frames lose nothing: keep-alives, empty data, comments, other fields, a missing empty line at the end', (t) => {
  const odd = [
    ': keepalive',
    'data:',
    'data: ',
    'data: : keepalive',
    'data: [keepalive]',
    'data: ping',
    'event: ping',
    'id: 7',
    'retry: 5'
  ]
  for (const line of odd) {
    const { chunks, fault } = read(
      `${line}\n\ndata: ${HELLO}\n\n${line}\n\ndata: ${STOP}\n\n${line}\n\ndata: [DONE]\n\n`
    )
    t.alike([chunks.length, fault], [2, null], line)
  }
  t.alike(read(`data: ${HELLO}\r\n\r\ndata: ${STOP}\r\n\r\n`).fault, null)
  t.is(read(`\uFEFFdata: ${HELLO}\n\ndata: ${STOP}`).chunks.length, 2)
  t.is(read(`data:${HELLO}\ndata: \n\ndata: ${STOP}\n\n`).chunks.length, 2)
})

test('events beside the answer lose nothing: pings and reports as JSON, chunks without choices, choices that are none', (t) => {
  const odd = [
    'event: ping\ndata: {}',
    'data: {"type":"ping"}',
    'data: {"object":"progress","percent":7}',
    'data: {"choices":null}',
    'data: {"choices":[],"error":null}',
    'data: {"choices":[null,"a"]}'
  ]
  for (const line of odd) {
    const { chunks, fault } = read(
      `${line}\n\ndata: ${HELLO}\n\n${line}\n\ndata: ${STOP}\n\n${line}\n\ndata: [DONE]\n\n`
    )
    t.alike([chunks, fault], [[HELLO, STOP].map(clean), null], line)
  }
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  t.alike(
    read(`data: ${STOP}\n\ndata: ${JSON.stringify({ usage })}\n\n`).chunks[1],
    { usage, choices: [] },
    'counts need no choices'
  )
  t.is(read('data: {"type":"ping"}\n\n').fault?.kind, 'dropped', 'alone they are no answer')
})

test('an answer is over at [DONE], and finished at a finish reason, an empty one excepted', (t) => {
  const reader = new CompletionReader()
  reader.feed(Buffer.from(`data: ${chunk({ content: 'a' }, '')}\n\n`))
  t.alike([reader.isFinished, reader.isOver], [false, false])
  reader.feed(Buffer.from(`data: ${STOP}\n\n`))
  t.alike([reader.isFinished, reader.isOver], [true, false])
  t.is(reader.feed(Buffer.from(`data: [DONE]\n\ndata: ${HELLO}\n\n`)).length, 0, 'nothing follows')
  t.ok(reader.isOver)
  t.is(read(`data: ${HELLO}\n\ndata: [DONE]\n\n`).fault, null, 'a server without finish reasons')
})

test('an answer is over at the line [DONE] on an open connection, however its lines end, with and without an empty line', (t) => {
  for (const end of ['\n', '\r\n', '\r'])
    for (const after of [end, end + end, ` ${end}`])
      for (const field of ['data: ', 'data:']) {
        const text = `${field}${HELLO}${end}${end}${field}[DONE]${after}`
        const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte))
        for (const pieces of [[Buffer.from(text)], bytes]) {
          const reader = new CompletionReader()
          const chunks = pieces.flatMap((piece) => reader.feed(piece))
          t.alike([reader.isOver, chunks.length], [true, 2], JSON.stringify([text, pieces.length]))
        }
      }
  const reader = new CompletionReader()
  reader.feed(Buffer.from(`data: ${chunk({ content: 'data: [DONE]' })}\n`))
  reader.feed(Buffer.from('\n: data: [DONE]\n'))
  t.absent(reader.isOver, 'within a text or a comment it is none')
})

test('a null member is an absent one, in a whole completion and in each chunk of a stream', (t) => {
  const whole = { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }] }
  const delta = { role: 'assistant', content: 'hello' }
  const expected = { object: 'chat.completion.chunk', choices: [{ index: 0, finish_reason: 'stop', delta }] }
  for (const extra of [
    { error: null },
    { error: '' },
    { id: null, usage: null },
    { errors: null, object: null },
    ...BLANK
  ]) {
    t.alike(read(JSON.stringify({ ...whole, ...extra })), { chunks: [expected], fault: null, isOver: false })
    const frames = [HELLO, STOP].map((text) => JSON.stringify({ ...(JSON.parse(text) as object), ...extra }))
    const { chunks, fault } = read(eventsOf(frames))
    t.alike([chunks, fault], [[HELLO, STOP].map(clean), null], JSON.stringify(extra))
  }
  const call = { index: 0, id: 'c1', function: { name: null, arguments: '{"a":null}' } }
  const { chunks } = read(
    `data: ${chunk({ role: null, content: null, refusal: null, tool_calls: [call] }, 'stop')}\n\n`
  )
  const kept = { ...call, function: { arguments: '{"a":null}' } }
  t.alike(chunks, [{ choices: [{ index: 0, delta: { tool_calls: [kept] }, finish_reason: 'stop' }] }])
})

const WHOLE = JSON.stringify({
  object: 'chat.completion',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }],
  usage: { prompt_tokens: 1, completion_tokens: 2 }
})

/** The text in the chunks of an answer, its finish reasons and the kind of its fault. */
function answerOf(...pieces: readonly (string | Uint8Array)[]): readonly unknown[] {
  const { chunks, fault } = read(...pieces)
  const choices = (chunks as { choices: { delta: { content?: string }; finish_reason?: string }[] }[]).flatMap(
    (one) => one.choices
  )
  const finishes = choices.flatMap((one) => one.finish_reason ?? [])
  return [choices.map((one) => one.delta.content ?? '').join(''), finishes, fault?.kind ?? null]
}

test('an answer whose protocol has ended is taken, in each form of a stream', (t) => {
  const message = JSON.stringify({ choices: [{ index: 0, message: { content: 'hello' } }] })
  const forms = {
    'no finish reason before [DONE]': `data: ${HELLO}\n\ndata: [DONE]\n\n`,
    'an empty finish reason before [DONE]': `data: ${chunk({ content: 'hello' }, '')}\n\ndata: [DONE]`,
    'a message instead of a delta': `data: ${message}\n\ndata: [DONE]\n\n`,
    'a whole completion in a frame': `data: ${WHOLE}\n\n`,
    'a whole completion before [DONE]': `data: ${WHOLE}\n\ndata: [DONE]\n\n`,
    'a whole completion without a reason': `data: ${WHOLE.replace('"finish_reason":"stop",', '')}\n\n`,
    'a whole completion that repeats a stream': `data: ${HELLO}\n\ndata: ${WHOLE}\n\n`,
    'a chunk a line': `${HELLO}\n${STOP}\n`,
    'lines without a last end, with empty ones': `\n${HELLO}\r\n\r\n${STOP}`,
    'lines that end with [DONE]': `${HELLO}\n[DONE]\n`,
    'a whole completion on a line': `${WHOLE}\n`,
    'a whole completion after a report': `{"type":"ping"}\n${WHOLE}`
  }
  for (const [form, text] of Object.entries(forms)) {
    const finish = form.startsWith('an empty') ? ['', 'stop'] : ['stop']
    const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte))
    for (const pieces of [[text], bytes]) t.alike(answerOf(...pieces), ['hello', finish, null], form)
  }
  t.alike(answerOf(`${HELLO}\n${HELLO}\n`), ['hellohello', [], 'dropped'], 'lines end by a finish too')
})

test('a broken JSON object before the finish fails the answer, which another try may give; after the finish it loses nothing', (t) => {
  const deep = '{"choices":'.repeat(100) + '1' + '}'.repeat(100)
  const call = chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'weather', arguments: '{}' } }] })
  for (const odd of ['{"choi', '{nonsense}', deep, '{"__proto__":1}']) {
    for (const order of [
      [odd, HELLO, STOP],
      [HELLO, odd, STOP],
      [odd, call],
      [call, odd],
      [odd, STOP]
    ])
      t.is(read(eventsOf(order)).fault?.kind, 'dropped', order.join(' '))
    for (const text of [eventsOf([HELLO, STOP, odd]), `${[HELLO, STOP, odd].join('\n')}\n`])
      t.alike(answerOf(text).slice(1), [['stop'], null], text.slice(0, 200))
    t.is(read(eventsOf([call, STOP, odd, WHOLE])).fault, null)
  }
})

test('a whole completion is the same answer as its stream', (t) => {
  const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }
  const message = { role: 'assistant', content: 'hello', tool_calls: [call, { ...call, id: 'c2' }] }
  const whole = JSON.stringify(
    { id: '1', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] },
    null,
    2
  )
  for (const pieces of [[whole], ['\n ', whole, '\n'], [whole.slice(0, 9), whole.slice(9)]]) {
    const { chunks, fault } = read(...pieces)
    const delta = {
      ...message,
      tool_calls: [
        { index: 0, ...call },
        { index: 1, ...call, id: 'c2' }
      ]
    }
    t.alike(chunks, [
      { id: '1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] }
    ])
    t.is(fault, null)
  }
  t.is(
    read(JSON.stringify({ choices: [{ index: 0, message }] })).fault,
    null,
    'without a finish reason it is whole all the same'
  )
})

test('an error of a server within an answer is reported with its text and its meaning', (t) => {
  const errors: readonly (readonly [string, string, string])[] = [
    ['{"error":{"code":500,"message":"CUDA out of memory","type":"server_error"}}', 'CUDA out of memory', 'passing'],
    ['{"error":{"message":"Overloaded","type":"overloaded_error"}}', 'Overloaded', 'passing'],
    ['{"error":"model runner has stopped"}', 'model runner has stopped', 'passing'],
    ['{"object":"error","message":"engine died","code":500}', 'engine died', 'passing'],
    [
      '{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}',
      'context size',
      'lasting'
    ],
    ['{"error":{"code":400,"message":"tools is no array"}}', 'tools is no array', 'lasting'],
    ['{"error":{"code":401,"message":"no entry"}}', 'no entry', 'key'],
    ['{"choices":[{"index":0,"error":{"code":502,"message":"upstream gone"},"delta":{}}]}', 'upstream gone', 'passing'],
    ['{"error":{"code":429,"message":"See your plan and billing details"}}', 'billing', 'lasting'],
    ['{"choices":[{"error":{"message":"over quota","code":"insufficient_quota"}}]}', 'over quota', 'lasting'],
    [
      '{"error":{"message":"Provider returned error","metadata":{"raw":"no GPU is free"}}}',
      'no GPU is free',
      'passing'
    ],
    ['{"error":{"message":"Bad","metadata":{"raw":"{\\"error\\":{\\"message\\":\\"ill\\"}}"}}}', 'Bad: ill', 'passing'],
    ['{"error":{"message":"bad token","type":"authentication_error"}}', 'bad token', 'key'],
    ['{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}', 'quota', 'lasting']
  ]
  for (const [body, words, meaning] of errors)
    for (const text of [body, `data: ${HELLO}\n\ndata: ${body}\n\n`]) {
      const { fault } = read(text)
      t.alike([fault?.kind, fault?.meaning, fault?.message.includes(words)], ['failed', meaning, true], text)
    }
  const named = [
    '{"message":"Overloaded","code":529}',
    '"Overloaded"',
    'Overloaded',
    '{"error":{"message":"Overloaded"}}'
  ]
  for (const data of named) {
    const { fault } = read(`data: ${HELLO}\n\nevent: error\ndata: ${data}\n\n`)
    t.alike([fault?.kind, fault?.meaning, fault?.message], ['failed', 'passing', 'failed: Overloaded'], data)
  }
  for (const body of ['{"detail":"no such model"}', '{"message":"no such model"}'])
    t.is(read(body).fault?.message, 'failed: no such model', 'alone with HTTP 200')
  t.is(read(`data: ${chunk({ content: 'a' }, 'stop').replace('{', '{"error":null,')}\n\n`).fault, null)
})

test('an answer that ends before its finish was dropped, and a body that is none cannot be used', (t) => {
  const dropped = [
    '',
    ' \n',
    `data: ${HELLO}\n\n`,
    `data: ${HELLO}\n\ndata: {"cho`,
    ': wait\n\n',
    'data: \n\n',
    '{"choices":',
    'data: {"choices": nonsense\n\n'
  ]
  for (const text of dropped) t.is(read(text).fault?.kind, 'dropped', JSON.stringify(text))
  for (const text of ['<h1>hello</h1>', '{"object":"list","data":[]}']) t.is(read(text).fault?.kind, 'unreadable', text)
})

test('a frame is bounded in depth, not in the length of its text', (t) => {
  const long = 'x'.repeat(1_100_000)
  for (const text of [
    `data: ${chunk({ content: long }, 'stop')}\n\n`,
    JSON.stringify({ choices: [{ index: 0, message: { content: long } }] })
  ])
    t.is(read(text).fault, null)
  const deep = '{"choices":'.repeat(100_000) + '1' + '}'.repeat(100_000)
  t.is(read(`data: ${deep}\n\n`).fault?.kind, 'dropped')
  t.is(read(`data: {"error":${deep}}\n\n`).fault?.kind, 'dropped')
})

test('chunks do not depend on the cuts between bytes, for any bytes', async (t) => {
  const good = SHAPES.flatMap((shape) => [
    eventsOf([...shape.text(['wörld', '👋']), shape.usage(1, 2)]),
    ...Object.values(shape.refusals).map(({ body }) => body)
  ])
  const body = fc.oneof(fc.constantFrom(...good), fc.string({ unit: 'binary', maxLength: 200 }), fc.json())
  const property = fc.property(body, fc.array(fc.nat(2000), { maxLength: 20 }), (text, cuts) => {
    const bytes = Buffer.from(text)
    const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
    const pieces = places.slice(1).map((end, at) => new Uint8Array(bytes.subarray(places[at], end)))
    const [one, other] = [read(bytes), read(...pieces)]
    return JSON.stringify(one.chunks) === JSON.stringify(other.chunks) && one.fault?.message === other.fault?.message
  })
  await holds(t, property, 500)
})
