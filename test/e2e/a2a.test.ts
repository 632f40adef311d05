import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ask, type GatewayNode, gatewayNode, streamed, type StreamEvent } from '../support/a2a.js'
import { localMesh, testMesh, untilAgent, untilTrue } from '../support/nodes.js'

let said = 0
const v1 = (input: unknown, more: object = {}): object => ({
  message: {
    messageId: `m${++said}`,
    role: 'ROLE_USER',
    parts: [typeof input === 'string' ? { text: input } : { data: input }],
    ...more
  }
})
const v03 = (input: unknown, more: object = {}): object => ({
  message: {
    kind: 'message',
    messageId: `m${++said}`,
    role: 'user',
    parts: [typeof input === 'string' ? { kind: 'text', text: input } : { kind: 'data', data: input }],
    ...more
  }
})
const rpc = (method: string, params?: object, id: unknown = 1): object => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params === undefined ? {} : { params })
})

/** A value deep in JSON, by names. */
function at(value: unknown, ...names: readonly (string | number)[]): unknown {
  return names.reduce<unknown>((one, name) => (one as Record<string | number, unknown> | undefined)?.[name], value)
}

async function call(
  node: GatewayNode,
  method: string,
  params?: object,
  place = '/agents/talk'
): Promise<Record<string, unknown>> {
  return (await ask(node, place, { json: rpc(method, params) })).body
}

test('a task is sent, read, listed and canceled in both versions, over JSON-RPC and REST', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const one = await call(node, 'SendMessage', v1('hello'))
  t.alike(
    [at(one, 'result', 'task', 'status', 'state'), at(one, 'result', 'task', 'artifacts', 0, 'parts')],
    ['TASK_STATE_COMPLETED', [{ text: 'you said hello' }]]
  )
  const id = at(one, 'result', 'task', 'id') as string
  const old = await call(node, 'message/send', v03('hello'))
  t.alike(
    [at(old, 'result', 'kind'), at(old, 'result', 'status', 'state'), at(old, 'result', 'artifacts', 0, 'parts')],
    ['task', 'completed', [{ kind: 'text', text: 'you said hello' }]]
  )
  const rest = await ask(node, '/agents/talk/message:send', { json: v1('hello') })
  t.alike([rest.status, at(rest.body, 'task', 'status', 'state')], [200, 'TASK_STATE_COMPLETED'])
  const oldRest = await ask(node, '/agents/talk/v1/message:send', {
    json: {
      message: { messageId: 'r1', role: 'ROLE_USER', content: [{ text: 'hello' }] },
      configuration: { blocking: true }
    }
  })
  t.alike(
    [at(oldRest.body, 'task', 'status', 'state'), at(oldRest.body, 'task', 'history', 0, 'content')],
    ['TASK_STATE_COMPLETED', [{ text: 'hello' }]]
  )
  for (const [method, state] of [
    ['GetTask', 'TASK_STATE_COMPLETED'],
    ['tasks/get', 'completed']
  ] as const)
    t.is(at(await call(node, method, { id }), 'result', 'status', 'state'), state)
  t.is(
    at((await ask(node, `/a2a/tasks/${id}`)).body, 'status', 'state'),
    'TASK_STATE_COMPLETED',
    'also where the gateway has its own paths'
  )
  const list = await call(node, 'ListTasks', { pageSize: 3 })
  t.alike([at(list, 'result', 'totalSize'), (at(list, 'result', 'tasks') as unknown[]).length], [4, 3])
  const rest2 = await call(node, 'tasks/list', {
    pageSize: 3,
    pageToken: at(list, 'result', 'nextPageToken') as string
  })
  t.alike([(at(rest2, 'result', 'tasks') as unknown[]).length, at(rest2, 'result', 'nextPageToken')], [1, ''])
  t.is(
    at(
      (await ask(node, `/agents/talk/tasks?contextId=${String(at(one, 'result', 'task', 'contextId'))}`)).body,
      'totalSize'
    ),
    1
  )
  t.is(at((await ask(node, '/agents/talk/tasks?status=TASK_STATE_WORKING')).body, 'totalSize'), 0)
  const until = path.join(node.dir, 'never')
  const running = await call(node, 'SendMessage', { ...v1({ until }), configuration: { returnImmediately: true } })
  const task = at(running, 'result', 'task', 'id') as string
  t.is(at(await call(node, 'CancelTask', { id: task }), 'result', 'status', 'state'), 'TASK_STATE_CANCELED')
  t.is(at(await call(node, 'tasks/cancel', { id: task }), 'error', 'code'), -32_002)
  t.is(
    (await node.node.json<{ state: string }>(['tasks', 'show', task])).state,
    'canceled',
    'it is a task of the node like any other'
  )
})

test('an agent asks back, and its client answers, in both versions', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  for (const [method, say, state, done] of [
    ['SendMessage', v1, 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'],
    ['message/send', v03, 'input-required', 'completed']
  ] as const) {
    const asked = await call(node, method, say({ ask: 'Which one?' }))
    const task = (at(asked, 'result', 'task') ?? at(asked, 'result')) as Record<string, unknown>
    t.alike([at(task, 'status', 'state'), at(task, 'status', 'message', 'parts', 0, 'text')], [state, 'Which one?'])
    const answered = await call(node, method, say('that one', { taskId: task['id'] }))
    const end = (at(answered, 'result', 'task') ?? at(answered, 'result')) as Record<string, unknown>
    t.alike([end['id'], end['contextId'], at(end, 'status', 'state')], [task['id'], task['contextId'], done])
    t.is((end['history'] as unknown[]).length, 3)
    t.is(at(await call(node, method, say('more', { taskId: task['id'] })), 'error', 'code'), -32_004, 'it has ended')
  }
})

test('an end that an agent states is the state of its task on every wire, in the mesh and in a swarm', async (t) => {
  const refusals = { rejected: [422, 'task_rejected'], failed: [500, 'internal_error'], canceled: [409, 'conflict'] }
  const node = await gatewayNode(await localMesh(t), 'a')
  for (const [named, state, code] of [
    ['rejected', 'rejected', 'TASK_FAILED'],
    ['TASK_STATE_FAILED', 'failed', 'TASK_FAILED'],
    ['cancelled', 'canceled', 'CANCELED']
  ] as const) {
    const input = { state: named, why: 'not on Sundays' }
    const one = at(await call(node, 'SendMessage', v1(input)), 'result', 'task', 'status')
    t.alike(
      [at(one, 'state'), at(one, 'message', 'parts', 0, 'text')],
      [`TASK_STATE_${state.toUpperCase()}`, 'not on Sundays'],
      `JSON-RPC: ${named}`
    )
    const old = at(await call(node, 'message/send', v03(input)), 'result', 'status')
    t.alike([at(old, 'state'), at(old, 'message', 'parts', 0, 'text')], [state, 'not on Sundays'], '0.3')
    const rest = (await ask(node, '/agents/talk/message:send', { json: v1(input) })).body
    t.is(at(rest, 'task', 'status', 'state'), `TASK_STATE_${state.toUpperCase()}`, 'REST')
    const run = await ask(node, '/agents/talk/run', { json: { prompt: JSON.stringify(input) } })
    t.alike([run.status, run.body['error']], refusals[state], `run: ${JSON.stringify(run.body)}`)
    const called = await node.node.cli(['call', 'talk', 'talk.say', JSON.stringify(input), '--json'])
    t.alike([called.code, at(JSON.parse(called.stdout), 'error', 'code')], [1, code], called.stdout + called.stderr)
    const [last] = (await node.node.json<{ tasks: { state: string }[] }>(['tasks'])).tasks
    t.is(last?.state, state, 'tasks')
    const swarm = await node.node.cli([
      'swarm',
      'run',
      'try',
      '--strategy',
      'each',
      '--capability',
      'talk.say',
      '--input',
      JSON.stringify(input),
      '--json'
    ])
    t.is(swarm.code, 1, swarm.stdout + swarm.stderr)
  }
})

test('a node is killed in the middle of a stream: a client that reconnects with the last id gets 4, 5, ... and nothing twice', async (t) => {
  const mesh = await testMesh(t)
  const before = await gatewayNode(mesh, 'a')
  const gate = path.join(before.dir, 'gate-')
  const seen: StreamEvent[] = []
  const params = v1({ chunks: ['one ', 'two ', 'three'], gate })
  for await (const event of streamed(before, '/agents/talk', { json: rpc('SendStreamingMessage', params) })) {
    seen.push(event)
    if (event.id === 3) break
  }
  t.alike(
    seen.map(({ id }) => id),
    [1, 2, 3]
  )
  const id = at(seen[0], 'data', 'result', 'task', 'id') as string
  before.node.kill('SIGKILL')
  await before.node.exited
  for (const step of [1, 2]) await fs.writeFile(`${gate}${step}`, '')
  const after = await gatewayNode(mesh, 'a', { home: before.node.home, dir: before.dir, token: before.token })
  const rest: StreamEvent[] = []
  for await (const event of streamed(after, `/agents/talk/tasks/${id}:subscribe`, {
    headers: { 'last-event-id': '3' }
  }))
    rest.push(event)
  t.is(rest[0]?.id, 4)
  t.alike(
    rest.map((event) => event.id),
    rest.map((_, index) => index + 4),
    'no gap and no repeat'
  )
  t.is(at(rest.at(-1), 'data', 'statusUpdate', 'status', 'state'), 'TASK_STATE_COMPLETED')
  const task = (await ask(after, `/agents/talk/tasks/${id}`)).body
  t.alike(
    at(task, 'artifacts', 0, 'parts'),
    [{ text: 'one ' }, { text: 'two ' }, { text: 'three' }],
    'the chunks of the run that ended with its node are replaced'
  )
})

test('an agent of another node is reached by a URL of this one', async (t) => {
  const mesh = await localMesh(t)
  const far = await gatewayNode(mesh, 'far')
  const { code } = await far.node.api.call('invite.create', { trust: 'mine' })
  const near = await mesh.start('near', { join: code, args: ['--http', '0'] })
  await untilAgent(near, 'talk@far')
  const { token } = await near.json<{ token: string }>(['a2a', 'token', 'create'])
  const here: GatewayNode = { node: near, url: near.info.http ?? '', token, dir: far.dir }
  const done = await call(here, 'SendMessage', v1('over there'), `/agents/${encodeURIComponent('talk@far')}`)
  t.is(at(done, 'result', 'task', 'artifacts', 0, 'parts', 0, 'text'), 'you said over there')
  const routed = await call(here, 'SendMessage', v1('by skill', { metadata: { skillId: 'talk.say' } }), '/a2a')
  t.is(at(routed, 'result', 'task', 'status', 'state'), 'TASK_STATE_COMPLETED')
  const refused = await call(here, 'SendMessage', v1({ state: 'rejected', why: 'not here' }), '/agents/talk@far')
  t.alike(
    [
      at(refused, 'result', 'task', 'status', 'state'),
      at(refused, 'result', 'task', 'status', 'message', 'parts', 0, 'text')
    ],
    ['TASK_STATE_REJECTED', 'not here'],
    'an end that an agent of another node states'
  )
  const events: number[] = []
  for await (const event of streamed(here, '/agents/talk@far/message:stream', { json: v1({ chunks: ['a'] }) }))
    events.push(event.id)
  t.alike(
    events,
    events.map((_, index) => index + 1)
  )
})

test('each agent answers at the URL of its card, also when agents of other nodes have its id', async (t) => {
  const mesh = await localMesh(t)
  const here = await gatewayNode(mesh, 'here')
  const { code } = await here.node.api.call('invite.create', { trust: 'mine' })
  await untilAgent(await mesh.start('there', { join: code }), 'text@here')
  await untilAgent(here.node, 'text@there')
  for (const id of ['text', 'text@there']) {
    const cardUrl = async (): Promise<unknown> =>
      (await ask(here, `/agents/${id}/.well-known/agent-card.json`)).body['url']
    await untilTrue(async () => (await cardUrl()) === `${here.url}/agents/${id}`, 'the card says that URL')
    const { status, body } = await ask(here, `/agents/${id}/message:send`, { json: v1('one two') })
    t.alike([status, at(body, 'message', 'parts', 0, 'data', 'words')], [200, 2], id)
    const ran = await ask(here, `/agents/${id}/run`, { json: { prompt: 'one two' } })
    t.alike([ran.status, at(ran.body, 'result', 'words')], [200, 2], id)
    const shown = await ask(here, `/agents/${id}`)
    t.alike([shown.status, shown.body['origin']], [200, id === 'text' ? 'local' : 'remote'], id)
  }
  const skill = { metadata: { skillId: 'text/text.stats' } }
  t.is(
    at(await call(here, 'SendMessage', v1('one', skill), '/a2a'), 'result', 'message', 'parts', 0, 'data', 'words'),
    1
  )
})

test('every fault is reported in the form of the protocol on every wire, never as HTML, and nothing hangs', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  await rpcFaults(t, node)
  await restFaults(t, node)
})

async function rpcFaults(t: Assert, node: GatewayNode): Promise<void> {
  const raw = async (body: string, headers: Record<string, string> = {}): Promise<[number, unknown, unknown]> => {
    const { status, type, body: json } = await ask(node, '/agents/talk', { method: 'POST', body, headers })
    t.is(type, 'application/json')
    return [status, at(json, 'error', 'code'), json['id']]
  }
  const send = (params: unknown, method = 'SendMessage'): string =>
    JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
  const cases: [string, readonly [number, number, unknown], string, Record<string, string>?][] = [
    ['{', [200, -32_700, null], 'no JSON'],
    ['', [200, -32_700, null], 'nothing'],
    ['[]', [200, -32_600, null], 'an empty batch'],
    [`[${send(v1('a'))}]`, [200, -32_600, null], 'a batch'],
    ['1', [200, -32_600, null], 'no object'],
    [JSON.stringify({ id: 1, method: 'GetTask' }), [200, -32_600, 1], 'no version'],
    [JSON.stringify({ jsonrpc: '2.0', id: {}, method: 'GetTask' }), [200, -32_600, null], 'an id that is none'],
    [JSON.stringify({ jsonrpc: '2.0', method: 'GetTask' }), [200, -32_600, null], 'no id'],
    [send({}, 'NoSuchMethod'), [200, -32_601, 7], 'an unknown method'],
    [send({}, 'constructor'), [200, -32_601, 7], 'a name of an object'],
    [send([]), [200, -32_602, 7], 'params that are a list'],
    [send({}), [200, -32_602, 7], 'no message'],
    [send({ message: { messageId: 'x', role: 'ROLE_USER', parts: [] } }), [200, -32_602, 7], 'no parts'],
    [
      send({ message: { messageId: 'x', role: 'ROLE_AGENT', parts: [{ text: 'a' }] } }),
      [200, -32_602, 7],
      'a message of an agent'
    ],
    [send(v1('a', { taskId: 'task_none' })), [200, -32_001, 7], 'an unknown task'],
    [send(v1('a', { metadata: { skillId: 'no' } })), [200, -32_602, 7], 'an unknown skill'],
    [send({ id: 'task_none' }, 'GetTask'), [200, -32_001, 7], 'an unknown task'],
    [send({ pageToken: 'x' }, 'ListTasks'), [200, -32_602, 7], 'a bad cursor'],
    [send({ pageSize: 0 }, 'ListTasks'), [200, -32_602, 7], 'a page of nothing'],
    [send({ status: 'NONE' }, 'ListTasks'), [200, -32_602, 7], 'no state'],
    [
      send({ ...v1('a'), configuration: { taskPushNotificationConfig: { url: 'http://127.0.0.1' } } }),
      [200, -32_602, 7],
      'a webhook inside'
    ],
    [send({ ...v1('a'), configuration: { historyLength: -1 } }), [200, -32_602, 7], 'a negative length'],
    [send(v1('a')), [200, -32_009, 7], 'a version that is not spoken', { 'a2a-version': '2.0' }],
    [send(v1('a')), [415, -32_005, 7], 'another content type', { 'content-type': 'text/plain' }],
    [
      `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${'['.repeat(100)}${']'.repeat(100)}}`,
      [200, -32_600, 1],
      'deep JSON'
    ],
    ['{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"__proto__":{"id":"x"}}}', [200, -32_600, 1], 'a prototype']
  ]
  for (const [body, expected, what, headers] of cases) t.alike(await raw(body, headers), expected, what)
}

async function restFaults(t: Assert, node: GatewayNode): Promise<void> {
  const big = JSON.stringify(v1('x'.repeat(11_000_000)))
  const cases: [string, RequestInit, number, string | number][] = [
    ['/agents/talk/tasks/task_none', {}, 404, 'NOT_FOUND'],
    ['/agents/talk/v1/tasks/task_none', {}, 404, -32_001],
    ['/agents/talk/nothing', {}, 404, 'NOT_FOUND'],
    ['/agents/talk/tasks/%', {}, 404, 'NOT_FOUND'],
    ['/agents/nobody/message:send', { method: 'POST', body: JSON.stringify(v1('a')) }, 400, 'INVALID_ARGUMENT'],
    ['/agents/talk/message:send', { method: 'POST', body: '[]' }, 400, 'INVALID_ARGUMENT'],
    ['/agents/talk/message:send', { method: 'POST', body: '{' }, 400, 'INVALID_ARGUMENT'],
    ['/agents/talk/tasks?pageSize=1e9', {}, 400, 'INVALID_ARGUMENT'],
    ['/agents/talk/tasks?pageToken=..', {}, 400, 'INVALID_ARGUMENT'],
    ['/agents/talk/tasks/x/pushNotificationConfigs', {}, 404, 'NOT_FOUND']
  ]
  for (const [place, init, status, name] of cases) {
    const { body, ...answer } = await ask(node, place, init)
    const code = typeof name === 'number' ? body['code'] : at(body, 'error', 'status')
    t.alike([answer.status, code, answer.type], [status, name, 'application/json'], place)
  }
  t.is((await ask(node, '/agents/talk', { method: 'POST', body: big })).status, 413)
  t.is((await ask({ ...node, token: 'a2a_no' }, '/agents/talk', { json: rpc('GetTask', { id: 'x' }) })).status, 401)
  t.is((await fetch(`${node.url}/agents/talk/tasks`)).status, 401, 'this machine needs a token, too')
}

test('a client that hangs up leaves its task at work; one that continues to read gets the end', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const until = path.join(node.dir, 'go')
  let id = ''
  for await (const { data } of streamed(node, '/agents/talk/message:stream', { json: v1({ until, text: 'a' }) })) {
    id = at(data, 'task', 'id') as string
    break
  }
  const subscribed = streamed(node, `/agents/talk/tasks/${id}:subscribe`)
  t.is(at((await subscribed.next()).value, 'data', 'task', 'id'), id, 'first the task as it is')
  await fs.writeFile(until, '')
  const rest: StreamEvent[] = []
  for await (const event of subscribed) rest.push(event)
  t.is(at(rest.at(-1), 'data', 'statusUpdate', 'status', 'state'), 'TASK_STATE_COMPLETED')
  await untilTrue(
    async () => at((await ask(node, `/agents/talk/tasks/${id}`)).body, 'status', 'state') === 'TASK_STATE_COMPLETED',
    'it has ended'
  )
  const after = await ask(node, `/agents/talk/tasks/${id}:subscribe`)
  t.alike([after.status, at(after.body, 'error', 'details', 0, 'reason')], [400, 'UNSUPPORTED_OPERATION'])
})
