import fs from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { remoteServer } from '../support/a2a/remote-server.js'
import { ask, type GatewayNode, gatewayNode, request, streamed } from '../support/a2a.js'
import { localMesh, untilAgent, untilOnline } from '../support/nodes.js'

const TIMEOUT = { timeout: 180_000 }

/** A server of 0.3 over REST, whose stream has an artifact in these pieces, and whose task has it in three. */
async function restServer(t: Assert, pieces = ['one ', 'two ', 'three']): Promise<string> {
  const server = http.createServer((asked, response) => {
    const url = `http://${asked.headers.host ?? ''}`
    const about = {
      name: 'Pieces',
      description: 'Sends pieces.',
      version: '1',
      defaultInputModes: [],
      defaultOutputModes: []
    }
    const skills = [{ id: 'talk', name: 'Talk', description: 'Talks.', tags: [] }]
    const card = {
      ...about,
      skills,
      capabilities: { streaming: true },
      url: `${url}/rest`,
      preferredTransport: 'HTTP+JSON',
      protocolVersion: '0.3.0'
    }
    const artifact = (...texts: string[]): object => ({ artifactId: 'out', parts: texts.map((text) => ({ text })) })
    const status = (state: string): object => ({ state, timestamp: '2026-01-01T00:00:00Z' })
    const json = (value: object): void =>
      void response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (asked.url?.endsWith('agent-card.json') === true) return json(card)
    const task = {
      id: 't1',
      contextId: 'c1',
      status: status('TASK_STATE_COMPLETED'),
      artifacts: [artifact('one ', 'two ', 'three')],
      history: []
    }
    if (asked.url?.includes('/v1/tasks/') === true) return json(task)
    response.setHeader('content-type', 'text/event-stream')
    const ids = { taskId: 't1', contextId: 'c1' }
    const piece = (text: string, append: boolean): object => ({
      artifactUpdate: { ...ids, artifact: artifact(text), append, lastChunk: false }
    })
    const events = [
      { task: { ...task, status: status('TASK_STATE_WORKING'), artifacts: [] } },
      ...pieces.map((text, at) => piece(text, at > 0)),
      { statusUpdate: { ...ids, status: status('TASK_STATE_COMPLETED'), final: true } }
    ]
    asked.resume().on('end', () => response.end(events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise((resolve) => server.closeAllConnections() ?? server.close(() => resolve(undefined))))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Refuses each message with this status and a JSON body that looks like an answer. */
async function refusing(t: Assert, version: '1.0' | '0.3', status: number): Promise<string> {
  const good = await remoteServer(t, version, () => {})
  const server = http.createServer((asked, response) => {
    response.setHeader('content-type', 'application/json')
    if (asked.method === 'GET')
      return void response.end(JSON.stringify(good.card).replaceAll(good.host, asked.headers.host ?? ''))
    response.writeHead(status).end('{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal"}}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise((resolve) => server.closeAllConnections() ?? server.close(() => resolve(undefined))))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A gateway and a node of its mesh, which has the agent `talk` and these external agents. */
async function scene(t: Assert, external: Readonly<Record<string, string>>) {
  const mesh = await localMesh(t)
  const near = await gatewayNode(mesh, 'near')
  const home = await mesh.dir()
  const agents = Object.entries(external).map(([id, card]) => `    ${id}: { card: "${card}" }`)
  const lines = agents.length === 0 ? [] : ['a2a:', '  allowPrivate: [127.0.0.1]', '  agents:', ...agents]
  fs.writeFileSync(path.join(home, 'config.yaml'), [...lines, ''].join('\n'))
  const { code } = await near.node.api.call('invite.create', { trust: 'mine' })
  const far = await mesh.start('far', {
    home,
    join: code,
    args: ['--agents', path.join(near.dir, 'agents'), '--http', '0']
  })
  await untilOnline(near.node, 1)
  for (const id of ['talk', ...Object.keys(external)]) await untilAgent(near.node, `${id}@far`)
  const { token } = await far.json<{ token: string }>(['a2a', 'token', 'create'])
  return { near, far: { ...near, node: far, url: far.info.http ?? '', token } }
}

let sent = 0
const says = (text: string, version: string, more: object = {}): object => ({
  messageId: `f${++sent}`,
  role: version === '1.0' ? 'ROLE_USER' : 'user',
  parts: [version === '1.0' ? { text } : { kind: 'text', text }],
  ...more
})
const call = (node: GatewayNode, place: string, method: string, params: object) =>
  ask(node, place, { json: { jsonrpc: '2.0', id: 1, method, params } })
const errorOf = (body: Record<string, unknown>) =>
  body['error'] as { code: number; message: string; data: FaultInfo | readonly FaultInfo[] }

interface FaultInfo {
  readonly metadata?: Record<string, string>
}

test(
  'faults of requests have the numbers and the form of the official servers, also one hop before their agent',
  TIMEOUT,
  async (t: Assert) => {
    const { near, far } = await scene(t, {})
    for (const [node, place] of [
      [far, '/agents/talk'],
      [near, '/agents/talk@far']
    ] as const) {
      const wrong = { message: says('x', '0.3', { taskId: 'task_none' }) }
      const stream = await request(node, place, {
        json: { jsonrpc: '2.0', id: 7, method: 'message/stream', params: wrong }
      })
      t.is(stream.headers.get('content-type'), 'text/event-stream')
      const [event, ...more] = (await stream.text()).split('\n\n').filter(Boolean)
      const told = JSON.parse(event?.replace(/^data: /, '') ?? '{}') as Record<string, unknown>
      t.alike([told['id'], errorOf(told).code, more.length], [7, -32001, 0])
      const again = await request(node, place, {
        json: { jsonrpc: '2.0', id: 8, method: 'tasks/resubscribe', params: { id: 'task_none' } }
      })
      t.is(again.headers.get('content-type'), 'text/event-stream')
      const plain = await call(node, place, 'SendStreamingMessage', {
        message: says('x', '1.0', { taskId: 'task_none' })
      })
      t.alike([plain.type, errorOf(plain.body).code], ['application/json', -32001])

      for (const [method, version] of [
        ['SendMessage', '1.0'],
        ['message/send', '0.3']
      ] as const) {
        const message = says('once', version)
        t.absent((await call(node, place, method, { message })).body['error'])
        const other = { ...message, parts: (says('other', version) as { parts: object[] }).parts }
        const reused = errorOf((await call(node, place, method, { message: other })).body)
        t.is(Array.isArray(reused.data), version === '1.0', `data of an error of ${method}`)
        const [info] = [reused.data].flat()
        t.alike([reused.code, info?.metadata?.['reason']], [-32602, 'MESSAGE_ID_REUSED'], method)
      }
      const nameless = async (method: string) =>
        errorOf((await ask(node, place, { json: { jsonrpc: '2.0', method, params: {} } })).body).code
      t.alike([await nameless('NoSuchMethod'), await nameless('GetTask')], [-32601, -32600])

      const bare = { ...says('', '0.3'), parts: [{ text: 'a' }, { data: { b: 1 } }] }
      const { result } = (await call(node, place, 'message/send', { message: bare })).body as {
        result?: { status: { state: string } }
      }
      t.is(result?.status.state, 'completed')
    }
  }
)

test(
  'a stream of one message is one event, over each transport and version, also one hop before its agent',
  TIMEOUT,
  async (t) => {
    const { near, far } = await scene(t, {})
    for (const [node, place] of [
      [far, '/agents/talk'],
      [near, '/agents/talk@far']
    ] as const) {
      const events = async (at: string, json: object): Promise<Record<string, unknown>[]> => {
        const read: Record<string, unknown>[] = []
        for await (const { data } of streamed(node, place + at, { json })) read.push(data)
        return read
      }
      const rpc = (method: string, params: object) => events('', { jsonrpc: '2.0', id: 1, method, params })
      const text = JSON.stringify({ message: 'hello' })
      // The first run starts the process of the agent, which may take long.
      await call(node, place, 'SendMessage', { message: says('x', '1.0') })
      const [modern, old] = [() => ({ message: says(text, '1.0') }), () => ({ message: says(text, '0.3') })]
      const all = [
        await rpc('SendStreamingMessage', modern()),
        await events('/message:stream', modern()),
        await rpc('message/stream', old()),
        await events('/v1/message:stream', old())
      ]
      t.alike(
        all.map(({ length }) => length),
        [1, 1, 1, 1],
        JSON.stringify(all)
      )
      const results = all.map(([event]) => (event?.['result'] ?? event) as Record<string, unknown>)
      interface Said {
        readonly parts?: readonly { readonly text: string }[]
        readonly content?: readonly { readonly text: string }[]
        readonly taskId?: string
      }
      const messages = results.map((one) => (one['message'] ?? one) as Said)
      t.alike(
        messages.map(({ parts, content, taskId }) => [(parts ?? content)?.[0]?.text, taskId]),
        all.map(() => ['hello', undefined]),
        JSON.stringify(results)
      )
      t.is(results[2]?.['kind'], 'message')
      const plain = await rpc('SendStreamingMessage', { message: says('x', '1.0') })
      t.ok(((plain[0]?.['result'] ?? {}) as { task?: object }).task, 'a plain result is the artifact of a task')
    }
  }
)

test(
  'an answer that does not fit the schema of a question is refused, and the task waits on, also one hop before its agent',
  TIMEOUT,
  async (t) => {
    const { near, far } = await scene(t, {})
    const schema = { type: 'object', properties: { seats: { type: 'integer' } }, required: ['seats'] }
    for (const [node, place] of [
      [far, '/agents/talk'],
      [near, '/agents/talk@far']
    ] as const) {
      for (const [method, version] of [
        ['SendMessage', '1.0'],
        ['message/send', '0.3']
      ] as const) {
        const send = async (text: string, more: object = {}) =>
          (await call(node, place, method, { message: says(text, version, more) })).body
        const begun = (await send(JSON.stringify({ ask: 'How many?', schema })))['result'] as { task?: object }
        const { id: taskId } = (begun.task ?? begun) as { id: string }
        for (const wrong of ['three', '{"seats": "three"}']) {
          const { code, message } = errorOf(await send(wrong, { taskId }))
          t.is(code, -32602)
          t.ok(message.includes('does not fit the schema of the question'), message)
        }
        const { message: named } = errorOf(await send('{"seats": 1.5}', { taskId }))
        t.ok(named.includes('/seats'), named)
        const fits = (await send('{"seats": 3}', { taskId }))['result'] as { task?: object }
        const { status } = (fits.task ?? fits) as { status: { state: string } }
        t.ok(/completed/i.test(status.state), status.state)
      }
    }
  }
)

test('a repeated message with another webhook adds it once', TIMEOUT, async (t: Assert) => {
  const mesh = await localMesh(t)
  const node = await gatewayNode(mesh, 'near')
  const until = path.join(node.dir, 'go')
  const message = says(JSON.stringify({ until }), '1.0')
  const send = async (url?: string): Promise<string> => {
    const push = url === undefined ? {} : { taskPushNotificationConfig: { url } }
    const { body } = await call(node, '/agents/talk', 'SendMessage', {
      message,
      configuration: { returnImmediately: true, ...push }
    })
    return (body['result'] as { task: { id: string } }).task.id
  }
  const id = await send()
  t.is(await send('https://example.com/hook'), id)
  await send('https://example.com/hook')
  await send('https://example.com/other')
  const { body } = await call(node, '/agents/talk', 'ListTaskPushNotificationConfigs', { taskId: id })
  const { configs } = body['result'] as { configs: { url: string }[] }
  t.alike(configs.map(({ url }) => url).sort(), ['https://example.com/hook', 'https://example.com/other'])
  fs.writeFileSync(until, '')
})

test('ends of external agents reach a client a hop away as they are', TIMEOUT, async (t: Assert) => {
  const script = ({
    text,
    say,
    end
  }: {
    text: string
    say(text: string): void
    end(state: 'rejected' | 'failed', text?: string): void
  }): void => {
    say('still thinking')
    if (text === 'reject') end('rejected', 'not mine')
    else end('failed')
  }
  const [modern, old] = [await remoteServer(t, '1.0', script), await remoteServer(t, '0.3', script)]
  const { near } = await scene(t, {
    modern: modern.cardUrl,
    old: old.cardUrl,
    rest: await restServer(t),
    single: await restServer(t, ['one ']),
    none: await restServer(t, []),
    denied: await refusing(t, '1.0', 401),
    forbidden: await refusing(t, '0.3', 403)
  })
  const end = async (agent: string, text: string, version: '1.0' | '0.3' = '1.0') => {
    const method = version === '1.0' ? 'SendMessage' : 'message/send'
    const { body } = await call(near, `/agents/${agent}@far`, method, { message: says(text, version) })
    const given = (body['result'] ?? {}) as { task?: object }
    const task = (given.task ?? given) as {
      status?: { state: string; message?: { parts: { text: string }[] } }
      artifacts?: { parts: { text: string }[] }[]
    }
    return {
      state: task.status?.state,
      text: task.status?.message?.parts[0]?.text ?? '',
      artifacts: task.artifacts?.map(({ parts }) => parts.map(({ text: one }) => one).join(''))
    }
  }
  for (const agent of ['modern', 'old']) {
    const rejected = await end(agent, 'reject')
    t.alike([rejected.state, rejected.text.includes('not mine')], ['TASK_STATE_REJECTED', true])
    t.is((await end(agent, 'reject', '0.3')).state, 'rejected')
    const failed = await end(agent, 'fail')
    t.alike([failed.state, failed.text.includes('thinking')], ['TASK_STATE_FAILED', false], failed.text)
  }
  for (const agent of ['rest', 'single', 'none']) t.alike((await end(agent, 'go')).artifacts, ['one two three'], agent)
  t.ok((await end('denied', 'x')).text.includes('HTTP 401'), (await end('denied', 'x')).text)
  t.ok((await end('forbidden', 'x')).text.includes('HTTP 403'))
  const events: unknown[] = []
  for await (const { data } of streamed(near, '/agents/rest@far/message:stream', {
    json: { message: says('go', '1.0') }
  }))
    events.push(data)
  t.ok(JSON.stringify(events.at(-1)).includes('COMPLETED'))
})
