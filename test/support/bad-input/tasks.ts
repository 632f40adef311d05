import type { Assert } from 'brittle'
import { REFUSED } from '../a2a/refused-addresses.js'
import { type BadCall, type BadMesh, toldOfCall } from './mesh-scene.js'
import { type BadScene, REQUIRED, SECRET } from './scene.js'
import { onA2A, refused, refusedCalls, type Row, tried } from './table.js'
import { type A2AWire, type BadRequest, rpc, run, saying, told, v03, v1 } from './wires.js'

const NOT_FOUND = kinds('-32001 TASK_NOT_FOUND', 'NOT_FOUND TASK_NOT_FOUND', 404)
const INVALID = kinds('-32602 INVALID_PARAMS', 'INVALID_ARGUMENT INVALID_PARAMS', 400)
const NO_VERSION = kinds('-32009 VERSION_NOT_SUPPORTED', 'FAILED_PRECONDITION VERSION_NOT_SUPPORTED', 400)
const NO_EXTENSION = kinds('-32008 EXTENSION_SUPPORT_REQUIRED', 'FAILED_PRECONDITION EXTENSION_SUPPORT_REQUIRED', 400)
const ENDED = kinds('-32004 UNSUPPORTED_OPERATION', 'FAILED_PRECONDITION UNSUPPORTED_OPERATION', 400)

/** How each wire says the same: by the number of JSON-RPC, or by the name of the status. */
function kinds(number: string, name: string, status: number): Readonly<Record<A2AWire, string>> {
  return {
    'JSON-RPC 1.0': `200 ${number}`,
    'JSON-RPC 0.3': `200 ${number}`,
    'REST 1.0': `${status} ${name}`,
    'REST 0.3': `${status} ${number}`
  }
}

const HOOK = 'https://hook.example.com/x'

/** All that can be asked of a task, on each wire. */
function asking(wire: A2AWire, id: string, { url = HOOK, agent = 'talk' } = {}): BadRequest[] {
  const more = saying(wire, 'more', { task: id, agent })
  const call = (method: string, params: object): BadRequest => rpc(method, params, `/agents/${agent}`)
  if (wire === 'JSON-RPC 1.0')
    return [
      ...['GetTask', 'CancelTask', 'SubscribeToTask'].map((method) => call(method, { id })),
      call('CreateTaskPushNotificationConfig', { taskId: id, url }),
      call('GetTaskPushNotificationConfig', { taskId: id, id: 'c' }),
      call('ListTaskPushNotificationConfigs', { taskId: id }),
      call('DeleteTaskPushNotificationConfig', { taskId: id, id: 'c' }),
      more
    ]
  if (wire === 'JSON-RPC 0.3')
    return [
      ...['tasks/get', 'tasks/cancel', 'tasks/resubscribe'].map((method) => call(method, { id })),
      call('tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig: { url } }),
      ...['get', 'list', 'delete'].map((verb) =>
        call(`tasks/pushNotificationConfig/${verb}`, { id, pushNotificationConfigId: 'c' })
      ),
      more
    ]
  const place = `/agents/${agent}${wire === 'REST 0.3' ? '/v1' : ''}/tasks/${id}`
  const config = wire === 'REST 0.3' ? { config: { pushNotificationConfig: { url } } } : { url }
  return [
    { place },
    { place: `${place}:cancel`, method: 'POST' },
    { place: `${place}:subscribe`, method: 'POST' },
    { place: `${place}:subscribe` },
    { place: `${place}/pushNotificationConfigs`, body: config },
    { place: `${place}/pushNotificationConfigs` },
    { place: `${place}/pushNotificationConfigs/c` },
    { place: `${place}/pushNotificationConfigs/c`, method: 'DELETE' },
    more
  ]
}

/** Begins a task of alice that asks back, and gives its id. */
async function begun(it: BadScene, wire: A2AWire): Promise<string> {
  const { text } = await it.ask(saying(wire, `ask ${SECRET}`))
  return idIn(text)
}

function idIn(text: string): string {
  const id = /task_[0-9A-Za-z_]+/.exec(text)?.[0]
  if (id === undefined) throw new Error(`no task: ${text.slice(0, 300)}`)
  return id
}

/** Tasks of nobody and of another caller. */
export const strangers: Row = {
  ...onA2A((wire) => async (t, { http }) => {
    const it = await http()
    const foreign = await begun(it, wire)
    const none = foreign.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x')).replace(/task_./, 'task_Q')
    const pairs = asking(wire, none).map((request, at) => [request, asking(wire, foreign)[at] ?? request] as const)
    for (const [unknown, other] of pairs) {
      const [one, two] = [await it.ask({ ...unknown, by: 'bob' }), await it.ask({ ...other, by: 'bob' })]
      t.is(
        told(wire, one),
        NOT_FOUND[wire],
        `${unknown.method ?? ''} ${unknown.place} ${JSON.stringify(unknown.body ?? '').slice(0, 90)}`
      )
      t.alike({ ...two, text: two.text.replaceAll(foreign, none) }, one, 'byte for byte the same but for the id')
    }
    const [mine] = asking(wire, foreign)
    t.is(told(wire, await it.ask(mine ?? { place: '' })), 'done', 'its owner has it still')
  }),
  facade: async (t, { http }) => {
    const it = await http()
    const ask = async (
      prompt: string,
      sessionId: string,
      by: 'alice' | 'bob'
    ): Promise<{ state: unknown; text: string }> => {
      const { text } = await it.ask({ place: '/agents/talk/run', body: { prompt, sessionId }, by })
      return { state: (JSON.parse(text) as { meta: { state: unknown } }).meta.state, text }
    }
    t.is((await ask(`ask ${SECRET}`, 'session-1', 'alice')).state, 'input-required')
    const plain = (text: string): string => text.replace(/task_\w+|"durationMs":\d+|session-\d/g, '')
    const [unknown, foreign] = [await ask('hello', 'session-2', 'bob'), await ask('hello', 'session-1', 'bob')]
    t.is(plain(foreign.text), plain(unknown.text), 'a session of another caller is as one that never was')
    t.is((await ask('that one', 'session-1', 'alice')).state, 'completed', 'its owner goes on with it')
  },
  'AG-UI': async (t, { http }) => {
    const it = await http()
    const ask = async (threadId: string, text: string, by: 'alice' | 'bob', more: object = {}): Promise<string> => {
      const messages = [{ id: `m-${text}-${by}-${threadId}`, role: 'user', content: text }]
      return (await it.ask({ place: '/agents/talk/agui', body: run(threadId, messages, more), by })).text
    }
    const asked = await ask('thread-1', `ask ${SECRET}`, 'alice')
    const interrupt = /"interrupts":\[\{"id":"([^"]+)"/.exec(asked)?.[1] ?? ''
    t.ok(interrupt !== '', 'it waits')
    const resume = [{ interruptId: interrupt, status: 'resolved', payload: 'mine' }]
    const plain = (text: string): string =>
      text.replace(/task_\w+|run-\d+|thread-\d|msg_\w+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
    const [unknown, foreign] = [
      await ask('thread-2', 'hello', 'bob', { resume }),
      await ask('thread-1', 'hello', 'bob', { resume })
    ]
    t.is(plain(foreign), plain(unknown), 'a thread of another caller is as one that never was')
    t.ok((await ask('thread-1', 'that one', 'alice')).includes('you said that one'), 'its owner goes on with it')
  },
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    for (const wire of ['JSON-RPC 1.0', 'JSON-RPC 0.3'] as const) {
      const foreign = idIn(JSON.stringify(await it.call(callOf(saying(wire, `ask ${SECRET}`)))))
      for (const [at, request] of asking(wire, 'task_none').entries()) {
        const unknown = await it.call({ ...callOf(request), by: 'bob' })
        const other = await it.call({ ...callOf(asking(wire, foreign)[at] ?? request), by: 'bob' })
        t.is(toldOfCall(unknown), '-32001 TASK_NOT_FOUND', JSON.stringify(request.body).slice(0, 90))
        t.alike(JSON.parse(JSON.stringify(other).replaceAll(foreign, 'task_none')), unknown, 'the same but for the id')
      }
    }
  }
}

/** A task of the caller's own below the URL of another agent; at that of the node it is there. */
export const elsewhere: Row = {
  ...onA2A((wire) => async (t, { http }) => {
    const it = await http()
    const id = await begun(it, wire)
    const none = 'task_none'
    for (const agent of ['strict', `strict@${it.node.name}`]) {
      const unknown = asking(wire, none, { agent })
      for (const [at, request] of asking(wire, id, { agent }).entries()) {
        const headers = { 'a2a-extensions': REQUIRED }
        const [one, two] = [
          await it.ask({ ...(unknown[at] ?? request), headers }),
          await it.ask({ ...request, headers })
        ]
        t.is(told(wire, one), NOT_FOUND[wire], `${request.method ?? ''} ${request.place}`)
        t.alike({ ...two, text: two.text.replaceAll(id, none) }, one, 'byte for byte the same but for the id')
      }
    }
    for (const agent of ['talk', `talk@${it.node.name}`, `talk@${it.node.id}`]) {
      const [get = { place: '' }] = asking(wire, id, { agent })
      t.is(told(wire, await it.ask(get)), 'done', `it is there below ${get.place}`)
    }
    const [get = { place: '' }, cancel = { place: '' }] = asking(wire, id)
    for (const request of [get, cancel])
      t.is(
        told(wire, await it.ask({ ...request, place: request.place.replace('/agents/talk', '/a2a') })),
        'done',
        'the node has all'
      )
  }),
  facade: 'its clients name no tasks',
  'AG-UI': 'its clients name no tasks',
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    for (const wire of ['JSON-RPC 1.0', 'JSON-RPC 0.3'] as const) {
      const id = idIn(JSON.stringify(await it.call(callOf(saying(wire, 'ask')))))
      for (const request of asking(wire, id, { agent: 'strict' })) {
        const answer = await it.call(callOf(request, { 'a2a-extensions': REQUIRED }))
        t.is(toldOfCall(answer), '-32001 TASK_NOT_FOUND', JSON.stringify(request.body).slice(0, 90))
      }
      const [get = { place: '' }] = asking(wire, id)
      t.is(toldOfCall(await it.call({ ...callOf(get), path: '/a2a' })), 'done')
    }
  }
}

/** A request of JSON-RPC as a call of a member. */
function callOf(
  { body = {}, place, by = 'alice' }: BadRequest,
  parameters: Readonly<Record<string, string>> = {}
): BadCall {
  return { path: place, body, by, parameters }
}

const CURSORS = [
  'x',
  '..',
  '%00',
  '0',
  'null',
  '{}',
  'AAAA',
  'eyJzaW5jZSI6MX0',
  '../../etc/passwd',
  'x'.repeat(5000),
  '1700000000000.',
  '.task_1',
  '-1.task_x'
]

/** What no event has as its id. */
const NO_EVENTS = ['x', '-1', '1e3', '1, 2', '0x1', '1.5', '99999999999999999999']

function listing(wire: A2AWire, params: Readonly<Record<string, string | number>>): BadRequest {
  if (wire.startsWith('JSON-RPC')) return rpc(wire === 'JSON-RPC 1.0' ? 'ListTasks' : 'tasks/list', params)
  const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return { place: `/agents/talk${wire === 'REST 0.3' ? '/v1' : ''}/tasks?${query.join('&')}` }
}

function tokenIn(text: string): string {
  return /"nextPageToken":"([^"]+)"/.exec(text)?.[1] ?? ''
}

/** Cursors that this node did not give, or not to this caller; places in a log that there are not. */
export const cursors: Row = {
  ...onA2A((wire) => async (t, places) => {
    const it = await places.http()
    const bad = CURSORS.map((pageToken) => listing(wire, { pageToken }))
    await tried(refused(wire, INVALID[wire], bad))(t, places)
    const [id] = [await begun(it, wire), await begun(it, wire)]
    const token = tokenIn((await it.ask(listing(wire, { pageSize: 1 }))).text)
    t.ok(token !== '', 'there is a second page')
    const { text } = await it.ask({ ...listing(wire, { pageSize: 100, pageToken: token }), by: 'bob' })
    t.absent(text.includes('task_'), 'the cursor of another caller shows nothing of its tasks')
    const [, , subscribe = { place: '' }] = asking(wire, id)
    const after = (place: string): BadRequest => ({ ...subscribe, headers: { 'last-event-id': place } })
    t.is(told(wire, await it.ask(after('9999'))), INVALID[wire], 'behind what has not happened')
    for (const place of NO_EVENTS) t.is(told(wire, await it.ask(after(place))), INVALID[wire], `${place} is no place`)
    // Of a task that has ended: a subscription of one that waits for its client stays open.
    const [, cancel = { place: '' }] = asking(wire, id)
    await it.ask(cancel)
    t.is(
      told(wire, await it.ask(after(''))),
      wire.endsWith('1.0') ? ENDED[wire] : 'done',
      'a client without a version was not there before'
    )
    t.is(
      told(wire, await it.ask({ ...saying(wire, 'x', { stream: true }), headers: { 'last-event-id': 'x' } })),
      'done',
      'of another stream'
    )
  }),
  facade: 'its list of agents has no pages, and its streams cannot be taken up again',
  'AG-UI': 'it lists nothing, and a run cannot be taken up at a place',
  mesh: async (t, places) => {
    const it = await places.mesh()
    const bad = CURSORS.map((pageToken) => callOf(listing('JSON-RPC 1.0', { pageToken })))
    await tried(refusedCalls('-32602 INVALID_PARAMS', bad))(t, places)
    const id = idIn(JSON.stringify(await it.call(callOf(saying('JSON-RPC 1.0', 'ask 1')))))
    await it.call(callOf(saying('JSON-RPC 1.0', 'ask 2')))
    const token = tokenIn(JSON.stringify(await it.call(callOf(listing('JSON-RPC 1.0', { pageSize: 1 })))))
    const shown = await it.call(callOf({ ...listing('JSON-RPC 1.0', { pageToken: token }), by: 'bob' }))
    t.absent(JSON.stringify(shown).includes('task_'))
    const subscribe = rpc('SubscribeToTask', { id })
    t.is(toldOfCall(await it.call(callOf(subscribe, { 'last-event-id': '9999' }))), '-32602 INVALID_PARAMS')
    for (const place of NO_EVENTS)
      t.is(toldOfCall(await it.call(callOf(subscribe, { 'last-event-id': place }))), '-32602 INVALID_PARAMS', place)
    await it.call(callOf(rpc('CancelTask', { id })))
    t.is(toldOfCall(await it.call(callOf(subscribe, { 'last-event-id': '' }))), '-32004 UNSUPPORTED_OPERATION')
  }
}

const VERSIONS = ['9.9', '0.5', 'one', '1', '1.0.0.0', '1.0, 0.3', '1.0\t2', '-1.0', '<script>', 'x'.repeat(5000)]
/** A body of the other version. That of 0.3 has all that 1.0 asks for, so it is done. */
const OTHER: Readonly<Record<A2AWire, object>> = {
  'JSON-RPC 1.0': v03({ messageId: 'other-1' }, 'x'),
  'JSON-RPC 0.3': v1({ messageId: 'other-2' }, 'x'),
  'REST 1.0': v03({ messageId: 'other-3' }, 'x'),
  'REST 0.3': { message: { messageId: 'other-4', role: 'nobody', parts: [{ kind: 'text', text: 'x' }] } }
}
const MIXED: Readonly<Record<A2AWire, readonly [version: string, expected: string]>> = {
  'JSON-RPC 1.0': ['0.3', '200 -32601 METHOD_NOT_FOUND'],
  'JSON-RPC 0.3': ['1.0', '200 -32601 METHOD_NOT_FOUND'],
  'REST 1.0': ['0.3', '400 -32602 INVALID_PARAMS'],
  'REST 0.3': ['1.0', '404 -32601 METHOD_NOT_FOUND']
}

/** Versions that nobody speaks, and one of them in the words of the other. */
export const versions: Row = {
  ...onA2A((wire) => async (t, places) => {
    const it = await places.http()
    const all = VERSIONS.map((version) => ({ ...saying(wire, 'x'), headers: { 'a2a-version': version } }))
    await tried(refused(wire, NO_VERSION[wire], all))(t, places)
    const [version, expected] = MIXED[wire]
    // The path of 1.0 is that of 0.3 for who says so: then the answer is in its words, too.
    const words = wire === 'REST 1.0' ? 'REST 0.3' : wire
    t.is(
      told(words, await it.ask({ ...saying(wire, 'x', { id: 'mixed' }), headers: { 'a2a-version': version } })),
      expected,
      'a header of the other'
    )
    const { body = {}, ...request } = saying(wire, 'x')
    const other = 'params' in (body as object) ? { ...(body as object), params: OTHER[wire] } : OTHER[wire]
    t.is(
      told(wire, await it.ask({ ...request, body: other })),
      wire.endsWith('1.0') ? 'done' : INVALID[wire],
      'a body of the other'
    )
  }),
  facade: async (t, { http }) => {
    const it = await http()
    const { status, type } = await it.ask({ place: '/v2/agents/talk/run', body: { prompt: 'x' } })
    t.alike([status, type], [404, 'application/json'], 'its version is in its path, and there is one')
  },
  'AG-UI': async (t, { http }) => {
    const it = await http()
    const answer = await it.ask({
      place: '/agents/talk/agui',
      body: run('thread-v', [{ id: 'v', role: 'user', content: 'x' }], { protocolVersion: '9.9' })
    })
    t.is(told('AG-UI', answer), 'done', 'the node says which it speaks, and the client decides')
    t.ok(answer.text.includes('"protocolVersion":"1.0"') && answer.text.includes('this node speaks AG-UI 1.0'))
  },
  mesh: async (t, places) => {
    const calls = VERSIONS.map((version) => callOf(saying('JSON-RPC 1.0', 'x'), { 'a2a-version': version }))
    await tried(refusedCalls('-32009 VERSION_NOT_SUPPORTED', calls))(t, places)
    const mixed = [
      callOf(saying('JSON-RPC 1.0', 'x'), { 'a2a-version': '0.3' }),
      callOf(saying('JSON-RPC 0.3', 'x'), { 'a2a-version': '1.0' })
    ]
    await tried(refusedCalls('-32601 METHOD_NOT_FOUND', mixed))(t, places)
  }
}

/** An extension that the card requires and the client does not name. */
export const extensions: Row = {
  ...onA2A((wire) => async (t, places) => {
    const it = await places.http()
    const name = wire.endsWith('0.3') ? 'x-a2a-extensions' : 'a2a-extensions'
    const at = (headers: Readonly<Record<string, string>>): BadRequest => ({
      ...saying(wire, 'x', { agent: 'strict' }),
      headers
    })
    const without = [
      at({}),
      at({ [name]: 'https://example.com/other' }),
      at({ [name]: `${REQUIRED}2` }),
      at({ [name]: ',;,' })
    ]
    await tried(refused(wire, NO_EXTENSION[wire], without))(t, places)
    t.is(told(wire, await it.ask(at({ [name]: REQUIRED }))), 'done', 'a client that names it is served')
  }),
  facade: 'it has no extensions: they are part of A2A messages',
  'AG-UI': 'it has no extensions: they are part of A2A messages',
  mesh: async (t, places) => {
    const it = await places.mesh()
    const at = (parameters: Readonly<Record<string, string>>): BadCall =>
      callOf(saying('JSON-RPC 1.0', 'x', { agent: 'strict' }), parameters)
    const without = [at({}), at({ 'a2a-extensions': 'https://example.com/other' })]
    await tried(refusedCalls('-32008 EXTENSION_SUPPORT_REQUIRED', without))(t, places)
    t.is(toldOfCall(await it.call(at({ 'a2a-extensions': REQUIRED }))), 'done')
  }
}

/** A message that comes again, and another one under its id. */
export const replays: Row = {
  ...onA2A((wire) => async (t, { http }) => {
    const it = await http()
    const before = it.talk.tasks.length
    const send = (text: string, by: 'alice' | 'bob' = 'alice') =>
      it.ask({ ...saying(wire, text, { id: `again ${wire}` }), by })
    const [one, two] = [idIn((await send('x')).text), idIn((await send('x')).text)]
    t.alike([two, it.talk.tasks.length], [one, before + 1], 'it was done once')
    t.is(told(wire, await send('y')), INVALID[wire], 'another one under its id is refused')
    t.not(idIn((await send('x', 'bob')).text), one, 'ids of messages are of their caller')
  }),
  facade: 'its requests have no ids: two runs that ask the same are two runs',
  'AG-UI': async (t, { http }) => {
    const it = await http()
    const before = it.talk.tasks.length
    const send = (text: string) =>
      it.ask({ place: '/agents/talk/agui', body: run('thread-again', [{ id: 'again', role: 'user', content: text }]) })
    const [one, two] = [idIn((await send('x')).text), idIn((await send('x')).text)]
    t.alike([two, it.talk.tasks.length], [one, before + 1], 'it was done once')
    t.is(told('AG-UI', await send('y')), '400 INVALID_ARGUMENT INVALID_PARAMS')
  },
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    const send = (text: string, by: 'alice' | 'bob' = 'alice') =>
      it.call(callOf({ ...saying('JSON-RPC 1.0', text, { id: 'again' }), by }))
    const one = idIn(JSON.stringify(await send('x')))
    t.is(idIn(JSON.stringify(await send('x'))), one)
    t.is(toldOfCall(await send('y')), '-32602 INVALID_PARAMS')
    t.not(idIn(JSON.stringify(await send('x', 'bob'))), one)
  }
}

function hookIn(wire: A2AWire, url: string): object {
  if (wire === 'JSON-RPC 1.0' || wire === 'REST 1.0') return { taskPushNotificationConfig: { url } }
  return { pushNotificationConfig: { url } }
}

/** Which of the requests of a task registers a webhook. */
const SET = { 'JSON-RPC 1.0': 3, 'JSON-RPC 0.3': 3, 'REST 1.0': 4, 'REST 0.3': 4 } as const

/** Webhooks that lead inside, with a message and for a task. */
export const webhooks: Row = {
  ...onA2A((wire) => async (t, places) => {
    const it = await places.http()
    const id = await begun(it, wire)
    const set = REFUSED.map(([url]) => asking(wire, id, { url })[SET[wire]] ?? { place: '' })
    const sent = REFUSED.slice(0, 8).map(([url]) => saying(wire, 'x', { configuration: hookIn(wire, url) }))
    await tried(refused(wire, INVALID[wire], [...set, ...sent]))(t, places)
    const listed = await it.ask(asking(wire, id).find(isList) ?? { place: '' })
    t.ok(told(wire, listed) === 'done' && !listed.text.includes('http'), 'none of them was kept')
  }),
  facade: 'its clients name no webhooks',
  'AG-UI': 'its clients name no webhooks',
  mesh: async (t, places) => {
    const it = await places.mesh()
    const id = await beginOver(t, it)
    const set = REFUSED.map(([url]) => callOf(rpc('CreateTaskPushNotificationConfig', { taskId: id, url })))
    await tried(refusedCalls('-32602 INVALID_PARAMS', set))(t, places)
  }
}

async function beginOver(t: Assert, it: BadMesh): Promise<string> {
  const id = idIn(JSON.stringify(await it.call(callOf(saying('JSON-RPC 1.0', 'ask')))))
  t.ok(id.startsWith('task_'))
  return id
}

function isList({ place, body, method }: BadRequest): boolean {
  const name = (body as { readonly method?: string } | undefined)?.method ?? ''
  return (
    /PushNotificationConfigs$|pushNotificationConfig\/list$/.test(name) ||
    (place.endsWith('/pushNotificationConfigs') && body === undefined && method === undefined)
  )
}
