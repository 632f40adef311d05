import test, { type Assert } from 'brittle'
import { mcpContent } from '../../../../src/adapters/mcp/tools/mcp-content.js'
import type { InvocationRecord } from '../../../../src/ports/tool-calls.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { ANYTHING, call, McpScene, payloadOf, request, type RawClient } from '../../../support/mcp.js'

/** A scene with a tool `slow` that ends when told, in the way that is told. */
class SlowScene extends McpScene {
  readonly signals: AbortSignal[] = []
  readonly ends: { return(value: unknown): void; throw(error: unknown): void }[] = []
  #begun: (() => void)[] = []

  constructor(options: ConstructorParameters<typeof McpScene>[0] = {}) {
    super(options)
    this.tool('slow', (_, { abortSignal }) => {
      this.signals.push(abortSignal)
      for (const begun of this.#begun.splice(0)) begun()
      return new Promise((resolve, reject) => this.ends.push({ return: resolve, throw: reject }))
    })
  }

  async begun(count: number): Promise<void> {
    while (this.ends.length < count) await new Promise<void>((resolve) => this.#begun.push(resolve))
  }

  get running(): number {
    return this.limits.getTelemetry().concurrentExecutions
  }
}

async function opened(t: Assert, scene: McpScene): Promise<RawClient> {
  const client = scene.connect(t)
  await client.open()
  return client
}

function outcomesOf(records: readonly InvocationRecord[]): string[] {
  return records.map((one) => one.outcome)
}

test('outcome success: the result is answered, and on record with ids and duration', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow', { a: 1 }))
  await scene.begun(1)
  scene.clock.advance(250)
  scene.ends[0].return({ b: 2 })
  const [answer] = await client.heard(1)
  t.alike(answer, { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: '{"b":2}' }], isError: false } })
  t.alike(scene.records, [
    {
      tool: 'slow',
      arguments: { a: 1 },
      result: { b: 2 },
      durationMs: 250,
      outcome: 'success',
      runId: 'run-1',
      correlationId: 'correlation-1',
      at: scene.clock.now()
    }
  ])
})

test('outcome tool_error: an error of a handler is a structured error with the ids of the call', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow', {}, { correlationId: 'mine', other: 1 }))
  await scene.begun(1)
  scene.ends[0].throw(new Error('broken'))
  const [answer] = await client.heard(1)
  t.is(answer.result?.['isError'], true)
  t.alike(payloadOf(answer), { code: 'INTERNAL', message: 'broken', runId: 'run-1', correlationId: 'mine' })
  t.alike(outcomesOf(scene.records), ['tool_error'])
  t.is(scene.running, 0)
})

test('outcome timeout, then late_completed: answered once at the deadline, the slot is taken until the handler ends', async (t: Assert) => {
  const scene = new SlowScene({ maxConcurrentExecutions: 1, maxWaitingExecutions: 0 })
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  scene.clock.advance(29_999)
  t.absent(scene.signals[0].aborted)
  scene.clock.advance(1)
  const [answer] = await client.heard(1)
  t.is(payloadOf(answer)['code'], 'TIMEOUT')
  t.ok(scene.signals[0].aborted)
  t.is(scene.running, 1)
  t.is(payloadOf(await client.ask(call(2, 'slow')))['code'], 'RESOURCE_EXHAUSTED', 'no slot yet')
  scene.clock.advance(500)
  scene.ends[0].return('late')
  await scene.recorded(3)
  t.alike(outcomesOf(scene.records), ['timeout', 'tool_error', 'late_completed'])
  t.alike(
    [scene.records[2].result, scene.records[2].durationMs, scene.records[2].runId],
    ['late', 30_500, scene.records[0].runId]
  )
  t.is(scene.running, 0)
  t.ok(scene.logs.some(({ level, fields }) => level === 'warn' && fields['outcome'] === 'late_completed'))
  t.alike((await client.ask(request(3, 'ping'))).id, 3, 'nothing was answered in between')
})

test('outcome late_completed also when a handler throws after its deadline', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  scene.signals[0].addEventListener('abort', () => scene.ends[0].throw(scene.signals[0].reason))
  scene.clock.advance(30_000)
  await scene.recorded(2)
  t.alike(outcomesOf(scene.records), ['timeout', 'late_completed'])
  t.is((await client.heard(1)).length, 1)
})

test('outcome aborted: the connection ended and the handler stopped', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  scene.signals[0].addEventListener('abort', () =>
    scene.ends[0].throw(Object.assign(new Error('Aborted'), { code: 'ABORTED' }))
  )
  await client.served.close()
  await scene.recorded(1)
  t.alike(outcomesOf(scene.records), ['aborted'])
  t.is(client.answers.length, 0)
  t.is(scene.running, 0)
})

test('outcome disconnected_completed: the connection ended and the handler went on to its end', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  client.stream.end()
  await client.served.closed
  t.ok(scene.signals[0].aborted)
  t.is(scene.running, 0, 'its slot is free at once')
  scene.ends[0].return('done')
  await scene.recorded(1)
  t.alike([scene.records[0].outcome, scene.records[0].result], ['disconnected_completed', 'done'])
  t.alike([scene.running, client.answers.length], [0, 0])
})

test('after a disconnect the deadline still counts: a later end is late_completed', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  await client.served.close()
  scene.clock.advance(30_000)
  scene.ends[0].return('done')
  await scene.recorded(2)
  t.alike(outcomesOf(scene.records), ['timeout', 'late_completed'])
  t.is(client.answers.length, 0)
})

test('outcome protocol_error: a call whose shape is wrong is on record, without a run', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  t.is((await client.ask(call(1, 'slow', []))).error?.code, -32_602)
  const { runId, ...record } = scene.records[0]
  t.is(runId, undefined)
  t.alike(record, {
    tool: 'slow',
    arguments: [],
    error: { code: '-32602', message: 'Invalid params' },
    durationMs: 0,
    outcome: 'protocol_error',
    correlationId: 'connection-1',
    at: scene.clock.now()
  })
  t.is(scene.ends.length, 0)
})

test('a client that cancels gets no answer, its handler gets the order to stop, and its id is free again', async (t: Assert) => {
  const scene = new SlowScene()
  const client = await opened(t, scene)
  client.write(call(1, 'slow'))
  await scene.begun(1)
  const aborted = new Promise<void>((resolve) => scene.signals[0].addEventListener('abort', () => resolve()))
  client.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'enough' } })
  await aborted
  t.is(scene.running, 0, 'its slot is free at once')
  scene.ends[0].throw(scene.signals[0].reason)
  await scene.recorded(1)
  t.alike(outcomesOf(scene.records), ['aborted'])
  t.alike((await client.ask(request(1, 'ping'))).result, {}, 'the first line that comes back')
  t.is(scene.running, 0)
})

test('the steps come in their order: size, existence, slot, schema', async (t: Assert) => {
  const scene = new SlowScene({ maxConcurrentExecutions: 1, maxWaitingExecutions: 0, maxPayloadBytes: 1024 })
  scene.registry.register(
    {
      name: 'strict',
      description: '',
      inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    },
    () => Promise.resolve('ran')
  )
  const client = await opened(t, scene)
  const codeOf = async (name: string, args: unknown): Promise<unknown> =>
    payloadOf(await client.ask(call('x', name, args)))['code']
  const large = { text: 'x'.repeat(2000) }
  t.is(await codeOf('strict', {}), 'INVALID_ARGUMENT')
  client.write(call(1, 'slow'))
  await scene.begun(1)
  t.is(await codeOf('no.such', large), 'RESOURCE_EXHAUSTED', 'size before existence')
  t.is(await codeOf('no.such', {}), 'NOT_FOUND', 'existence before a slot')
  t.is(await codeOf('strict', {}), 'RESOURCE_EXHAUSTED', 'a slot before the schema')
  scene.ends[0].return(null)
  await client.heard(5)
  t.is(await codeOf('strict', { n: 'x' }), 'INVALID_ARGUMENT')
  t.is(scene.running, 0, 'a refused call holds no slot')
})

test('an unknown tool is NOT_FOUND with a list of known tools', async (t: Assert) => {
  const scene = new McpScene()
  for (const name of ['text.stats', 'text.words', 'host.info']) scene.tool(name, () => Promise.resolve(null))
  const client = await opened(t, scene)
  const error = payloadOf(await client.ask(call(1, 'text__stat')))
  t.is(error['code'], 'NOT_FOUND')
  t.alike(error['details'], {
    code: 'CAPABILITY_NOT_FOUND',
    retryable: true,
    next: ['a2a-node agents'],
    didYouMean: ['text__stats'],
    available: ['host__info', 'text__stats', 'text__words'],
    total: 3
  })
})

test('an error of arguments names their path', async (t: Assert) => {
  const scene = new McpScene()
  scene.registry.register(
    {
      name: 'strict',
      description: '',
      inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    },
    () => Promise.resolve('ran')
  )
  const client = await opened(t, scene)
  const error = payloadOf(await client.ask(call(1, 'strict', { n: 'x' })))
  t.alike(error['details'], {
    code: 'INVALID_INPUT',
    retryable: false,
    next: ['a2a-node agents show <agent>'],
    faults: [{ path: '/n', message: 'must be integer' }]
  })
  t.alike([error['runId'], error['correlationId']], ['run-1', 'correlation-1'])
  t.is(payloadOf(await client.ask(call(2, 'strict')))['message'], 'the arguments do not fit: must have "n"')
  const { message, details } = payloadOf(await client.ask(call(3, 'strict', { n: 'x'.repeat(1_048_576) })))
  t.is(message, 'the input is 1048584 bytes of JSON; at most 1048576 are taken (tools.maxPayloadBytes of the node)')
  t.is((details as { readonly retryable?: unknown }).retryable, false)
  t.alike((details as { readonly next?: unknown }).next, ['a2a-node config show'], 'it shows the setting')
  const far = payloadOf(await client.ask(call(4, 'strict', { n: 'x'.repeat(1_200_000) })))
  t.ok(String(far['message']).includes('tools.maxPayloadBytes'), 'also far beyond it')
})

test('results: undefined is null, a value without a JSON form is INTERNAL, content of the protocol passes', async (t: Assert) => {
  const scene = new McpScene()
  const image = { content: [{ type: 'image' as const, data: 'AAAA', mimeType: 'image/png' }] }
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  const results: Record<string, unknown> = { none: undefined, big: 1n, loop, code: () => 1, image: mcpContent(image) }
  results['toJSON'] = {
    toJSON() {
      throw new Error('no')
    }
  }
  results['failed'] = mcpContent({ content: [{ type: 'text', text: 'no' }], isError: true })
  results['loopContent'] = mcpContent({ content: [], structuredContent: loop })
  scene.tool('give', ({ what }) => Promise.resolve(results[String(what)]))
  const client = await opened(t, scene)
  const give = (what: string): ReturnType<RawClient['ask']> => client.ask(call(1, 'give', { what }))
  t.is(payloadOf(await give('none')), null)
  for (const what of ['big', 'loop', 'code', 'toJSON', 'loopContent']) {
    const { code, details } = payloadOf(await give(what))
    t.alike([code, details], ['INTERNAL', { reason: 'result_not_serializable' }], what)
  }
  t.alike((await give('image')).result?.['content'], image.content)
  t.is(scene.records.at(-1)?.outcome, 'success')
  t.is((await give('failed')).result?.['isError'], true)
  t.is(scene.records.at(-1)?.outcome, 'tool_error')
})

test('a tool with an output schema answers with structured content too', async (t: Assert) => {
  const scene = new McpScene()
  const outputSchema = { type: 'object', properties: { n: { type: 'integer' } } }
  scene.registry.register({ name: 'count', description: '', inputSchema: ANYTHING, outputSchema }, () =>
    Promise.resolve({ n: 1, gone: undefined })
  )
  const client = await scene.client(t)
  await client.listTools()
  const result = await client.callTool({ name: 'count' })
  t.alike(result.structuredContent, { n: 1 })
  t.alike(result.content, [{ type: 'text', text: '{"n":1}' }])
})

test('errors of the node keep their code and next step', async (t: Assert) => {
  const scene = new McpScene()
  scene.tool('refused', () => Promise.reject(new NodeError('TIER_VIOLATION', 'L3 may not', { data: { rule: 'L3' } })))
  const client = await opened(t, scene)
  const { code, message, details } = payloadOf(await client.ask(call(1, 'refused')))
  t.alike([code, message], ['UNAUTHORIZED', 'L3 may not'])
  t.alike(details, { code: 'TIER_VIOLATION', retryable: false, next: ['a2a-node agents'], data: { rule: 'L3' } })
})

test('a source that throws, a validator that throws and a handler that throws at once harm nobody', async (t: Assert) => {
  const definition = { name: 'odd', description: '', inputSchema: ANYTHING }
  const scene = new McpScene({
    sources: [
      {
        list: () => [],
        get: (name) => {
          if (name === 'throws') throw new Error('the source is broken')
          if (name !== 'odd') return undefined
          return {
            definition,
            handler: () => Promise.resolve(1),
            validator: () => {
              throw new Error('the validator is broken')
            }
          }
        }
      }
    ]
  })
  scene.tool('sync', () => {
    throw new Error('at once')
  })
  const client = await opened(t, scene)
  for (const [name, message] of [
    ['throws', 'the source is broken'],
    ['odd', 'the validator is broken'],
    ['sync', 'at once']
  ]) {
    const error = payloadOf(await client.ask(call(1, name)))
    t.alike([error['code'], error['message']], ['INTERNAL', message])
  }
  t.is(scene.limits.getTelemetry().concurrentExecutions, 0)
})

test('a hook that throws does not stop the answer', async (t: Assert) => {
  const scene = new McpScene({
    onCompleted: () => {
      throw new Error('full')
    }
  })
  scene.tool('echo', (args) => Promise.resolve(args))
  const client = await opened(t, scene)
  t.alike(payloadOf(await client.ask(call(1, 'echo', { a: 1 }))), { a: 1 })
  t.is((await client.ask(call(2, 7))).error?.code, -32_602)
})

test('a handler gets its ids, a log with them, and never _meta', async (t: Assert) => {
  const scene = new McpScene()
  let seen: unknown[] = []
  scene.tool('look', (args, { runId, correlationId, log }) => {
    seen = [args, runId, correlationId]
    log('info', 'looked', { runId: 'forged', at: 1 })
    return Promise.resolve(null)
  })
  const client = await opened(t, scene)
  await client.ask(call(1, 'look', { a: 1 }, { correlationId: 'mine', progressToken: 1 }))
  t.alike(seen, [{ a: 1 }, 'run-1', 'mine'])
  t.alike(scene.logs.find((one) => one.message === 'looked')?.fields, {
    tool: 'look',
    runId: 'run-1',
    correlationId: 'mine',
    at: 1
  })
})

test('a tool may have a deadline of its own, or none', async (t: Assert) => {
  const scene = new SlowScene()
  const definition = { description: '', inputSchema: ANYTHING }
  const never = (): Promise<never> => new Promise(() => {})
  scene.registry.register({ ...definition, name: 'quick' }, never, { timeoutMs: 10 })
  scene.registry.register({ ...definition, name: 'free' }, never, { timeoutMs: null })
  const client = await opened(t, scene)
  client.write(call(1, 'free'), call(2, 'quick'), call(3, 'slow'))
  await scene.begun(1)
  scene.clock.advance(10)
  t.alike([(await client.heard(1))[0].id, payloadOf(client.answers[0])['code']], [2, 'TIMEOUT'])
  scene.clock.advance(86_400_000)
  t.alike([(await client.heard(2))[1].id, scene.clock.pending], [3, 0])
  scene.ends[0].return(null)
})

test('progress goes to a client that asked for it: rising, the newest last, none after the answer', async (t: Assert) => {
  const scene = new McpScene()
  let late = (): void => {}
  scene.tool('steps', async (_, { progress }) => {
    for (let i = 1; i <= 100; i++) progress({ progress: i, total: 100, message: `step ${i}` })
    progress({ progress: 5 })
    progress({ progress: Number.NaN })
    await new Promise((resolve) => setImmediate(resolve))
    late = () => progress({ progress: 200 })
    return 'done'
  })
  const client = await opened(t, scene)
  t.is(payloadOf(await client.ask(call(1, 'steps'))), 'done')
  t.is(client.told.length, 0, 'nobody asked')
  await client.ask(call(2, 'steps', {}, { progressToken: 'p' }))
  const told = client.told.map((one) => one['params'] as { progressToken: string; progress: number })
  t.ok(told.length >= 2 && told.length < 100, `${told.length} reports`)
  t.alike(
    [...told].sort((a, b) => a.progress - b.progress),
    told
  )
  t.alike(client.told.at(-1)?.['params'], { progressToken: 'p', progress: 100, total: 100, message: 'step 100' })
  const count = told.length
  late()
  await client.ask(request(3, 'ping'))
  t.is(client.told.length, count)
})
