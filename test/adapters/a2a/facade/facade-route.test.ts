import test, { type Assert } from 'brittle'
import { eventsOf, facadeScene } from '../../../support/facade-scene.js'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const ERRORS = {
  agent: 'agent_not_found',
  guard: 'guardrail_violation',
  internal: 'internal_error',
  wrong: 'invalid_request'
} as const

test('agents are listed and shown, under /agents and /v1/agents alike', async (t: Assert) => {
  const { ask } = await facadeScene(t)
  for (const base of ['/agents', '/v1/agents']) {
    const { status, body } = await ask(base)
    const agents = body['agents'] as { name: string; capabilities: string[] }[]
    t.is(status, 200)
    t.alike(agents.map(({ name }) => name).sort(), ['asks', 'echo', 'fails', 'slow', 'talk'])
    const one = await ask(`${base}/echo`)
    t.is(one.status, 200)
    t.alike(
      [one.body['name'], one.body['version'], one.body['status'], one.body['defaultCapability']],
      ['echo', '1.0.0', 'ready', 'echo.do']
    )
    t.alike(
      (one.body['capabilities'] as { id: string }[]).map(({ id }) => id),
      ['echo.do']
    )
    for (const name of ['none', 'operator']) {
      const none = await ask(`${base}/${name}`)
      t.alike([none.status, none.body['error'], typeof none.body['message']], [404, ERRORS.agent, 'string'], name)
    }
  }
})

test('the beginning of a name matches no agent, and the error suggests the full name', async (t: Assert) => {
  const { ask, node } = await facadeScene(t)
  t.is((await ask(`/agents/echo@${node.name}`)).status, 200)
  for (const place of ['echo', `echo@${node.name}`, `echo@${node.id}`])
    t.is((await ask(`/agents/${place}/run`, { json: { prompt: 'hi' } })).body['result'], 'hi', place)
  for (const [path, init] of [
    ['/agents/fail'],
    ['/agents/echo@owne'],
    [`/v1/agents/echo@${node.id.slice(0, 8)}`],
    ['/agents/fail/run', { json: { prompt: 'hi' } }],
    [`/agents/fail@${node.name}/stream`, { json: { prompt: 'hi' } }],
    ['/v1/agents/fail/stream?prompt=hi']
  ] as const) {
    const { status, body } = await ask(path, init)
    t.alike([status, body['error']], [404, ERRORS.agent], path)
  }
  t.is((await ask('/agents/fail')).body['message'], 'no agent "fail" is served here; did you mean fails?')
})

test('a prompt goes to the default capability, its context beside it, and the answer names its task and session', async (t: Assert) => {
  const { ask, gateway } = await facadeScene(t)
  for (const base of ['/agents', '/v1/agents']) {
    const { status, body, headers } = await ask(`${base}/echo/run`, { json: { prompt: 'hello' } })
    t.alike([status, body['result'], headers.get('content-type')], [200, 'hello', 'application/json'])
    const { taskId, sessionId, durationMs, ...meta } = body['meta'] as Record<string, unknown>
    t.alike(meta, { agent: 'echo', capability: 'echo.do', state: 'completed' })
    t.ok(typeof taskId === 'string' && typeof sessionId === 'string' && typeof durationMs === 'number')
  }
  const given = await ask('/agents/echo/run', {
    json: { prompt: 'hello', context: { place: 'Rome' }, sessionId: null, toolsPolicy: null }
  })
  t.alike(given.body['result'], { text: 'hello', context: { place: 'Rome' } })
  const object = await ask('/agents/echo/run', { json: { prompt: '{"a": 1}', context: {} } })
  t.alike(object.body['result'], { a: 1, context: {} }, 'a prompt that is an object is the input, as it is for `send`')
  const meta = (await ask('/agents/echo/run', { json: { prompt: 'x', sessionId: 's 1' } })).body['meta'] as Record<
    string,
    string
  >
  const by = {
    kind: 'token',
    name: 'token test',
    id: 'tok_1',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send']
  } as const
  t.alike([meta['sessionId'], (await gateway.get(by, meta['taskId'] ?? '')).task.contextId], ['s 1', 's 1'])
})

test('a weaker token must justify a request to a stronger agent, in a run and in a stream, and the error names the field', async (t: Assert) => {
  const { ask } = await facadeScene(t, { principal: { tier: 2 } })
  const refused = await ask('/agents/echo/run', { json: { prompt: 'hi' } })
  t.alike([refused.status, refused.body['error']], [403, 'forbidden'])
  t.ok(String(refused.body['message']).endsWith(', in justification'), String(refused.body['message']))
  const json = { prompt: 'hi', justification: 'the report is due' }
  t.is((await ask('/agents/echo/run', { json })).body['result'], 'hi')
  const [last] = eventsOf((await ask('/agents/echo/stream', { json })).text)
  t.alike([last?.event, last?.data['content']], ['result', 'hi'])
})

test('a session continues with the question of its agent', async (t: Assert) => {
  const { ask } = await facadeScene(t)
  const run = async (prompt: string, sessionId: string): Promise<unknown[]> => {
    const { body } = await ask('/agents/asks/run', { json: { prompt, sessionId } })
    const meta = body['meta'] as Record<string, unknown>
    return [body['result'], meta['state'], meta['taskId']]
  }
  const [asked, state, task] = await run('begin', 'one')
  t.alike([asked, state], ['Which one?', 'input-required'])
  t.not((await run('the red one', 'two'))[2], task, 'another session is another task')
  t.alike(await run('the blue one', 'one'), ['took the blue one', 'completed', task])
  t.not((await run('again', 'one'))[2], task, 'an ended task is not resumed')
  await run('begin', 'three')
  const { text } = await ask('/agents/asks/stream', { json: { prompt: 'by stream', sessionId: 'three' } })
  t.alike(
    eventsOf(text).map(({ event, data }) => [event, data['content']]),
    [['result', 'took by stream']]
  )
})

test('a stream sends reports as states and ends with the result', async (t: Assert) => {
  const { ask } = await facadeScene(t)
  for (const answer of [
    await ask('/agents/talk/stream', { json: { prompt: 'go' } }),
    await ask('/v1/agents/talk/stream?prompt=go&sessionId=s'),
    await ask('/agents/talk/stream?prompt=go')
  ]) {
    t.alike([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream'])
    const events = eventsOf(answer.text)
    t.alike(
      events.map(({ event, data }) => [event, data['token'] ?? data['data'] ?? data['content']]),
      [
        ['state', 'one '],
        ['state', 'two '],
        ['state', { step: 2 }],
        ['state', 'three'],
        ['result', 'one two three']
      ]
    )
    t.ok(events.every(({ id }, at) => at === 0 || id >= (events[at - 1]?.id ?? 0)))
  }
  const failed = eventsOf((await ask('/agents/fails/stream', { json: { prompt: 'go' } })).text)
  t.alike(
    failed.map(({ event, data }) => [event, data]),
    [['error', { error: ERRORS.internal, message: 'Unexpected failure' }]]
  )
})

test('a client that hangs up cancels its work, in a run and in a stream', async (t: Assert) => {
  const { ask, slow, url } = await facadeScene(t)
  for (const path of ['/agents/slow/run', '/agents/slow/stream']) {
    const gone = new AbortController()
    const asked = ask(path, { json: { prompt: 'go' }, signal: gone.signal }).catch(() => null)
    while (slow.open.length === 0) await turn()
    const { signal } = slow.open[0]?.run ?? {}
    const aborted = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    gone.abort()
    await asked
    await aborted
    t.pass(`${url}${path}`)
    while (slow.open.length > 0) await turn()
  }
})

test('a node that stops cancels runs and informs the clients that wait for a run or follow one', async (t: Assert) => {
  const { ask, slow, close } = await facadeScene(t)
  const run = ask('/agents/slow/run', { json: { prompt: 'go' } })
  const streams = [ask('/agents/slow/stream', { json: { prompt: 'go' } }), ask('/v1/agents/slow/stream?prompt=go')]
  while (slow.open.length < 3) await turn()
  const closed = close()
  const { status, body, headers } = await run
  const told = { error: 'unavailable', message: 'the node is stopping: the task is canceled' }
  t.alike([status, body, headers.get('retry-after')], [503, told, '5'])
  for (const stream of await Promise.all(streams)) {
    t.is(stream.status, 200)
    t.alike(
      eventsOf(stream.text).map(({ event, data }) => [event, data]),
      [['error', told]]
    )
  }
  await closed
  while (slow.open.length > 0) await turn()
})

test('an EventSource that reconnects after the end of its stream gets the order to stop, and nothing runs again', async (t: Assert) => {
  const { ask, gateway } = await facadeScene(t)
  const first = eventsOf((await ask('/agents/talk/stream?prompt=go&sessionId=s1')).text)
  t.is(first.at(-1)?.event, 'result')
  for (const id of [String(first.at(-1)?.id), '0', '']) {
    const again = await ask('/agents/talk/stream?prompt=go&sessionId=s1', { headers: { 'last-event-id': id } })
    t.alike([again.status, again.text, again.headers.get('cache-control')], [204, '', 'no-store'], id)
  }
  const by = {
    kind: 'token',
    name: 'token test',
    id: 'tok_1',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send']
  } as const
  t.is((await gateway.list(by, { contextId: 's1' }, { after: null, limit: 10, isWhole: false })).tasks.length, 1)
  const posted = await ask('/agents/talk/stream', { json: { prompt: 'go' }, headers: { 'last-event-id': '3' } })
  t.is(posted.status, 200)
})

test('a run that takes too long is canceled and answered', async (t: Assert) => {
  const { ask, slow, clock } = await facadeScene(t)
  const asked = ask('/agents/slow/run', { json: { prompt: 'go' } })
  while (slow.open.length === 0) await turn()
  clock.advance(600_000)
  const { status, body } = await asked
  t.alike([status, body['error']], [504, 'timeout'])
  while (slow.open.length > 0) await turn()
})

test('every fault of a request has the same error shape, and nothing runs', async (t: Assert) => {
  const { ask, slow } = await facadeScene(t, { guardrails: { input: { maxLength: 50, deny: [] } } })
  const wrong: readonly [unknown, number, string][] = [
    [{}, 400, ERRORS.wrong],
    [{ prompt: '' }, 400, ERRORS.wrong],
    [{ prompt: ' \n' }, 400, ERRORS.wrong],
    [{ prompt: 7 }, 400, ERRORS.wrong],
    [{ prompt: ['a'] }, 400, ERRORS.wrong],
    [[{ prompt: 'a' }], 400, ERRORS.wrong],
    ['a', 400, ERRORS.wrong],
    [null, 400, ERRORS.wrong],
    [{ prompt: 'a', sessionId: '' }, 400, ERRORS.wrong],
    [{ prompt: 'a', sessionId: 1 }, 400, ERRORS.wrong],
    [{ prompt: 'a', sessionId: 'x'.repeat(257) }, 400, ERRORS.wrong],
    [{ prompt: 'a', context: [] }, 400, ERRORS.wrong],
    [{ prompt: 'a', context: 'b' }, 400, ERRORS.wrong],
    [{ prompt: 'a', justification: 'é'.repeat(513) }, 400, ERRORS.wrong],
    [{ prompt: 'a', justification: ['b'] }, 400, ERRORS.wrong],
    [{ prompt: 'a', toolsPolicy: { allow: ['x'] } }, 400, ERRORS.wrong],
    [{ prompt: 'a', promt: 'b' }, 400, ERRORS.wrong],
    [{ prompt: 'x'.repeat(51) }, 400, ERRORS.guard],
    [{ prompt: 'a', context: { b: 'x'.repeat(50) } }, 400, ERRORS.guard]
  ]
  for (const path of ['/agents/slow/run', '/agents/slow/stream', '/v1/agents/slow/run'])
    for (const [json, status, error] of wrong) {
      const { body, headers, ...answer } = await ask(path, { json })
      t.alike(
        [answer.status, body['error'], headers.get('content-type')],
        [status, error, 'application/json'],
        JSON.stringify(json)
      )
      t.ok(
        typeof body['message'] === 'string' &&
          Object.keys(body).every((key) => ['error', 'message', 'details'].includes(key))
      )
    }
  const long = await ask('/agents/slow/run', { json: { prompt: 'x'.repeat(51) } })
  t.alike(long.body['details'], { on: 'input', rule: 'maxLength', limit: 50, length: 51 })
  const raw = (body: string, type = 'application/json') =>
    ask('/agents/slow/run', { method: 'POST', body, headers: { 'content-type': type } })
  for (const body of [
    '',
    '{',
    '<html>',
    '{"prompt":"a"}{',
    `${'['.repeat(100)}${']'.repeat(100)}`,
    '{"prompt":"a","context":{"__proto__":{}}}'
  ])
    t.alike([(await raw(body)).status, (await raw(body)).body['error']], [400, ERRORS.wrong], body)
  t.alike(
    [(await raw('{"prompt":"a"}', 'text/html')).status, (await raw('a=b', 'application/x-www-form-urlencoded')).status],
    [415, 415]
  )
  for (const query of ['', '?prompt=', '?prompt=a&prompt=b', '?prompt=a&context=b', '?toolsPolicy=x'])
    t.alike(
      [(await ask(`/agents/slow/stream${query}`)).status, (await ask(`/agents/slow/stream${query}`)).body['error']],
      [400, ERRORS.wrong],
      query
    )
  t.is(slow.tasks.length, 0)
})

test('unknown agents, methods and paths have that error shape, too', async (t: Assert) => {
  const { ask } = await facadeScene(t)
  for (const name of ['none', 'operator', encodeURIComponent('none@nobody'), '..%2F..', encodeURIComponent('<b>')])
    for (const verb of ['run', 'stream']) {
      const { status, body } = await ask(`/agents/${name}/${verb}`, { json: { prompt: 'a' } })
      t.alike([status, body['error']], [404, ERRORS.agent], name)
    }
  for (const [method, path, allow] of [
    ['GET', '/agents/echo/run', 'POST'],
    ['DELETE', '/agents/echo/stream', 'GET, POST'],
    ['DELETE', '/v1/agents', 'GET'],
    ['POST', '/v1/agents/echo', 'GET']
  ] as const) {
    const { status, body, headers } = await ask(path, { method, ...(method === 'POST' ? { body: '{}' } : {}) })
    t.alike([status, body['error'], headers.get('allow')], [405, 'method_not_allowed', allow], `${method} ${path}`)
  }
  for (const path of ['/v1/agents/echo/other', '/v1/agents/echo/run/more'])
    t.alike([(await ask(path)).status, (await ask(path)).body['error']], [404, 'not_found'], path)
  for (const path of [
    '/agents/echo/message:send',
    '/agents/echo/tasks',
    '/agents/echo/v1/tasks',
    '/agents/echo/.well-known/agent-card.json'
  ])
    t.is((await ask(path)).status, 418, `${path} is of another test`)
  t.is((await ask('/agents/echo', { json: {} })).status, 418, 'JSON-RPC')
})

test('a failure of an agent is an unexpected failure for its client, and is logged', async (t: Assert) => {
  const { ask, unexpected } = await facadeScene(t)
  const { status, body, text } = await ask('/agents/fails/run', { json: { prompt: 'go' } })
  t.alike([status, body], [500, { error: ERRORS.internal, message: 'Unexpected failure' }])
  t.absent(text.includes('secret'))
  t.ok(unexpected[0]?.message.includes('the secret reason'))
})

test('callers without the right to send or look are refused, and tiers bind', async (t: Assert) => {
  const reader = await facadeScene(t, { principal: { scopes: ['read'] } })
  t.alike(
    [(await reader.ask('/agents')).status, (await reader.ask('/agents/echo/run', { json: { prompt: 'a' } })).status],
    [200, 403]
  )
  const sender = await facadeScene(t, { principal: { scopes: ['send'] } })
  t.alike((await sender.ask('/agents')).body['error'], 'forbidden')
  t.is((await sender.ask('/agents/echo/run', { json: { prompt: 'a' } })).body['result'], 'a')
  t.is((await sender.ask('/agents/slow/stream', { json: { prompt: 'a' } })).status, 403)
  t.is(sender.slow.tasks.length, 0)
  const weak = await facadeScene(t, { principal: { tier: 3 } })
  const { status, body } = await weak.ask('/agents/echo/run', { json: { prompt: 'a' } })
  t.alike([status, body['error']], [403, 'forbidden'])
})

test('an output that breaks a guardrail is withheld, from a stream all of it', async (t: Assert) => {
  const denied = await facadeScene(t, { guardrails: { output: { maxLength: 100, deny: ['(?i)\\bTWO\\s+three'] } } })
  const run = await denied.ask('/agents/talk/run', { json: { prompt: 'go' } })
  t.alike(
    [run.status, run.body['error'], run.body['details']],
    [400, ERRORS.guard, { on: 'output', rule: 'deny', place: 0 }]
  )
  const { text } = await denied.ask('/agents/talk/stream', { json: { prompt: 'go' } })
  t.alike(
    eventsOf(text).map(({ event, data }) => [event, data['error']]),
    [['error', ERRORS.guard]]
  )
  t.absent(text.includes('one'), 'nothing of it got out before it was known')
  t.is((await denied.ask('/agents/echo/run', { json: { prompt: 'fine' } })).body['result'], 'fine')
  const short = await facadeScene(t, { guardrails: { output: { maxLength: 5, deny: [] } } })
  const cut = eventsOf((await short.ask('/agents/talk/stream', { json: { prompt: 'go' } })).text)
  t.alike(
    cut.map(({ event, data }) => [event, data['token'] ?? data['error']]),
    [
      ['state', 'one '],
      ['error', ERRORS.guard]
    ]
  )
})

test('a pattern is found in the form in which the agent would get the text', async (t: Assert) => {
  const { ask, node } = await facadeScene(t, {
    guardrails: { input: { maxLength: 1000, deny: ['(?i)secret', '^drop'] } }
  })
  for (const json of [
    { prompt: 'a SECRET' },
    { prompt: '{"a": "s\\u0065cret"}' },
    { prompt: 'a', context: { deep: [{ secret: 1 }] } },
    { prompt: 'drop it' }
  ]) {
    const { status, body } = await ask('/agents/echo/run', { json })
    t.alike([status, body['error']], [400, ERRORS.guard], JSON.stringify(json))
  }
  t.is((await ask('/agents/echo/run', { json: { prompt: 'do not drop it' } })).status, 200)
  t.is(node.counted('tasks_started'), 1)
})

test('too many calls are answered with 429 and the seconds after which the next one goes', async (t: Assert) => {
  const { ask, clock } = await facadeScene(t, { rate: { perMinute: 30, burst: 3 } })
  for (let i = 0; i < 3; i++) t.is((await ask('/agents')).status, 200)
  const { status, body, headers } = await ask('/agents/echo/run', { json: { prompt: 'a' } })
  t.alike([status, body['error'], headers.get('retry-after')], [429, 'rate_limited', '2'])
  clock.advance(1999)
  t.is((await ask('/v1/agents')).status, 429)
  clock.advance(1)
  t.is((await ask('/agents/echo/run', { json: { prompt: 'a' } })).status, 200)
})

test('metrics are in the format of Prometheus, for callers with the right to look', async (t: Assert) => {
  const { ask } = await facadeScene(t)
  await ask('/agents/echo/run', { json: { prompt: 'a' } })
  const { status, headers, text } = await ask('/metrics')
  t.alike([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8'])
  t.ok(text.includes('\na2a_node_tasks_completed_total 1\n') && text.endsWith('\n'), text)
  const blind = await facadeScene(t, { principal: { scopes: ['send'] } })
  const refused = await blind.ask('/metrics')
  t.alike([refused.status, (refused.body['error'] as { code: string }).code], [403, 'FORBIDDEN'])
})
