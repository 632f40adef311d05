import http from 'node:http'
import test, { type Assert } from 'brittle'
import { GatewayRoute } from '../../../../src/adapters/a2a/server/gateway-route.js'
import { meshUrl } from '../../../../src/adapters/a2a/mesh-binding/mesh-uri.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { MAX_MEMBER_TASKS } from '../../../../src/node/gateway/task-intake.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'
import type { CallRequest } from '../../../../src/ports/member-calls.js'
import type { Principal } from '../../../../src/ports/node-api.js'
import { gathered, rpcCall, servesCalls, settled, userMessage } from '../../../support/calls.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../../support/fake-node.js'

const TOKEN: Principal = {
  kind: 'token',
  name: 'token',
  id: 'tok_1',
  tier: 1,
  sandboxId: null,
  scopes: ['read', 'send']
}

/** An answer, or the items of a stream with their ids. */
type Told = readonly { readonly id: number | null; readonly json: unknown }[]
type Mount = (request: CallRequest) => Promise<Told>

/** Does what its input says. */
function talker(): FakeAgent {
  const answer = (input: Record<string, unknown>): AgentOutcome | null => {
    if (input['text'] === 'wait') return null
    if (input['text'] === 'fail') return { ok: false, code: 'TASK_FAILED', message: 'it failed' }
    if (input['text'] === 'ask')
      return { ok: true, result: { a2a: { state: 'input-required', message: 'Which one?' } } }
    return { ok: true, result: { text: `you said ${String(input['text'])}` } }
  }
  const capabilities = [
    capability('slow.say', { default: true, idempotent: false }),
    capability('slow.look', { sideEffect: 'none', idempotent: true })
  ]
  return new FakeAgent(agentDefinition('slow', { capabilities }), ({ input }) =>
    answer(input as Record<string, unknown>)
  )
}

async function scene(t: Assert, options: FakeNodeOptions = {}, terms: object = {}) {
  const world = new World(t)
  const slow = talker()
  const [owner, member] = [await world.owner({ agents: [slow], ...options }), await world.member('m', { terms })]
  const gateway = await servesCalls(t, owner)
  await world.link(owner, member)
  const mesh: Mount = async (request) => {
    const call = gathered(member.core.memberCalls.open(owner.id, request))
    const end = await settled(world, call.end)
    if (end !== 'done') throw new Error(`the call ended with ${end}`)
    return call.pieces.map(({ generation, json }) => ({ id: generation, json }))
  }
  return { world, owner, member, gateway, slow, mesh }
}

/** The same gateway over HTTP, for a token as powerful as the member. */
async function overHttp(
  t: Assert,
  { world, gateway }: Pick<Awaited<ReturnType<typeof scene>>, 'world' | 'gateway'>
): Promise<Mount> {
  const route = new GatewayRoute({
    gateway,
    clock: world.clock,
    extensions: () => [],
    extendedCard: (_by, agent) => Promise.resolve({ name: agent ?? 'node' })
  })
  const server = http.createServer((request, response) => {
    const readBody = async (): Promise<Buffer> => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks)
    }
    const [agent] = request.url === '/a2a' ? [null] : [(request.url ?? '').slice('/agents/'.length)]
    const call = { principal: TOKEN, signal: new AbortController().signal, query: '', readBody }
    void route.handle({ request, response }, call, { agent, path: '' })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return async ({ path, parameters, body }) => {
    const asked = fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...parameters },
      body: Buffer.from(body)
    }).then(async (response) => ({ type: response.headers.get('content-type'), text: await response.text() }))
    const { type, text } = await settled(world, asked)
    if (type !== 'text/event-stream') return [{ id: null, json: JSON.parse(text) as unknown }]
    return text
      .split('\n\n')
      .filter((block) => block.includes('data: '))
      .map((block) => ({
        id: Number(/^id: (\d+)$/m.exec(block)?.[1]),
        json: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null') as unknown
      }))
  }
}

/** What is by chance or of the moment has the place of its first sight in its stead. */
function plain(told: unknown): unknown {
  const seen = new Map<string, string>()
  const text = JSON.stringify(told).replace(/\b(?:task|ctx|msg)_[0-9A-Za-z_]+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, (found) => {
    const kind = found.includes('T') && found.endsWith('Z') ? 'time' : (found.split('_')[0] ?? '')
    if (kind === 'time') return 'time'
    if (!seen.has(found)) seen.set(found, `${kind} ${seen.size}`)
    return seen.get(found) ?? ''
  })
  return JSON.parse(text) as unknown
}

const v03 = (messageId: string, text: string): object => ({
  message: { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text }] }
})
const raw = (text: string): CallRequest => ({ ...rpcCall('', {}), body: utf8(text) })
const idIn = (told: Told): string => /task_[0-9A-Za-z_]+/.exec(JSON.stringify(told[0]?.json))?.[0] ?? ''
const contextIn = (told: Told): string => /ctx_[0-9A-Za-z_]+/.exec(JSON.stringify(told[0]?.json))?.[0] ?? ''

/** Calls in their order; each is made of what came of those before. */
const CALLS: readonly (readonly [string, (before: readonly Told[]) => CallRequest])[] = [
  ['a task', () => rpcCall('SendMessage', userMessage('a', 'hello'))],
  ['the same again', () => rpcCall('SendMessage', userMessage('a', 'hello'))],
  ['another one with its id', () => rpcCall('SendMessage', userMessage('a', 'other'))],
  ['a task of 0.3', () => rpcCall('message/send', v03('b', 'hello'))],
  [
    'a message without a task',
    () => rpcCall('SendMessage', { ...userMessage('c', 'hello'), metadata: { skillId: 'slow.look' } })
  ],
  ['one that fails', () => rpcCall('SendMessage', userMessage('d', 'fail'))],
  ['a stream', () => rpcCall('SendStreamingMessage', userMessage('e', 'hello'))],
  ['a stream of 0.3', () => rpcCall('message/stream', v03('f', 'hello'))],
  ['one that asks back', () => rpcCall('SendMessage', userMessage('g', 'ask'))],
  ['its answer', (before) => rpcCall('SendMessage', userMessage('h', 'that one', { taskId: idIn(before[8] ?? []) }))],
  [
    'an answer too late',
    (before) => rpcCall('SendMessage', userMessage('i', 'more', { taskId: idIn(before[8] ?? []) }))
  ],
  ['its state', (before) => rpcCall('GetTask', { id: idIn(before[8] ?? []), historyLength: 1 })],
  ['its state in 0.3', (before) => rpcCall('tasks/get', { id: idIn(before[8] ?? []) })],
  [
    'taken up behind an event',
    (before) => rpcCall('SubscribeToTask', { id: idIn(before[6] ?? []) }, { parameters: { 'last-event-id': '2' } })
  ],
  ['an end that is followed', (before) => rpcCall('SubscribeToTask', { id: idIn(before[6] ?? []) })],
  [
    'behind what has not happened',
    (before) => rpcCall('SubscribeToTask', { id: idIn(before[6] ?? []) }, { parameters: { 'last-event-id': '99' } })
  ],
  [
    'one that waits',
    () => rpcCall('SendMessage', { ...userMessage('j', 'wait'), configuration: { returnImmediately: true } })
  ],
  ['it is canceled', (before) => rpcCall('CancelTask', { id: idIn(before[16] ?? []) })],
  ['it is canceled again', (before) => rpcCall('CancelTask', { id: idIn(before[16] ?? []) })],
  ['a list', () => rpcCall('ListTasks', { pageSize: 2 })],
  [
    'a list by context',
    (before) =>
      rpcCall('ListTasks', { contextId: contextIn(before[0] ?? []), historyLength: 5, includeArtifacts: true })
  ],
  ['a bad cursor', () => rpcCall('ListTasks', { pageToken: 'nothing' })],
  ['a task that is not there', () => rpcCall('GetTask', { id: 'task_nothing' })],
  ['push', () => rpcCall('CreateTaskPushNotificationConfig', {})],
  ['an extended card', () => rpcCall('GetExtendedAgentCard', {})],
  [
    'at the node',
    () =>
      rpcCall('SendMessage', { ...userMessage('k', 'hello'), metadata: { skillId: 'slow/slow.say' } }, { path: '/a2a' })
  ],
  ['at the node, for its only agent', () => rpcCall('SendMessage', userMessage('l', 'hello'), { path: '/a2a' })],
  [
    'of an agent that is not there',
    () => rpcCall('SendMessage', userMessage('m', 'hello'), { path: '/agents/nobody' })
  ],
  [
    'of a skill that is not there',
    () => rpcCall('SendMessage', { ...userMessage('n', 'hello'), metadata: { skillId: 'no' } })
  ],
  ['a method that is not there', () => rpcCall('Nothing', {})],
  ['another version', () => rpcCall('GetTask', { id: 'x' }, { parameters: { 'a2a-version': '9.9' } })],
  ['no JSON', () => raw('{')],
  ['a batch', () => raw('[]')],
  ['no request', () => raw('{"jsonrpc":"1.0","id":1,"method":"GetTask"}')],
  ['no id', () => raw('{"jsonrpc":"2.0","method":"GetTask"}')],
  [
    'a message that is none',
    () => rpcCall('SendMessage', { message: { messageId: 'o', role: 'ROLE_USER', parts: [] } })
  ],
  [
    'JSON that is too deep',
    () => raw(`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${'['.repeat(40)}${']'.repeat(40)}}`)
  ]
]

test('the gateway answers alike over HTTP and over the mesh, for every call', async (t) => {
  const it = await scene(t)
  const mounts = [await overHttp(t, it), it.mesh]
  const [web, mesh] = [[] as Told[], [] as Told[]]
  for (const [title, make] of CALLS) {
    for (const [at, told] of [web, mesh].entries()) told.push((await mounts[at]?.(make(told))) ?? [])
    t.alike(plain(mesh.at(-1)), plain(web.at(-1)), title)
  }
  t.is(it.slow.tasks.length, 22, 'and each did it')
})

test('a task of another member, or of a token, is as good as absent over the mesh', async (t) => {
  const it = await scene(t)
  const other = await it.world.member('n')
  await it.world.link(it.owner, other)
  const token = await overHttp(t, it)
  const id = idIn(await it.mesh(rpcCall('SendMessage', userMessage('a', 'ask'))))
  const ofToken = idIn(await token(rpcCall('SendMessage', userMessage('b', 'ask'))))
  const asked = async (node: FakeNode, request: CallRequest): Promise<unknown> => {
    const call = gathered(node.core.memberCalls.open(it.owner.id, request))
    await settled(it.world, call.end)
    return call.pieces[0]?.json['error'] ?? call.pieces[0]?.json['result']
  }
  const absent = await asked(other, rpcCall('GetTask', { id: 'task_never' }))
  for (const [method, node, one] of [
    ['GetTask', other, id],
    ['CancelTask', other, id],
    ['SubscribeToTask', other, id],
    ['GetTask', it.member, ofToken],
    ['CancelTask', it.member, ofToken]
  ] as const)
    t.alike(await asked(node, rpcCall(method, { id: one })), absent, method)
  t.alike(await asked(other, rpcCall('SendMessage', userMessage('c', 'more', { taskId: id }))), absent)
  t.alike(await asked(other, rpcCall('ListTasks', {})), { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
})

test('tier, sandbox, claims and policy bind a member as a request of it would be bound, and the audit log names it', async (t) => {
  const policy = `rules:
  - { decision: deny, from: { node: m }, capability: slow.look }
  - { decision: ask, from: { node: m }, capability: slow.say }
`
  const it = await scene(t, { policy })
  const reason = async (request: CallRequest): Promise<unknown> => {
    const [told] = await it.mesh(request)
    const { error } = (told?.json ?? {}) as {
      readonly error?: {
        readonly message: string
        readonly data: readonly { readonly reason: string; readonly metadata: { readonly code: string } }[]
      }
    }
    return error === undefined ? 'done' : [error.data[0]?.reason, error.data[0]?.metadata?.code]
  }
  const look = { ...userMessage('a', 'hello'), metadata: { skillId: 'slow.look' } }
  t.alike(await reason(rpcCall('SendMessage', look)), ['FORBIDDEN', 'POLICY_DENIED'])
  t.alike(
    await reason(rpcCall('SendMessage', userMessage('b', 'hello'))),
    ['FORBIDDEN', 'POLICY_DENIED'],
    'nobody is asked'
  )
  const refusals = it.owner.audit.of('refusal')
  t.alike(
    refusals.map(({ peer, code }) => [peer, code]),
    [
      [it.member.id, 'POLICY_DENIED'],
      [it.member.id, 'POLICY_DENIED']
    ]
  )
  t.is(it.slow.tasks.length, 0)

  const free = await scene(t)
  const code = async (parameters: Record<string, string>, id: string): Promise<unknown> => {
    const [told] = await free.mesh(rpcCall('SendMessage', userMessage(id, 'hello'), { parameters }))
    const { error } = (told?.json ?? {}) as {
      readonly error?: { readonly data: readonly { readonly metadata: { readonly code: string } }[] }
    }
    return error === undefined ? 'done' : error.data[0]?.metadata?.code
  }
  t.is(await code({}, 'a'), 'done')
  t.is(await code({ 'a2a-mesh-tier': 'L0' }, 'b'), 'FORBIDDEN', 'a claim of more than it has')
  t.is(await code({ 'a2a-mesh-tier': 'L3' }, 'c'), 'ESCALATION_REQUIRED', 'as weak as it says')
  t.is(await code({ 'a2a-mesh-agent': 'nobody' }, 'd'), 'FORBIDDEN')
  t.is(
    await code({ 'a2a-mesh-sandbox': 'ci' }, 'e'),
    'AGENT_NOT_FOUND',
    'from inside a sandbox nobody outside is found'
  )

  const boxed = await scene(t, {}, { sandboxId: 'ci' })
  const [told] = await boxed.mesh(rpcCall('SendMessage', userMessage('a', 'hello')))
  t.ok(/AGENT_NOT_FOUND/.test(JSON.stringify(told?.json)))
})

test('a member has a bounded number of active tasks; waiting tasks do not count', async (t) => {
  const it = await scene(t)
  const send = (at: number): CallRequest =>
    rpcCall('SendMessage', { ...userMessage(`m${at}`, 'wait'), configuration: { returnImmediately: true } })
  let first = ''
  for (let at = 0; at < MAX_MEMBER_TASKS; at++) {
    const told = await it.mesh(send(at))
    first ||= idIn(told)
  }
  const full = JSON.stringify(await it.mesh(send(1000)))
  t.ok(/OVERLOADED/.test(full), full)
  await it.mesh(rpcCall('CancelTask', { id: first }))
  t.absent(/OVERLOADED/.test(JSON.stringify(await it.mesh(send(1001)))))
})

test('a member that is put out is answered no more, and its streams end', async (t) => {
  const it = await scene(t)
  const params = { ...userMessage('a', 'wait'), configuration: { returnImmediately: true } }
  const stream = gathered(it.member.core.memberCalls.open(it.owner.id, rpcCall('SendStreamingMessage', params)))
  await it.world.settle()
  t.is(stream.pieces.length > 0, true)
  it.world.net.disconnect(it.owner.id, it.member.id)
  t.is(await settled(it.world, stream.end), 'CHANNEL_CLOSED')
  t.absent(it.owner.core.memberCalls.has(it.member.id))
})

test('an agent of another node is not reached by way of this one', async (t) => {
  const it = await scene(t)
  const other = await it.world.member('n', { agents: [new FakeAgent(agentDefinition('far'))] })
  await it.world.link(it.owner, other)
  const [told] = await it.mesh(rpcCall('SendMessage', userMessage('a', 'hello'), { path: '/agents/far@n' }))
  t.ok(/AGENT_NOT_FOUND/.test(JSON.stringify(told?.json)), JSON.stringify(told?.json))
  t.is(meshUrl('key', '/agents/far'), 'a2a-mesh://key/agents/far')
})
