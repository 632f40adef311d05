import net from 'node:net'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { TokenDays } from '../../../../src/adapters/agents/llm/daily-usage.js'
import type { Timer } from '../../../../src/kit/clock.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { failureText, resultOf } from '../../../support/agents/open-agent.js'
import { recordedRun } from '../../../support/agents/task.js'
import { holds } from '../../../support/holds.js'
import { llmAgent, toolsThat } from '../../../support/llm/llm-agent.js'
import { type Answerer, begun, llmServer, raw, refusing, streaming } from '../../../support/llm/llm-server.js'
import { eventsOf, LLAMA_CPP, OLLAMA, SHAPES, VLLM } from '../../../support/llm/shapes.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { ask, HELLO, PIECES, tokensOf, usageOf } from '../../../support/llm/llm-ask.js'

/** A clock that tells when so many timers of a length were set. */
class WatchedClock extends ManualClock {
  readonly #set: number[] = []
  #told: () => void = () => {}

  override after(delayMs: number, run: () => void): Timer {
    this.#set.push(delayMs)
    this.#told()
    return super.after(delayMs, run)
  }

  async armed(delayMs: number, count: number): Promise<void> {
    while (this.#set.filter((one) => one === delayMs).length < count)
      await new Promise<void>((resolve) => (this.#told = resolve))
  }
}

/** Where nobody listens any more. */
async function closedUrl(): Promise<string> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}/v1`
}

/** An answer that may be read in pieces of these bytes. */
function answerIn(chunks: readonly Uint8Array[]): () => Promise<Response> {
  return () =>
    Promise.resolve(new Response(ReadableStream.from(chunks), { headers: { 'content-type': 'text/event-stream' } }))
}

test('an answer is the same however its bytes are cut', async (t: Assert) => {
  const bytes = SHAPES.map((shape) => Buffer.from(eventsOf([...shape.text(PIECES), shape.usage(3, 4)])))
  const property = fc.asyncProperty(
    fc.nat(SHAPES.length - 1),
    fc.array(fc.nat(2000), { maxLength: 40 }),
    async (which, cuts) => {
      const all = bytes[which]
      const places = [0, ...cuts.map((cut) => cut % all.length).sort((a, b) => a - b), all.length]
      const chunks = places.slice(1).map((end, i) => new Uint8Array(all.subarray(places[i], end)))
      const run = recordedRun()
      const outcome = await llmAgent(t, 'http://server/v1', { fetch: answerIn(chunks) }).run(HELLO, run)
      return resultOf(outcome) === PIECES.join('') && tokensOf(run) === PIECES.join('')
    }
  )
  await holds(t, property, 100)
})

test('a run ends with a value and never hangs, for any answer of a server', async (t: Assert) => {
  const good = SHAPES.flatMap((shape) => [
    ...shape.text(PIECES),
    ...shape.calls([{ name: 'a', pieces: ['{', '}'] }]),
    shape.usage(1, 1)
  ])
  const line = fc.oneof(
    fc.constantFrom(...good),
    fc.string(),
    fc.json(),
    fc.constantFrom(
      '[DONE]',
      '{"error":{"message":"boom"}}',
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{}}]}}]}'
    )
  )
  const property = fc.asyncProperty(
    fc.array(line, { maxLength: 12 }),
    fc.constantFrom('data: ', '', 'event: x\ndata:'),
    async (lines, head) => {
      const text = lines.map((one) => `${head}${one}\n\n`).join('')
      const options = {
        fetch: answerIn([Buffer.from(text)]),
        spec: { maxTurns: 2 },
        tools: toolsThat(['a'], () => 'done')
      }
      const outcome = await llmAgent(t, 'http://server/v1', options).run(HELLO, recordedRun())
      return outcome.ok ? typeof outcome.result === 'string' : outcome.message.length < 1000
    }
  )
  await holds(t, property, 150)
})

test('an absent server is LLM_INIT_FAILED and may be tried again, and its address is not disclosed', async (t: Assert) => {
  const server = await llmServer(t, streaming([]))
  const outcome = await llmAgent(t, await closedUrl()).run(HELLO, recordedRun())
  t.is(failureText(t, 'LLM_INIT_FAILED', outcome), 'the LLM provider local cannot be reached (ECONNREFUSED)')
  t.is(outcome.ok ? null : outcome.retryable, true)
  const elsewhere = await llmAgent(t, server.url, { spec: { provider: 'none' } }).run(HELLO, recordedRun())
  t.ok(/has no LLM provider none/.test(failureText(t, 'LLM_INIT_FAILED', elsewhere)))
  const nameless = await llmAgent(t, server.url, { provider: { model: null } }).run(HELLO, recordedRun())
  t.ok(/names a model/.test(failureText(t, 'LLM_INIT_FAILED', nameless)))
  t.is(server.seen.length, 0)
})

test('a redirect is not followed: the key is not for elsewhere', async (t: Assert) => {
  const other = await llmServer(t, streaming(OLLAMA.text(['no'])))
  const outcome = await ask(t, [
    (response) => response.writeHead(307, { location: `${other.url}/chat/completions` }).end()
  ])
  t.ok(/redirects/.test(failureText(t, 'LLM_INIT_FAILED', outcome)))
  t.is(other.seen.length, 0)
})

test('a server that is loading or busy may be asked again, after the time that it names', async (t: Assert) => {
  const loading = { status: 503, body: '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}' }
  const outcome = await ask(t, [refusing(loading)])
  t.ok(failureText(t, 'LLM_INIT_FAILED', outcome).endsWith('Loading model'))
  t.is(outcome.ok ? null : outcome.retryable, true)
  const busy = await ask(t, [
    refusing({ status: 429, body: '{"error":{"message":"slow down"}}' }, { 'retry-after': '7' })
  ])
  failureText(t, 'TASK_FAILED', busy)
  t.alike(busy.ok ? null : [busy.retryable, busy.data], [true, { retryAfter: 7 }])
})

test('a server lost after the first answer is no failed start, and a tool with effects is not repeated', async (t: Assert) => {
  const calls = VLLM.calls([{ name: 'weather', pieces: ['{"city":"Hilo"}'] }])
  const outcome = await ask(t, [streaming(calls), refusing({ status: 503, body: 'gone' })], {
    tools: toolsThat(['weather'], () => 1)
  })
  failureText(t, 'TASK_FAILED', outcome)
  t.is(outcome.ok ? null : outcome.retryable, false)
})

test('a server that falls silent, before its answer or within it, is given up after its time', async (t: Assert) => {
  const [first = ''] = OLLAMA.text(['Hel'])
  const silences: readonly Answerer[] = [() => {}, (response) => void begun(response).write(`data: ${first}\n\n`)]
  for (const [at, silence] of silences.entries()) {
    const server = await llmServer(t, silence)
    const clock = new WatchedClock()
    const running = llmAgent(t, server.url, { clock, provider: { stallTimeoutMs: 5000 } }).run(HELLO, recordedRun())
    const { closed } = await server.question(0)
    // The head and each chunk have a time of their own.
    await clock.armed(5000, at === 0 ? 1 : 3)
    clock.advance(5000)
    t.is(failureText(t, 'TIMEOUT', await running), 'the LLM provider local said nothing for 5 s')
    await closed
  }
})

test('a server that drops its answer, or ends it before its end, fails the run, which may be repeated', async (t: Assert) => {
  const [first = ''] = OLLAMA.text(['Hel'])
  const dropped = await ask(t, [(response) => begun(response).write(`data: ${first}\n\n`, () => response.destroy())])
  t.ok(/lost in the middle/.test(failureText(t, 'TASK_FAILED', dropped)))
  t.is(dropped.ok ? null : dropped.retryable, true)
  for (const text of ['', `data: ${first}\n\n`, 'data: [DONE]\n\n'])
    failureText(t, 'TASK_FAILED', await ask(t, [raw(text)]))
})

test('garbage, an error within the answer and an answer that is no stream fail the run with the text of the server', async (t: Assert) => {
  failureText(t, 'TASK_FAILED', await ask(t, [raw('data: {"choices": nonsense\n\n')]))
  const told = failureText(
    t,
    'TASK_FAILED',
    await ask(t, [raw('data: {"error":{"code":500,"message":"CUDA out of memory","type":"server_error"}}\n\n')])
  )
  t.ok(told.includes('CUDA out of memory'), told)
  failureText(
    t,
    'TASK_FAILED',
    await ask(t, [(response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>')])
  )
})

test('an answer that was cut off or refused is no result', async (t: Assert) => {
  for (const shape of SHAPES) {
    t.ok(/cut off/.test(failureText(t, 'TASK_FAILED', await ask(t, [streaming(shape.ended('Hel', 'length'))]))))
    t.ok(/refuses/.test(failureText(t, 'TASK_FAILED', await ask(t, [streaming(shape.ended('', 'content_filter'))]))))
  }
})

test('more text than a result may have ends the answer', async (t: Assert) => {
  const [first = ''] = VLLM.text([])
  const server = await llmServer(t, (response) => {
    begun(response).write(`data: ${first}\n\n`)
    const [, piece = ''] = VLLM.text(['x'.repeat(1000)])
    const more = (): void => {
      while (!response.destroyed && response.write(`data: ${piece}\n\n`)) continue
      response.once('drain', more)
    }
    more()
  })
  const told = failureText(t, 'PAYLOAD_TOO_LARGE', await llmAgent(t, server.url).run(HELLO, recordedRun()))
  t.ok(told.endsWith('more than 65536 bytes of text (a2a.limits.maxOutput of its agent file)'), told)
  await server.seen[0].closed
  t.pass('the server is not read any further')
})

test('an answer that says nothing without end is given up at its bytes', async (t: Assert) => {
  const comment = new Uint8Array(Buffer.from(`: ${'.'.repeat(1_048_570)}\n\n`))
  const outcome = await llmAgent(t, 'http://server/v1', {
    fetch: answerIn(Array.from({ length: 80 }, () => comment))
  }).run(HELLO, recordedRun())
  t.ok(/more than 67108864 bytes/.test(failureText(t, 'PAYLOAD_TOO_LARGE', outcome)))
})

test('a refusal without end is not read to its end', async (t: Assert) => {
  const server = await llmServer(t, (response) => {
    response.writeHead(500)
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) continue
      response.once('drain', more)
    }
    more()
  })
  t.ok(failureText(t, 'TASK_FAILED', await llmAgent(t, server.url).run(HELLO, recordedRun())).length < 500)
  await server.seen[0].closed
})

test('a cancel ends the question at the server and the tools under way', async (t: Assert) => {
  const server = await llmServer(t, (response) => void begun(response).write(`data: ${OLLAMA.text(['Hel'])[0]}\n\n`))
  const run = recordedRun()
  const lines: string[] = []
  const running = llmAgent(t, server.url, { lines }).run(HELLO, run)
  const { closed } = await server.question(0)
  run.abort()
  failureText(t, 'CANCELED', await running)
  await closed
  const calling = await llmServer(t, streaming(OLLAMA.calls([{ name: 'slow', pieces: ['{}'] }])))
  const second = recordedRun()
  const tools = toolsThat(['slow'], async (_name, _args, signal) => {
    const stopped = new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(new NodeError('CANCELED', 'stopped')))
    )
    second.abort()
    await stopped
  })
  failureText(t, 'CANCELED', await llmAgent(t, calling.url, { tools, lines }).run(HELLO, second))
  t.is(calling.seen.length, 1, 'the model is asked no more')
  t.alike(
    lines.filter((line) => line.startsWith('warn')),
    [],
    'no provider is blamed'
  )
})

test('a run has a bounded number of turns', async (t: Assert) => {
  const server = await llmServer(t, streaming(OLLAMA.calls([{ name: 'again', pieces: ['{}'] }])))
  const outcome = await llmAgent(t, server.url, {
    tools: toolsThat(['again'], () => 'once more'),
    spec: { maxTurns: 3 }
  }).run(HELLO, recordedRun())
  t.is(failureText(t, 'TASK_FAILED', outcome), 'no answer within 3 turns')
  t.is(server.seen.length, 3)
})

test('a run has a bounded number of tokens, and an answer no more than the rest of them', async (t: Assert) => {
  const server = await llmServer(
    t,
    streaming([...OLLAMA.calls([{ name: 'again', pieces: ['{}'] }]), OLLAMA.usage(30, 10)])
  )
  const options = {
    tools: toolsThat(['again'], () => 'once more'),
    spec: { budget: { run: 100, day: 1000 }, maxTokens: 90 }
  }
  const outcome = await llmAgent(t, server.url, options).run(HELLO, recordedRun())
  t.is(failureText(t, 'TASK_FAILED', outcome), 'no answer within 100 tokens')
  t.alike(
    server.seen.map(({ body }) => body.max_tokens),
    [90, 60, 20]
  )
})

test('the tokens of a day are for all runs of the agent, and come back with the next day', async (t: Assert) => {
  const server = await llmServer(t, streaming([...OLLAMA.text(['yes']), OLLAMA.usage(60, 10)]))
  const clock = new ManualClock(Date.parse('2026-01-01T23:00:00Z'))
  const days = new TokenDays({ clock, store: null, onFault: () => {} })
  const options = { days, clock, spec: { budget: { run: 1000, day: 130 } } }
  t.is(resultOf(await llmAgent(t, server.url, options).run(HELLO, recordedRun())), 'yes')
  t.is(resultOf(await llmAgent(t, server.url, options).run(HELLO, recordedRun())), 'yes', 'a begun turn is paid whole')
  const spent = await llmAgent(t, server.url, options).run(HELLO, recordedRun())
  t.is(failureText(t, 'TASK_FAILED', spent), 'the agent subject has used its 130 tokens of today')
  t.alike(spent.ok ? null : [spent.retryable, (spent.data as { retryAfter: number }).retryAfter], [true, 3600])
  clock.advance(3_600_000)
  t.is(resultOf(await llmAgent(t, server.url, options).run(HELLO, recordedRun())), 'yes')
})

test('calls of unknown tools, arguments that are no JSON and too many calls are answered to the model, not run', async (t: Assert) => {
  const calls = [
    { name: 'nobody', pieces: ['{}'] },
    { name: 'weather', pieces: ['{"city":'] },
    { name: 'weather', pieces: ['[1]'] },
    { name: 'weather', pieces: ['{"__proto__":{"a":1}}'] },
    ...Array.from({ length: 14 }, () => ({ name: 'weather', pieces: ['{"city":"Hilo"}'] }))
  ]
  const server = await llmServer(t, streaming(VLLM.calls(calls)), streaming(VLLM.text(['ok'])))
  const called: string[] = []
  const tools = toolsThat(['weather'], (name) => {
    if (name !== 'weather') throw new NodeError('CAPABILITY_NOT_FOUND', 'there is no such tool')
    return called.push(name)
  })
  t.is(resultOf(await llmAgent(t, server.url, { tools }).run(HELLO, recordedRun())), 'ok')
  t.is(called.length, 12)
  const contents = server.seen[1].body.messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content))
  t.ok(contents[0].startsWith('CAPABILITY_NOT_FOUND'), contents[0])
  for (const at of [1, 2, 3]) t.ok(contents[at].startsWith('INVALID_INPUT'), contents[at])
  for (const at of [16, 17]) t.ok(contents[at].startsWith('OVERLOADED'), contents[at])
})

test('a tool result that is too long is cut, and the model is informed', async (t: Assert) => {
  const server = await llmServer(
    t,
    streaming(LLAMA_CPP.calls([{ name: 'big', pieces: ['{}'] }])),
    streaming(LLAMA_CPP.text(['ok']))
  )
  await llmAgent(t, server.url, { tools: toolsThat(['big'], () => 'x'.repeat(100_000)) }).run(HELLO, recordedRun())
  const content = String(server.seen[1].body.messages.at(-1)?.content)
  t.ok(content.length < 33_000 && content.endsWith('(cut off: 100000 characters)'))
})

test('a capability that gives no text gets the JSON of the answer, also out of a fence', async (t: Assert) => {
  const outputSchema = { type: 'object', required: ['n'] }
  const definition = {
    capabilities: [{ id: 'subject.do', name: 'Do', description: '', inputSchema: {}, outputSchema }]
  }
  const server = await llmServer(
    t,
    streaming(OLLAMA.text(['```json\n', '{"n": 1}', '\n```'])),
    streaming(OLLAMA.text(['one']))
  )
  const agent = llmAgent(t, server.url, { definition })
  t.alike(resultOf(await agent.run(HELLO, recordedRun())), { n: 1 })
  failureText(t, 'INVALID_OUTPUT', await agent.run(HELLO, recordedRun()))
  t.ok(
    String(server.seen[0].body.messages[0].content).includes(JSON.stringify(outputSchema)),
    'the model gets the schema'
  )
})

test('an answer is over at its end, though the server keeps the connection open', async (t: Assert) => {
  for (const shape of SHAPES) {
    const server = await llmServer(
      t,
      (response) => void begun(response).write(eventsOf([...shape.text(PIECES), shape.usage(3, 4)]))
    )
    const run = recordedRun()
    t.is(resultOf(await llmAgent(t, server.url).run(HELLO, run)), PIECES.join(''))
    t.alike(usageOf(run), { turns: 1, inputTokens: 3, outputTokens: 4, isEstimated: false })
    await server.seen[0].closed
  }
})

test('after a finish reason, token counts are waited for, and an end that does not come is not', async (t: Assert) => {
  const text = VLLM.text(PIECES).map((chunk) => `data: ${chunk}\n\n`)
  const server = await llmServer(t, (response) => void begun(response).write(text.join('')))
  const clock = new WatchedClock()
  const running = llmAgent(t, server.url, { clock }).run(HELLO, recordedRun())
  await clock.armed(2000, 1)
  clock.advance(2000)
  t.is(resultOf(await running), PIECES.join(''))
  await server.seen[0].closed
  let send: (more: string) => void = () => {}
  const slow = await llmServer(t, (response) => {
    begun(response).write(text.join(''))
    send = (more) => void response.write(more)
  })
  const [counting, run] = [new WatchedClock(), recordedRun()]
  const counted = llmAgent(t, slow.url, { clock: counting }).run(HELLO, run)
  await counting.armed(2000, 1)
  send(eventsOf([VLLM.usage(3, 4)]))
  t.is(resultOf(await counted), PIECES.join(''))
  t.alike(usageOf(run), { turns: 1, inputTokens: 3, outputTokens: 4, isEstimated: false })
})

test('a whole completion counts as its stream, with its tools and its token counts', async (t: Assert) => {
  const whole = (message: object, finish: string): Answerer =>
    refusing({
      status: 200,
      body: JSON.stringify({
        choices: [{ index: 0, message, finish_reason: finish }],
        usage: { prompt_tokens: 3, completion_tokens: 4 }
      })
    })
  const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Hilo"}' } }
  const server = await llmServer(
    t,
    whole({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls'),
    whole({ role: 'assistant', content: 'Rain.' }, 'stop')
  )
  const called: unknown[] = []
  const run = recordedRun()
  t.is(
    resultOf(
      await llmAgent(t, server.url, { tools: toolsThat(['weather'], (_, args) => called.push(args)) }).run(HELLO, run)
    ),
    'Rain.'
  )
  t.alike(called, [{ city: 'Hilo' }])
  t.alike(usageOf(run), { turns: 2, inputTokens: 6, outputTokens: 8, isEstimated: false })
})

test('an answer whose error is null is a result', async (t: Assert) => {
  const choice = { index: 0, finish_reason: 'stop' }
  const text = { role: 'assistant', content: 'hello' }
  const whole = JSON.stringify({ choices: [{ ...choice, message: text }], error: null })
  const frame = JSON.stringify({ choices: [{ ...choice, delta: text }], error: null, usage: null })
  for (const answer of [refusing({ status: 200, body: whole }), streaming([frame])])
    t.is(resultOf(await ask(t, [answer])), 'hello')
})

test('no content, or reasoning alone, is no answer, and may be asked for again', async (t: Assert) => {
  const empty = [VLLM.text([]), LLAMA_CPP.text([]), OLLAMA.text([' ', '\n']), VLLM.text(['<think>', 'Hm.', '</think>'])]
  for (const chunks of empty) {
    const outcome = await ask(t, [streaming(chunks)])
    t.is(failureText(t, 'TASK_FAILED', outcome), 'the model gave no answer')
    t.is(outcome.ok ? null : outcome.retryable, true)
  }
})

test('an answer that ends as a tag could begin is whole', async (t: Assert) => {
  for (const text of ['<', '<thin', '[TH', ' <reason']) {
    const run = recordedRun()
    t.is(resultOf(await ask(t, [streaming(VLLM.text([text]))], {}, run)), text)
    t.is(tokensOf(run), text)
  }
})

test('reasoning in tags is neither in the result nor in its reports', async (t: Assert) => {
  const run = recordedRun()
  t.is(
    resultOf(await ask(t, [streaming(VLLM.text(['<thi', 'nk>Hm', '.</th', 'ink>', 'hel', 'lo']))], {}, run)),
    'hello'
  )
  t.is(tokensOf(run), 'hello')
  const long = ['<think>', 'x'.repeat(70_000), '</think>', 'hello']
  t.is(resultOf(await ask(t, [streaming(VLLM.text(long))])), 'hello', 'nor does it count as text of the result')
  t.is(resultOf(await ask(t, [streaming(VLLM.text(['Hm.\n</think>\n\nhello']))])), 'hello')
  const lone = ['hmm {"no":2}</th', 'ink>\n{"a"', ':1}']
  t.is(resultOf(await ask(t, [streaming(VLLM.text(lone))])), '{"a":1}')
})
