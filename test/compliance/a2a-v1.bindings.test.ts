import test, { type Assert } from 'brittle'
import { MESH_EXTENSION } from '../../src/adapters/a2a/cards/card-subject.js'
import { request } from '../support/a2a.js'
import {
  at,
  isOldRpcFault,
  isRestFault,
  isRpcFault,
  type Json,
  read,
  says,
  type Subject,
  subject
} from '../support/compliance.js'

const V1 = { 'a2a-version': '1.0' }

test('A2A 1.0, sections 3.6, 4.6 and 5.3 to 11: bindings and negotiation', async (t) => {
  const s = await subject(t)
  await versions(t, s)
  await extensions(t, s)
  await tenants(t, s)
  await bindings(t, s)
  await errors(t, s)
  await discovery(t, s)
})

async function versions(group: Assert, s: Subject): Promise<void> {
  await group.test(
    '3.6.2 a version that is not spoken is VersionNotSupportedError on every binding, by header and by query',
    async (t) => {
      for (const version of ['0.5', '2.0', '99.0', '1', 'one', '1.0.0.0', '1.0, 0.3']) {
        const headers = { 'a2a-version': version }
        isRpcFault(t, await s.rpc('SendMessage', says('x'), { headers }), -32_009, 'VERSION_NOT_SUPPORTED')
        isRestFault(t, await s.rest('POST', '/message:send', says('x'), { headers }), [
          400,
          'FAILED_PRECONDITION',
          'VERSION_NOT_SUPPORTED'
        ])
        t.alike(at((await s.rest('GET', '/v1/tasks/x', undefined, { headers })).body, 'code'), -32_009)
      }
      const rpc = await s.rpc('GetTask', { id: 'x' }, { at: '/agents/talk?A2A-Version=0.5' })
      isRpcFault(t, rpc, -32_009, 'VERSION_NOT_SUPPORTED')
      t.is(rpc.body['id'], 'r1', 'of the request that it answers')
      t.is(at(rpc.body, 'error', 'data', 0, 'metadata', 'supportedVersions'), '1.0,0.3')
      isRestFault(t, await s.rest('GET', '/tasks?A2A-Version=0.5'), [
        400,
        'FAILED_PRECONDITION',
        'VERSION_NOT_SUPPORTED'
      ])
    }
  )
  await group.test('3.6 the number of a patch does not count', async (t) => {
    t.ok((await s.rpc('SendMessage', says('x'), { headers: { 'a2a-version': '1.0.7' } })).body['result'])
    t.is((await s.rest('GET', '/tasks', undefined, { headers: { 'a2a-version': ' 1.0.1 ' } })).status, 200)
  })
  await group.test(
    '3.6.2 a request is done by the version that it names: method and path of another one are not found',
    async (t) => {
      isRpcFault(t, await s.rpc('message/send', says('x'), { headers: V1 }), -32_601, 'METHOD_NOT_FOUND')
      isOldRpcFault(
        t,
        await s.rpc('SendMessage', says('x'), { headers: { 'a2a-version': '0.3' } }),
        -32_601,
        'METHOD_NOT_FOUND'
      )
      t.is((await s.rest('GET', '/v1/tasks', undefined, { headers: V1 })).status, 404)
      const old = await s.rest('GET', '/tasks/none', undefined, { headers: { 'a2a-version': '0.3' } })
      t.alike([old.status, at(old.body, 'code')], [404, -32_001], 'in the JSON of 0.3')
    }
  )
  await group.test('3.6.2 an empty version is 0.3 where neither method nor path implies another', async (t) => {
    for (const headers of [{}, { 'a2a-version': '' }] as Record<string, string>[]) {
      t.ok((await s.rpc('SendMessage', says('x'), { headers })).body['result'])
      const card = await read(await fetch(`${s.node.url}/agents/talk/.well-known/agent-card.json`, { headers }))
      t.ok('protocolVersion' in card.body, 'a card that clients of 0.3 read')
    }
    const one = await read(await fetch(`${s.node.url}/agents/talk/.well-known/agent-card.json?A2A-Version=1.0`))
    t.absent('protocolVersion' in one.body)
  })
}

async function extensions(group: Assert, s: Subject): Promise<void> {
  const echoed = async (headers: Record<string, string>) => [
    (await s.rpc('SendMessage', says('x'), { headers })).headers,
    (await s.rest('GET', '/tasks', undefined, { headers })).headers,
    (await request(s.node, '/agents/talk/message:stream', { json: says('x'), headers })).headers
  ]
  await group.test(
    '4.6.1 an extension of the card that is asked for is activated, and the answer says so',
    async (t) => {
      for (const headers of await echoed({ 'a2a-extensions': `https://example.com/ext/v1, ${MESH_EXTENSION}` }))
        t.is(headers.get('a2a-extensions'), MESH_EXTENSION)
    }
  )
  await group.test('4.6.3 an extension, or a version of one, that the card does not have is ignored', async (t) => {
    for (const text of ['https://example.com/ext/v1', `${MESH_EXTENSION}2`, ',,;;', '\u00e9, ok', 'x'.repeat(12_000)])
      for (const headers of await echoed({ 'a2a-extensions': text })) t.is(headers.get('a2a-extensions'), null)
  })
  await group.test('3.2.6 a header beyond what headers may have is refused, as JSON', async (t) => {
    const answer = await read(
      await request(s.node, '/agents/talk/tasks', { headers: { 'a2a-extensions': 'x'.repeat(20_000) } })
    )
    t.alike([answer.status, answer.type], [431, 'application/json'])
  })
}

async function tenants(group: Assert, s: Subject): Promise<void> {
  const byRead = (answer: { body: Json }): unknown =>
    at(answer.body, 'result', 'message', 'parts', 0, 'text') ?? at(answer.body, 'message', 'parts', 0, 'text')
  await group.test('a tenant at the URL of the node is one of its agents, in paths and in parameters', async (t) => {
    t.is(byRead(await s.rpc('SendMessage', { ...says('a'), tenant: 'read' }, { at: '/a2a' })), 'read a')
    t.is(byRead(await s.rest('POST', '/message:send', { ...says('b'), tenant: 'read' }, { at: '/a2a' })), 'read b')
    t.is(byRead(await s.rest('POST', '/read/message:send', says('c'), { at: '/a2a' })), 'read c')
    t.is(
      (await s.rest('GET', '/talk/tasks', undefined, { at: '/a2a' })).body['totalSize'],
      (await s.rest('GET', '/tasks')).body['totalSize']
    )
    isRpcFault(
      t,
      await s.rpc('SendMessage', { ...says('a'), tenant: 'nobody' }, { at: '/a2a' }),
      -32_602,
      'INVALID_PARAMS'
    )
    isRpcFault(t, await s.rpc('SendMessage', { ...says('a'), tenant: 'read' }), -32_602, 'INVALID_PARAMS')
  })
  await group.test(
    '/a2a/{agent} is the JSON-RPC of that agent; names of the protocol below /a2a stay those of the node',
    async (t) => {
      t.is(byRead(await s.rpc('SendMessage', says('d'), { at: '/a2a/read' })), 'read d')
      t.ok(at((await s.rpc('message/send', says('e'), { at: '/a2a/talk' })).body, 'result', 'id') ?? true)
      t.ok(Array.isArray((await s.rest('GET', '/tasks', undefined, { at: '/a2a' })).body['tasks']))
      t.is((await s.rest('GET', '/card', undefined, { at: '/a2a' })).body['name'], 'subject')
    }
  )
}

async function bindings(group: Assert, s: Subject): Promise<void> {
  await group.test('5.3 every operation has its method and its path', async (t) => {
    const { id } = at((await s.rpc('SendMessage', says('x'))).body, 'result', 'task') as { id: string }
    for (const [method, params] of [
      ['GetTask', { id }],
      ['ListTasks', {}],
      ['GetExtendedAgentCard', undefined]
    ] as const)
      t.ok((await s.rpc(method, params, { headers: V1 })).body['result'], method)
    for (const path of [`/tasks/${id}`, '/tasks', '/extendedAgentCard'])
      t.is((await s.rest('GET', path, undefined, { headers: V1 })).status, 200, path)
    for (const name of ['Create', 'Get', 'Delete']) {
      const answer = await s.rpc(`${name}TaskPushNotificationConfig`, { taskId: 'task_none', id: 'x' })
      t.not(at(answer.body, 'error', 'code'), -32_601, name)
    }
    t.not(at((await s.rpc('ListTaskPushNotificationConfigs', { taskId: 'task_none' })).body, 'error', 'code'), -32_601)
  })
  await group.test('5.1 both bindings give the same for the same', async (t) => {
    const { id } = at((await s.rpc('SendMessage', says('x'))).body, 'result', 'task') as { id: string }
    t.alike((await s.rest('GET', `/tasks/${id}`)).body, (await s.rpc('GetTask', { id })).body['result'])
    t.alike((await s.rest('GET', '/tasks?pageSize=2')).body, (await s.rpc('ListTasks', { pageSize: 2 })).body['result'])
  })
  await group.test(
    '9.1 JSON-RPC is application/json; 11.1 REST is application/a2a+json, and takes it; 11.7 streams are text/event-stream',
    async (t) => {
      t.is((await s.rpc('SendMessage', says('x'))).type, 'application/json')
      t.is(
        (await s.rest('POST', '/message:send', says('x'), { headers: { 'content-type': 'application/a2a+json' } }))
          .type,
        'application/a2a+json'
      )
      const stream = await request(s.node, '/agents/talk/message:stream', { json: says('x') })
      t.is(stream.headers.get('content-type'), 'text/event-stream')
      await stream.body?.cancel()
    }
  )
  await group.test(
    '9.3 an invalid request of JSON-RPC 2.0 gets the error code of its fault, with the id where there is one',
    async (t) => {
      const raw = async (body: unknown) =>
        read(
          await request(s.node, '/agents/talk', {
            method: 'POST',
            body: typeof body === 'string' ? body : JSON.stringify(body)
          })
        )
      isRpcFault(t, await raw('{"jsonrpc":'), -32_700, 'PARSE_ERROR')
      for (const bad of [
        [],
        1,
        { jsonrpc: 'aaa', id: 1, method: 'GetTask' },
        { jsonrpc: '2.0', id: 1 },
        { jsonrpc: '2.0', id: { a: 1 }, method: 'GetTask' }
      ])
        isRpcFault(t, await raw(bad), -32_600, 'INVALID_REQUEST')
      t.is((await raw({ jsonrpc: '1.0', id: 'q', method: 'GetTask' })).body['id'], 'q')
      isRpcFault(t, await raw({ jsonrpc: '2.0', id: 1, method: 'SendMessageXXX' }), -32_601, 'METHOD_NOT_FOUND')
      isRpcFault(
        t,
        await raw({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: { parts: 'invalid' } } }),
        -32_602,
        'INVALID_PARAMS'
      )
    }
  )
}

async function errors(group: Assert, s: Subject): Promise<void> {
  await group.test(
    '3.3.2 without a good token a request is refused with a challenge, in the words of its binding',
    async (t) => {
      const nobody = { ...s.node, token: 'a2a_none' }
      const rpc = await s.rpc('GetTask', { id: 'x' }, { by: nobody })
      t.alike(
        [rpc.status, rpc.body['jsonrpc'], rpc.body['id'], at(rpc.body, 'error', 'code')],
        [401, '2.0', 'r1', -32_603]
      )
      t.ok(rpc.headers.get('www-authenticate')?.startsWith('Bearer'))
      isRestFault(t, await s.rest('GET', '/tasks', undefined, { by: nobody }), [401, 'UNAUTHENTICATED', 'UNAUTHORIZED'])
      t.is(at((await s.rest('GET', '/v1/tasks', undefined, { by: nobody })).body, 'code'), -32_603)
    }
  )
  await group.test('3.1.1 a media type that the agent does not take is ContentTypeNotSupportedError', async (t) => {
    const parts = [{ raw: 'dGNr', mediaType: 'application/x-unsupported-tck-type' }]
    isRpcFault(t, await s.rpc('SendMessage', says('', { parts })), -32_005, 'CONTENT_TYPE_NOT_SUPPORTED')
    isRpcFault(t, await s.rpc('SendStreamingMessage', says('', { parts })), -32_005, 'CONTENT_TYPE_NOT_SUPPORTED')
    isRpcFault(
      t,
      await s.rpc('SendMessage', says('', { parts }), { at: '/agents/read' }),
      -32_005,
      'CONTENT_TYPE_NOT_SUPPORTED'
    )
    isRestFault(t, await s.rest('POST', '/message:send', says('', { parts })), [
      400,
      'INVALID_ARGUMENT',
      'CONTENT_TYPE_NOT_SUPPORTED'
    ])
  })
  await group.test('11.6 what is not there is an error of AIP-193', async (t) => {
    isRestFault(t, await s.rest('GET', '/nothing'), [404, 'NOT_FOUND', 'METHOD_NOT_FOUND'])
    isRestFault(t, await s.rest('POST', '/message:send', {}), [400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'])
  })
}

async function discovery(group: Assert, s: Subject): Promise<void> {
  await group.test(
    '8.2 the card is at the well-known path without a token, with its required members; 8.6.1 it may be cached',
    async (t) => {
      const answer = await read(await fetch(`${s.node.url}/.well-known/agent-card.json`, { headers: V1 }))
      for (const name of [
        'name',
        'description',
        'supportedInterfaces',
        'version',
        'capabilities',
        'defaultInputModes',
        'defaultOutputModes',
        'skills'
      ])
        t.ok(name in answer.body, name)
      t.ok(/max-age=\d+/.test(answer.headers.get('cache-control') ?? ''))
      t.ok(answer.headers.get('etag') !== null && answer.headers.get('last-modified') !== null)
    }
  )
  await group.test('8.3.1 every interface of a card answers at its URL in its version', async (t) => {
    const { body } = await read(await fetch(`${s.node.url}/agents/talk/.well-known/agent-card.json`, { headers: V1 }))
    for (const { url, protocolBinding, protocolVersion } of overHttp(body['supportedInterfaces']) as {
      url: string
      protocolBinding: string
      protocolVersion: string
    }[]) {
      const place = url.slice(s.node.url.length)
      const headers = { 'a2a-version': protocolVersion }
      const isOld = protocolVersion === '0.3'
      const answer =
        protocolBinding === 'JSONRPC'
          ? await s.rpc(isOld ? 'tasks/get' : 'GetTask', { id: 'x' }, { at: place, headers })
          : await s.rest('GET', `${isOld ? '/v1' : ''}/tasks/x`, undefined, { at: place, headers })
      t.ok(
        [at(answer.body, 'error', 'code'), at(answer.body, 'code')].some((code) => code === -32_001 || code === 404),
        `${protocolBinding} ${protocolVersion}`
      )
    }
  })
  await group.test('3.1.11 the extended card needs a token and is that of the URL', async (t) => {
    t.is((await fetch(`${s.node.url}/agents/talk/extendedAgentCard`)).status, 401)
    t.is((await s.rest('GET', '/extendedAgentCard')).body['name'], 'talk')
    t.is(at((await s.rpc('GetExtendedAgentCard', undefined, { at: '/a2a' })).body, 'result', 'name'), 'subject')
    t.is(at((await s.rpc('GetExtendedAgentCard', { tenant: 'read' }, { at: '/a2a' })).body, 'result', 'name'), 'read')
  })
}

/** Those of the mesh answer on links between nodes alone. */
function overHttp(interfaces: unknown): readonly unknown[] {
  return (interfaces as readonly { readonly url: string }[]).filter(({ url }) => url.startsWith('http:'))
}
