import test, { type Assert } from 'brittle'
import { streamed } from '../support/a2a.js'
import {
  at,
  gathered,
  isRestFault,
  isRpcFault,
  type Json,
  says,
  type Subject,
  subject,
  type WireAnswer
} from '../support/compliance.js'

const send = (s: Subject, input: unknown, more: object = {}, config: object = {}): Promise<WireAnswer> =>
  s.rpc('SendMessage', { ...says(input, more), configuration: config })
const taskOf = (answer: WireAnswer): Json => at(answer.body, 'result', 'task') as Json
const started = async (s: Subject, input: object = {}): Promise<{ id: string; go: () => Promise<void> }> => {
  const { until, go } = s.gate()
  return {
    id: taskOf(await send(s, { until, text: 'late', ...input }, {}, { returnImmediately: true }))['id'] as string,
    go
  }
}
const ENDED = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED']

test('A2A 1.0, section 3.1: operations', async (t) => {
  const s = await subject(t)
  await sending(t, s)
  await streaming(t, s)
  await readingAndCanceling(t, s)
  await listing(t, s)
})

async function sending(group: Assert, s: Subject): Promise<void> {
  await group.test('3.1.1 SendMessage returns a task or a message, and nothing else', async (t) => {
    t.alike(Object.keys((await send(s, 'hello')).body['result'] as Json), ['task'])
    const read = await s.rpc('SendMessage', says('hello'), { at: '/agents/read' })
    t.alike(Object.keys(read.body['result'] as Json), ['message'])
    t.alike(at(read.body, 'result', 'message', 'parts'), [{ text: 'read hello' }])
  })
  await group.test('3.1.1 a message to a task that has ended is UnsupportedOperationError', async (t) => {
    const { id } = taskOf(await send(s, 'hello'))
    isRpcFault(t, await send(s, 'more', { taskId: id }), -32_004, 'UNSUPPORTED_OPERATION')
    const rest = await s.rest('POST', '/message:send', says('more', { taskId: id }))
    isRestFault(t, rest, [400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'])
  })
  await group.test('3.2.2 without returnImmediately the answer waits for an ended or interrupted state', async (t) => {
    t.is(at(taskOf(await send(s, 'hello')), 'status', 'state'), 'TASK_STATE_COMPLETED')
    t.is(
      at(taskOf(await send(s, { ask: 'Which?' }, {}, { returnImmediately: false })), 'status', 'state'),
      'TASK_STATE_INPUT_REQUIRED'
    )
    t.is(at(taskOf(await send(s, { fail: 'no' })), 'status', 'state'), 'TASK_STATE_FAILED')
  })
  await group.test('3.2.2 with returnImmediately the answer does not wait for the work', async (t) => {
    const { id, go } = await started(s)
    t.absent(ENDED.includes(at((await s.rpc('GetTask', { id })).body, 'result', 'status', 'state') as string))
    await go()
  })
  await group.test('3.3.1 the same message, by its messageId, is done once', async (t) => {
    const params = says('once')
    const [one, two] = [await s.rpc('SendMessage', params), await s.rpc('SendMessage', params)]
    t.is(taskOf(one)['id'], taskOf(two)['id'])
    const other = { message: { ...params.message, parts: [{ text: 'other' }] } }
    isRpcFault(t, await s.rpc('SendMessage', other), -32_602, 'INVALID_PARAMS')
  })
}

async function streaming(group: Assert, s: Subject): Promise<void> {
  const params = says({ chunks: ['a', 'b'] })
  await group.test(
    '3.1.2 a stream begins with its task, goes on with updates and closes when the task has ended',
    async (t) => {
      const events = await s.events('/agents/talk', {
        json: { jsonrpc: '2.0', id: 's', method: 'SendStreamingMessage', params }
      })
      t.ok(events.every(({ data }) => data['jsonrpc'] === '2.0' && data['id'] === 's'))
      const results = events.map(({ data }) => data['result'] as Json)
      t.alike(Object.keys(results[0] ?? {}), ['task'])
      t.ok(results.slice(1).every((one) => ['statusUpdate', 'artifactUpdate'].includes(Object.keys(one).join())))
      t.is(at(results.at(-1), 'statusUpdate', 'status', 'state'), 'TASK_STATE_COMPLETED')
    }
  )
  await group.test(
    '3.1.6 SubscribeToTask begins with the task as it is and closes when the task has ended',
    async (t) => {
      const { id, go } = await started(s)
      const stream = streamed(s.node, `/agents/talk/tasks/${id}:subscribe`, { method: 'POST' })
      t.is(at((await stream.next()).value, 'data', 'task', 'id'), id)
      await go()
      t.is(at((await gathered(stream)).at(-1), 'data', 'statusUpdate', 'status', 'state'), 'TASK_STATE_COMPLETED')
      isRpcFault(t, await s.rpc('SubscribeToTask', { id }), -32_004, 'UNSUPPORTED_OPERATION')
      isRestFault(t, await s.rest('POST', `/tasks/${id}:subscribe`), [
        400,
        'FAILED_PRECONDITION',
        'UNSUPPORTED_OPERATION'
      ])
    }
  )
  await group.test(
    '3.1.6 a subscription stays open while its task waits for its client, and sends the events after the answer',
    async (t) => {
      const { id } = taskOf(await send(s, { ask: 'Which?' })) as { readonly id: string }
      const place = `/agents/talk/tasks/${id}:subscribe`
      const whole = streamed(s.node, place, { method: 'POST' })
      const rpc = { jsonrpc: '2.0', id: 's', method: 'SubscribeToTask', params: { id } }
      const behind = [
        streamed(s.node, place, { headers: { 'last-event-id': '1' } }),
        streamed(s.node, '/agents/talk', { json: rpc, headers: { 'last-event-id': '1' } })
      ]
      const [first] = await Promise.all([whole, ...behind].map(async (stream) => (await stream.next()).value))
      t.is(at(first, 'data', 'task', 'status', 'state'), 'TASK_STATE_INPUT_REQUIRED')
      t.is(at(taskOf(await send(s, 'that one', { taskId: id })), 'status', 'state'), 'TASK_STATE_COMPLETED')
      for (const stream of [whole, ...behind]) {
        const states = (await gathered(stream))
          .map(({ data }) => at(data['result'] ?? data, 'statusUpdate'))
          .filter((one) => one !== undefined)
        t.alike(
          states.slice(-2).map((one) => at(one, 'status', 'state')),
          ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']
        )
      }
    }
  )
  await group.test('3.1.6 SubscribeToTask of no task is TaskNotFoundError', async (t) => {
    isRpcFault(t, await s.rpc('SubscribeToTask', { id: 'task_none' }), -32_001, 'TASK_NOT_FOUND')
    const { id } = taskOf(await send(s, 'hello'))
    const behind = await s.rpc('SubscribeToTask', { id }, { headers: { 'last-event-id': '99999' } })
    t.is(at(behind.body, 'error', 'message'), 'Last-Event-ID: is of an event that there has not been')
  })
  await group.test(
    '3.5.2 all streams of a task get the same events in order; one that closes does not touch the others',
    async (t) => {
      const { id, go } = await started(s)
      const open = () => streamed(s.node, `/agents/talk/tasks/${id}:subscribe`, { method: 'POST' })
      const [one, two, three] = [open(), open(), open()]
      let from = 0
      for (const stream of [one, two, three]) from = Math.max(from, Number((await stream.next()).value?.id))
      await three.return(undefined)
      await go()
      // Each begins with the task as it is: what was news to the earlier ones alone does not count.
      const [first = [], second = []] = (await Promise.all([gathered(one), gathered(two)])).map((events) =>
        events.filter((event) => event.id > from)
      )
      t.ok(first.length > 0)
      t.alike(first, second)
      t.alike(
        first.map((event) => event.id),
        first.map((event) => event.id).sort((a, b) => a - b)
      )
    }
  )
  await group.test('3.5.2 the life of a task does not depend on its streams', async (t) => {
    const { until, go } = s.gate()
    const stream = streamed(s.node, '/agents/talk/message:stream', { json: says({ until, text: 'x' }) })
    const id = at((await stream.next()).value, 'data', 'task', 'id') as string
    await stream.return(undefined)
    await go()
    t.is(
      at(
        (
          await gathered(streamed(s.node, `/agents/talk/tasks/${id}:subscribe`, { headers: { 'last-event-id': '1' } }))
        ).at(-1),
        'data',
        'statusUpdate',
        'status',
        'state'
      ),
      'TASK_STATE_COMPLETED'
    )
  })
}

async function readingAndCanceling(group: Assert, s: Subject): Promise<void> {
  await group.test(
    '3.1.3 GetTask gives the task as it is; of no task, and of that of another, it is TaskNotFoundError',
    async (t) => {
      const { id } = taskOf(await send(s, 'hello'))
      t.is(at((await s.rpc('GetTask', { id })).body, 'result', 'status', 'state'), 'TASK_STATE_COMPLETED')
      const [none, foreign] = [
        await s.rpc('GetTask', { id: 'task_none' }),
        await s.rpc('GetTask', { id }, { by: s.stranger })
      ]
      isRpcFault(t, none, -32_001, 'TASK_NOT_FOUND')
      t.alike(foreign.body, none.body, 'which look alike')
      isRestFault(t, await s.rest('GET', '/tasks/task_none'), [404, 'NOT_FOUND', 'TASK_NOT_FOUND'])
    }
  )
  await group.test(
    '3.1.5 CancelTask gives the task canceled; one that has ended is TaskNotCancelableError, none is TaskNotFoundError',
    async (t) => {
      const { id } = await started(s)
      isRpcFault(t, await s.rpc('CancelTask', { id }, { by: s.stranger }), -32_001, 'TASK_NOT_FOUND')
      t.is(at((await s.rpc('CancelTask', { id })).body, 'result', 'status', 'state'), 'TASK_STATE_CANCELED')
      isRpcFault(t, await s.rpc('CancelTask', { id }), -32_002, 'TASK_NOT_CANCELABLE')
      isRestFault(t, await s.rest('POST', `/tasks/${id}:cancel`), [400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'])
      isRpcFault(t, await s.rpc('CancelTask', { id: 'task_none' }), -32_001, 'TASK_NOT_FOUND')
    }
  )
  await group.test('3.2.4 history has at most historyLength messages, the last ones; 0 leaves it out', async (t) => {
    const id = taskOf(await send(s, { ask: 'Which?' }))['id'] as string
    await send(s, 'that', { taskId: id })
    const get = async (historyLength?: number) =>
      at((await s.rpc('GetTask', { id, historyLength })).body, 'result') as Json
    const all = (await get())['history'] as Json[]
    t.alike(
      all.map(({ role }) => role),
      ['ROLE_USER', 'ROLE_AGENT', 'ROLE_USER'],
      'in the order of the reports'
    )
    t.alike((await get(2))['history'], all.slice(-2))
    t.absent('history' in (await get(0)))
    t.absent('history' in taskOf(await send(s, 'x', {}, { historyLength: 0 })), 'also of SendMessage')
    t.absent('history' in (await s.rest('GET', `/tasks/${id}?historyLength=0`)).body)
    isRpcFault(t, await s.rpc('GetTask', { id, historyLength: -1 }), -32_602, 'INVALID_PARAMS')
  })
}

async function listing(group: Assert, s: Subject): Promise<void> {
  const list = async (
    params: object = {},
    by = s.node
  ): Promise<{ tasks: Json[]; nextPageToken: unknown; totalSize: unknown; pageSize: unknown }> =>
    (await s.rpc('ListTasks', params, { by })).body['result'] as never
  await group.test('3.1.4 ListTasks shows its caller only what is its own', async (t) => {
    t.ok((await list()).tasks.length > 0)
    t.alike(await list({}, s.stranger), { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
  })
  await group.test('3.1.4 the newest status comes first, and pages by cursor have every task once', async (t) => {
    const seen: Json[] = []
    let pageToken = ''
    do {
      const page = await list({ pageSize: 3, pageToken })
      t.ok(page.tasks.length <= 3 && typeof page.nextPageToken === 'string')
      seen.push(...page.tasks)
      pageToken = page.nextPageToken as string
    } while (pageToken !== '')
    t.is(seen.length, (await list()).totalSize)
    t.is(new Set(seen.map(({ id }) => id)).size, seen.length)
    const times = seen.map((one) => at(one, 'status', 'timestamp') as string)
    t.alike(
      times,
      [...times].sort((a, b) => (a < b ? 1 : a > b ? -1 : 0))
    )
  })
  await group.test('3.1.4 the order is that of the status, for any later artifacts', async (t) => {
    const [first, second] = [await started(s, { chunks: ['a'] }), await started(s)]
    const listed = (await list({ pageSize: 2 })).tasks.map(({ id }) => id)
    t.ok(listed.includes(first.id) && listed.includes(second.id))
    await Promise.all([first.go(), second.go()])
  })
  await group.test('3.1.4 artifacts are left out unless they are asked for', async (t) => {
    const { id } = taskOf(await send(s, 'hello'))
    t.ok((await list()).tasks.every((one) => !('artifacts' in one)))
    t.ok((await list({ includeArtifacts: true })).tasks.every((one) => Array.isArray(one['artifacts'])))
    const rest = await s.rest('GET', '/tasks?includeArtifacts=true&pageSize=50')
    const hello = (rest.body['tasks'] as Json[]).find((one) => one['id'] === id)
    t.alike(at(hello, 'artifacts', 0, 'parts'), [{ text: 'you said hello' }])
  })
  await group.test('3.1.4 filters: contextId, status, statusTimestampAfter (then or later)', async (t) => {
    const task = taskOf(await send(s, 'hello', { contextId: 'ctx-filter' }))
    t.alike(
      (await list({ contextId: 'ctx-filter' })).tasks.map(({ id }) => id),
      [task['id']]
    )
    t.is((await list({ contextId: 'ctx-filter', status: 'TASK_STATE_WORKING' })).totalSize, 0)
    t.is((await list({ contextId: 'ctx-filter', status: 'TASK_STATE_UNSPECIFIED' })).totalSize, 1, 'that is none')
    const at0 = at(task, 'status', 'timestamp') as string
    t.is((await list({ contextId: 'ctx-filter', statusTimestampAfter: at0 })).totalSize, 1)
    t.is(
      (await list({ contextId: 'ctx-filter', statusTimestampAfter: new Date(Date.parse(at0) + 1).toISOString() }))
        .totalSize,
      0
    )
  })
  await group.test(
    '3.1.4 a page has 50 tasks unless another number from 1 to 100 is asked for; any other number is refused',
    async (t) => {
      t.is((await list()).pageSize, 50)
      for (const bad of [
        { pageSize: 0 },
        { pageSize: 101 },
        { pageToken: 'x' },
        { status: 'NONE' },
        { historyLength: -5 }
      ])
        isRpcFault(t, await s.rpc('ListTasks', bad), -32_602, 'INVALID_PARAMS')
      isRestFault(t, await s.rest('GET', '/tasks?pageSize=150'), [400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'])
    }
  )
}

test('A2A 1.0, sections 3.4 to 5.7: conversations and the data model', async (t) => {
  const s = await subject(t)
  await conversations(t, s)
  await dataModel(t, s)
})

async function conversations(group: Assert, s: Subject): Promise<void> {
  await group.test('3.4.1 a contextId is made where there is none, and one that is given is kept', async (t) => {
    t.ok((taskOf(await send(s, 'a'))['contextId'] as string).length > 0)
    t.is(taskOf(await send(s, 'a', { contextId: 'mine' }))['contextId'], 'mine')
    const message = at(
      (await s.rpc('SendMessage', says('a', { contextId: 'mine' }), { at: '/agents/read' })).body,
      'result',
      'message'
    )
    t.is(at(message, 'contextId'), 'mine', 'also in a message')
  })
  await group.test('3.4.2 a task id is of the server; one that names no task is TaskNotFoundError', async (t) => {
    t.not(taskOf(await send(s, 'a'))['id'], taskOf(await send(s, 'a'))['id'])
    isRpcFault(t, await send(s, 'a', { taskId: 'mine' }), -32_001, 'TASK_NOT_FOUND')
  })
  await group.test(
    '3.4.3 the context is that of the task where only the task is named; another one is refused',
    async (t) => {
      const { id, contextId } = taskOf(await send(s, { ask: 'Which?' }))
      isRpcFault(t, await send(s, 'x', { taskId: id, contextId: 'other' }), -32_602, 'INVALID_PARAMS')
      const after = taskOf(await send(s, 'that', { taskId: id }))
      t.alike([after['id'], after['contextId'], at(after, 'status', 'state')], [id, contextId, 'TASK_STATE_COMPLETED'])
    }
  )
  await group.test('3.7 results are artifacts; a question of an agent is the message of the status', async (t) => {
    const asked = taskOf(await send(s, { ask: 'Which?' }))
    t.alike(at(asked, 'status', 'message', 'parts'), [{ text: 'Which?' }])
    t.is(at(asked, 'status', 'message', 'role'), 'ROLE_AGENT')
    t.absent('artifacts' in asked)
    t.alike(at(taskOf(await send(s, 'x')), 'artifacts', 0, 'parts'), [{ text: 'you said x' }])
  })
}

async function dataModel(group: Assert, s: Subject): Promise<void> {
  const task = taskOf(
    await send(s, 'hello', { metadata: { any: { thing: 1 } }, referenceTaskIds: ['task_1'], extensions: ['urn:x'] })
  )
  await group.test('4.1 required members of task, status, message, part and artifact are there', (t) => {
    t.ok(typeof task['id'] === 'string' && typeof at(task, 'status', 'state') === 'string')
    const [message] = task['history'] as Json[]
    t.alike(
      [
        at(message, 'role'),
        at(message, 'parts'),
        typeof at(message, 'messageId'),
        at(message, 'taskId'),
        at(message, 'contextId')
      ],
      ['ROLE_USER', [{ text: 'hello' }], 'string', task['id'], task['contextId']]
    )
    t.alike(
      [at(message, 'metadata'), at(message, 'referenceTaskIds'), at(message, 'extensions')],
      [{ any: { thing: 1 } }, ['task_1'], ['urn:x']]
    )
    t.ok(typeof at(task, 'artifacts', 0, 'artifactId') === 'string')
  })
  await group.test('5.5 names are camelCase and enumerations are their names', (t) => {
    const names = new Set<string>()
    JSON.stringify(task, (name, value: unknown) => (names.add(name), value))
    t.alike(
      [...names].filter((name) => /_/.test(name)),
      []
    )
    t.ok((at(task, 'status', 'state') as string).startsWith('TASK_STATE_'))
  })
  await group.test('5.6.1 times are ISO 8601 in UTC with milliseconds', (t) =>
    t.ok(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(at(task, 'status', 'timestamp') as string))
  )
  await group.test('5.7 a message without a required member is refused, with the members that are wrong', async (t) => {
    for (const member of ['messageId', 'role', 'parts']) {
      const message = Object.fromEntries(Object.entries(says('x').message).filter(([name]) => name !== member))
      const answer = await s.rpc('SendMessage', { message })
      isRpcFault(t, answer, -32_602, 'INVALID_PARAMS')
      const bad = (at(answer.body, 'error', 'data') as Json[]).find(
        (one) => one['@type'] === 'type.googleapis.com/google.rpc.BadRequest'
      )
      t.is(at(bad, 'fieldViolations', 0, 'field'), `message.${member}`)
    }
    for (const part of [{}, { text: 'a', data: 1 }, { raw: 'no base64!' }])
      isRpcFault(t, await send(s, 'x', { parts: [part] }), -32_602, 'INVALID_PARAMS')
  })
  await group.test('5.7 members that nobody knows are ignored', async (t) => {
    const answer = await s.rpc('SendMessage', { ...says('hello', { tckUnknownField: 1 }), tckExtraParam: 42 })
    t.is(at(taskOf(answer), 'status', 'state'), 'TASK_STATE_COMPLETED')
  })
  await group.test('4.1.6 parts of every kind are taken, and are in the history as they were sent', async (t) => {
    const parts = [
      { text: 'a' },
      { raw: 'aGk=', mediaType: 'text/plain', filename: 'a.txt' },
      { data: { n: 1 } },
      { url: 'https://example.com/a.txt', mediaType: 'text/plain' }
    ]
    t.alike(at(taskOf(await send(s, '', { parts })), 'history', 0, 'parts'), parts)
  })
}
