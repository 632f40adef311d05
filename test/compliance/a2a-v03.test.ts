import test, { type Assert } from 'brittle'
import { streamed } from '../support/a2a.js'
import {
  at,
  gathered,
  isOldRpcFault,
  type Json,
  read,
  says03,
  type Subject,
  subject,
  type WireAnswer
} from '../support/compliance.js'

const send = (s: Subject, input: unknown, more: object = {}, configuration: object = {}): Promise<WireAnswer> =>
  s.rpc('message/send', { ...says03(input, more), configuration })
const resultOf = (answer: WireAnswer): Json => answer.body['result'] as Json
/** A message in the REST of 0.3, which is that of its protocol buffers. */
const saysRest = (text: string): object => ({
  message: { messageId: says03('').message['messageId'], role: 'ROLE_USER', content: [{ text }] }
})

test('A2A 0.3: JSON-RPC', async (t) => {
  const s = await subject(t)
  await operations(t, s)
  await streams(t, s)
  await faults(t, s)
})

async function operations(group: Assert, s: Subject): Promise<void> {
  await group.test('7.1 message/send gives a task or a message, marked by its kind', async (t) => {
    const task = resultOf(await send(s, 'hello'))
    t.alike([task['kind'], at(task, 'status', 'state')], ['task', 'completed'])
    t.alike(at(task, 'artifacts', 0, 'parts'), [{ kind: 'text', text: 'you said hello' }])
    const message = resultOf(await s.rpc('message/send', says03('hello'), { at: '/agents/read' }))
    t.alike(
      [message['kind'], message['role'], message['parts']],
      ['message', 'agent', [{ kind: 'text', text: 'read hello' }]]
    )
    t.ok(typeof message['messageId'] === 'string' && typeof message['contextId'] === 'string')
  })
  await group.test(
    '6.1 to 6.7 members of task, status, message, part and artifact are there, in the words of 0.3',
    async (t) => {
      const task = resultOf(await send(s, { a: 1 }, { metadata: { m: 1 } }))
      t.alike(
        ['id', 'contextId', 'status', 'kind'].filter((name) => !(name in task)),
        []
      )
      const message = at(task, 'history', 0)
      t.alike(
        [at(message, 'kind'), at(message, 'role'), at(message, 'parts'), at(message, 'metadata')],
        ['message', 'user', [{ kind: 'data', data: { a: 1 } }], { m: 1 }]
      )
      t.ok(typeof at(task, 'artifacts', 0, 'artifactId') === 'string')
      t.ok((at(task, 'status', 'timestamp') as string).endsWith('Z'))
    }
  )
  await group.test(
    '6.5 parts are text, file (by bytes or uri) and data, and come back as they were sent',
    async (t) => {
      const parts = [
        { kind: 'text', text: 'a' },
        { kind: 'file', file: { name: 'a.txt', mimeType: 'text/plain', bytes: 'aGk=' } },
        { kind: 'file', file: { mimeType: 'text/plain', uri: 'https://example.com/a' } },
        { kind: 'data', data: { n: 1 } }
      ]
      t.alike(at(resultOf(await send(s, '', { parts })), 'history', 0, 'parts'), parts)
    }
  )
  await group.test('7.1.2 blocking waits for the end, blocking: false does not', async (t) => {
    const { until, go } = s.gate()
    const task = resultOf(await send(s, { until, text: 'x' }, {}, { blocking: false }))
    t.ok(['submitted', 'working'].includes(at(task, 'status', 'state') as string))
    await go()
    t.is(at(resultOf(await send(s, 'x', {}, { blocking: true })), 'status', 'state'), 'completed')
  })
  await group.test('7.3 tasks/get gives the task, with at most historyLength messages', async (t) => {
    const { id } = resultOf(await send(s, { ask: 'Which?' }))
    await send(s, 'that', { taskId: id })
    const get = async (historyLength?: number) =>
      resultOf(await s.rpc('tasks/get', { id, historyLength }))['history'] as Json[]
    t.is((await get()).length, 3)
    t.alike(
      (await get(2)).map(({ role }) => role),
      ['agent', 'user']
    )
    t.alike(await get(0), [])
  })
  await group.test('7.4 tasks/cancel gives the task canceled', async (t) => {
    const { id } = resultOf(await send(s, { until: s.gate().until }, {}, { blocking: false }))
    t.is(at(resultOf(await s.rpc('tasks/cancel', { id })), 'status', 'state'), 'canceled')
    isOldRpcFault(t, await s.rpc('tasks/cancel', { id }), -32_002, 'TASK_NOT_CANCELABLE')
  })
  await group.test('9.4 what asks back is input-required, and a message with its taskId goes on', async (t) => {
    const asked = resultOf(await send(s, { ask: 'Which?' }))
    t.alike(
      [at(asked, 'status', 'state'), at(asked, 'status', 'message', 'parts')],
      ['input-required', [{ kind: 'text', text: 'Which?' }]]
    )
    const after = resultOf(await send(s, 'that', { taskId: asked['id'], contextId: asked['contextId'] }))
    t.alike([after['id'], at(after, 'status', 'state')], [asked['id'], 'completed'])
  })
  await group.test('7.10 agent/getAuthenticatedExtendedCard gives the card to any client with a token', async (t) => {
    t.is(resultOf(await s.rpc('agent/getAuthenticatedExtendedCard'))['name'], 'talk')
  })
}

async function streams(group: Assert, s: Subject): Promise<void> {
  await group.test(
    '7.2 message/stream is a task and its updates, each an answer to the request, the last one final',
    async (t) => {
      const json = { jsonrpc: '2.0', id: 's', method: 'message/stream', params: says03({ chunks: ['a', 'b'] }) }
      const events = await s.events('/agents/talk', { json })
      t.ok(events.every(({ data }) => data['jsonrpc'] === '2.0' && data['id'] === 's'))
      const results = events.map(({ data }) => data['result'] as Json)
      t.is(results[0]?.['kind'], 'task')
      t.ok(results.slice(1).every(({ kind }) => kind === 'status-update' || kind === 'artifact-update'))
      t.alike([results.at(-1)?.['final'], at(results.at(-1), 'status', 'state')], [true, 'completed'])
      t.is(results.filter((one) => one['final'] === true).length, 1)
      const chunks = results.filter(({ kind }) => kind === 'artifact-update')
      t.alike(
        chunks.map((one) => [one['append'], one['lastChunk']]),
        [
          [false, false],
          [true, true]
        ]
      )
    }
  )
  await group.test('7.9 tasks/resubscribe goes on with the stream of a task', async (t) => {
    const { until, go } = s.gate()
    const { id } = resultOf(await send(s, { until, text: 'x' }, {}, { blocking: false }))
    const stream = streamed(s.node, '/agents/talk', {
      json: { jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id } }
    })
    t.is(at((await stream.next()).value, 'data', 'result', 'id'), id)
    await go()
    t.is(at((await gathered(stream)).at(-1), 'data', 'result', 'final'), true)
    const asked = resultOf(await send(s, { ask: 'Which?' }))
    const json = { jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id: asked['id'] } }
    const behind = await s.events('/agents/talk', { json, headers: { 'last-event-id': '1' } })
    t.alike(
      [at(behind.at(-1), 'data', 'result', 'status', 'state'), at(behind.at(-1), 'data', 'result', 'final')],
      ['input-required', true]
    )
    const none = await s.events('/agents/talk', { json: { ...json, params: { id: 'task_none' } } })
    t.alike([none.length, at(none[0], 'data', 'error', 'code')], [1, -32_001], 'an error is the only event')
  })
}

async function faults(group: Assert, s: Subject): Promise<void> {
  await group.test('8.1 and 8.2 errors have their numbers', async (t) => {
    isOldRpcFault(t, await s.rpc('nonexistent/method'), -32_601, 'METHOD_NOT_FOUND')
    isOldRpcFault(t, await s.rpc('message/send', { message: { parts: 'invalid' } }), -32_602, 'INVALID_PARAMS')
    isOldRpcFault(
      t,
      await s.rpc('message/send', says03('x', { parts: [{ kind: 'other' }] })),
      -32_602,
      'INVALID_PARAMS'
    )
    isOldRpcFault(t, await s.rpc('tasks/get', { id: 'nonexistent-task-id' }), -32_001, 'TASK_NOT_FOUND')
    isOldRpcFault(t, await send(s, 'x', { taskId: 'nonexistent-task-id' }), -32_001, 'TASK_NOT_FOUND')
    const { id } = resultOf(await send(s, 'hello'))
    isOldRpcFault(t, await send(s, 'more', { taskId: id }), -32_004, 'UNSUPPORTED_OPERATION')
    const file = { kind: 'file', file: { mimeType: 'application/x-unsupported', bytes: 'aGk=' } }
    isOldRpcFault(t, await send(s, '', { parts: [file] }), -32_005, 'CONTENT_TYPE_NOT_SUPPORTED')
  })
  await group.test('a task of another caller is as one that is not', async (t) => {
    const { id } = resultOf(await send(s, 'mine'))
    const none = await s.rpc('tasks/get', { id: 'task_none' })
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/resubscribe'])
      t.alike((await s.rpc(method, { id }, { by: s.stranger })).body, none.body, method)
  })
  await group.test('extensions are asked for and activated by X-A2A-Extensions', async (t) => {
    const card = await read(await fetch(`${s.node.url}/agents/talk/.well-known/agent-card.json`))
    const uri = at(card.body, 'capabilities', 'extensions', 0, 'uri') as string
    const answer = await s.rpc('message/send', says03('x'), {
      headers: { 'x-a2a-extensions': `${uri},https://example.com/none` }
    })
    t.is(answer.headers.get('x-a2a-extensions'), uri)
  })
}

test('A2A 0.3: HTTP+JSON and discovery', async (group) => {
  const s = await subject(group)
  await group.test('3.5.6 every operation has its path below /v1', async (t) => {
    const sent = await s.rest('POST', '/v1/message:send', saysRest('hello'))
    t.alike(
      [sent.status, sent.type, at(sent.body, 'task', 'status', 'state')],
      [200, 'application/json', 'TASK_STATE_COMPLETED']
    )
    const id = at(sent.body, 'task', 'id') as string
    t.alike(at(sent.body, 'task', 'history', 0, 'content'), [{ text: 'hello' }])
    t.is((await s.rest('GET', `/v1/tasks/${id}`)).body['id'], id)
    t.ok(at((await s.rest('GET', '/v1/tasks')).body, 'tasks', 0, 'id'))
    t.is((await s.rest('GET', '/v1/card')).body['name'], 'talk')
    t.is((await s.rest('POST', `/v1/tasks/${id}:cancel`)).body['code'], -32_002)
    const events = await s.events('/agents/talk/v1/message:stream', { json: saysRest('hello') })
    t.alike([Object.keys(events[0]?.data ?? {}), at(events.at(-1), 'data', 'statusUpdate', 'final')], [['task'], true])
  })
  await group.test('3.2.3 errors of REST are those of JSON-RPC with the status of their kind', async (t) => {
    const none = await s.rest('GET', '/v1/tasks/none')
    t.alike(
      [none.status, none.type, none.body['code'], typeof none.body['message']],
      [404, 'application/json', -32_001, 'string']
    )
    t.is((await s.rest('POST', '/v1/message:send', {})).status, 400)
    t.is((await s.rest('GET', '/v1/nothing')).status, 404)
  })
  await group.test('5.3 and 5.5 the card is at both well-known paths, with the members of 0.3', async (t) => {
    for (const name of ['agent-card.json', 'agent.json']) {
      const { body } = await read(await fetch(`${s.node.url}/agents/talk/.well-known/${name}`))
      for (const member of [
        'protocolVersion',
        'name',
        'description',
        'url',
        'version',
        'capabilities',
        'defaultInputModes',
        'defaultOutputModes',
        'skills',
        'preferredTransport'
      ])
        t.ok(member in body, member)
      t.is(body['supportsAuthenticatedExtendedCard'], true)
      const transports = (body['additionalInterfaces'] as Json[]).map(({ transport }) => transport)
      t.ok(transports.includes('JSONRPC') && transports.includes('HTTP+JSON'), '3.4.2 all transports are declared')
    }
  })
})
