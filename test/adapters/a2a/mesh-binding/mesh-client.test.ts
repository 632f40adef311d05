import test, { type Assert } from 'brittle'
import { RETAKE_MS, steadyCall } from '../../../../src/adapters/a2a/mesh-binding/mesh-client.js'
import { readMeshUrl } from '../../../../src/adapters/a2a/mesh-binding/mesh-uri.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { fromUtf8, utf8 } from '../../../../src/kit/ids.js'
import type { CallPiece, CallRequest } from '../../../../src/ports/member-calls.js'
import { ManualClock } from '../../../support/manual-clock.js'
import type { TaskService } from '../../../../src/node/gateway/task-service.js'
import {
  gathered,
  type Gathered,
  type ReadPiece,
  rpcCall,
  servesCalls,
  settled,
  userMessage
} from '../../../support/calls.js'
import { agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly member: FakeNode
  readonly gateway: TaskService
  readonly slow: FakeAgent
  /** Calls the owner as the member's client does. */
  call(method: string, params: unknown): Gathered
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const [owner, member] = [await world.owner({ agents: [slow] }), await world.member('m')]
  const gateway = await servesCalls(t, owner)
  await world.link(owner, member)
  const { clock } = world
  const call: Scene['call'] = (method, params) =>
    gathered(
      steadyCall({ calls: member.core.memberCalls, clock }, { peer: owner.id, request: rpcCall(method, params) })
    )
  return { world, owner, member, gateway, slow, call }
}

const chunk = (text: string, append = true): object => ({
  a2a: { artifact: { artifactId: 'out', parts: [{ text }] }, append, lastChunk: false }
})

const generations = (pieces: readonly ReadPiece[]): (number | null)[] => pieces.map(({ generation }) => generation)

async function relinked({ world, owner, member }: Scene): Promise<void> {
  world.net.disconnect(owner.id, member.id)
  await world.settle()
  await world.link(owner, member)
}

test('a stream whose link is cut is taken up behind its last event: none comes twice and none is missing', async (t) => {
  const it = await scene(t)
  const { world, slow } = it
  const stream = it.call('SendStreamingMessage', userMessage('m1', 'count'))
  await world.settle()
  const run = slow.open[0]?.run
  run?.progress(chunk('one ', false))
  await world.settle()
  // The first is the task as it was: at its beginning, or at work already.
  const first = stream.pieces[0]?.generation ?? 0
  const upTo = (last: number): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at)
  t.alike(generations(stream.pieces), upTo(3))
  it.owner.links.open[0]?.close('cut')
  run?.progress(chunk('two '))
  await world.settle()
  t.alike(generations(stream.pieces), upTo(3))
  run?.progress(chunk('three'))
  await world.link(it.owner, it.member)
  await world.pass(3000)
  t.alike(generations(stream.pieces), upTo(5))
  slow.finish(null)
  t.is(await settled(world, stream.end), 'done')
  t.alike(generations(stream.pieces), upTo(6))
  t.is(slow.tasks.length, 1, 'it was begun once')
  t.ok(
    stream.pieces.every(({ json }) => json['id'] === 7),
    'each piece answers the request of before'
  )
})

test('a stream of a message that was taken up ends where its task waits for its client; a subscription goes on', async (t) => {
  const it = await scene(t)
  const { world, slow } = it
  const stream = it.call('SendStreamingMessage', userMessage('m1', 'count'))
  await world.settle()
  slow.open[0]?.run.progress(chunk('one ', false))
  await world.settle()
  it.owner.links.open[0]?.close('cut')
  slow.finish({ a2a: { state: 'input-required', message: 'Which?' } })
  await world.link(it.owner, it.member)
  t.is(await settled(world, stream.end), 'done')
  const { task } = (stream.pieces[0]?.json['result'] ?? {}) as { readonly task: { readonly id: string } }
  const subscribed = it.call('SubscribeToTask', { id: task.id })
  await world.settle()
  await relinked(it)
  await world.pass(3000)
  const answered = it.call('SendStreamingMessage', userMessage('m2', 'that one', { taskId: task.id }))
  await world.settle()
  slow.finish({ text: 'done' })
  for (const { end } of [answered, subscribed]) t.is(await settled(world, end), 'done')
  const states = [stream, subscribed].map(({ pieces }) =>
    pieces.map(({ json }) => JSON.stringify(json).match(/TASK_STATE_\w+/)?.[0]).at(-1)
  )
  t.alike(states, ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'])
})

test('a call that was sent when the link was cut runs once, however often it is repeated', async (t) => {
  const it = await scene(t)
  const { world, slow, gateway } = it
  const sent = it.call('SendMessage', userMessage('m1', 'once'))
  await world.settle()
  for (let cuts = 0; cuts < 3; cuts++) {
    await relinked(it)
    await world.pass(3000)
  }
  t.is(slow.tasks.length, 1)
  slow.finish({ text: 'done' })
  t.is(await settled(world, sent.end), 'done')
  const [answer] = sent.pieces
  const { task } = (answer?.json['result'] ?? {}) as {
    readonly task: { readonly id: string; readonly status: { readonly state: string } }
  }
  t.is(task.status.state, 'TASK_STATE_COMPLETED')
  const { total } = await gateway.list(
    { kind: 'peer', name: 'm', id: it.member.id, tier: 1, sandboxId: null, scopes: ['read'] },
    {},
    { after: null, limit: 5, isWhole: false }
  )
  t.is(total, 1)
})

test('a member that does not come back in time ends the call; one that was never reached ends it at once', async (t) => {
  const it = await scene(t)
  const { world } = it
  const stream = it.call('SendStreamingMessage', userMessage('m1', 'count'))
  await world.settle()
  world.net.disconnect(it.owner.id, it.member.id)
  const before = world.clock.monotonic()
  t.is(await settled(world, stream.end, 1000), 'PEER_OFFLINE')
  t.ok(world.clock.monotonic() - before >= RETAKE_MS)
  const other = it.call('GetTask', { id: 'x' })
  await world.settle()
  t.is(await settled(world, other.end), 'PEER_OFFLINE')
})

test('a stream is taken up however long the texts of its request and its items are', async (t) => {
  const clock = new ManualClock()
  const long = 'x'.repeat(1_200_000)
  const opened: CallRequest[] = []
  const item = utf8(JSON.stringify({ id: 7, result: { task: { id: 'task_1', history: [{ text: long }] } } }))
  async function* pieces(): AsyncIterable<CallPiece> {
    await Promise.resolve()
    if (opened.length > 1) return
    yield { type: 'item', generation: 3, body: item }
    throw new NodeError('CHANNEL_CLOSED', 'cut')
  }
  const open = (_peer: string, request: CallRequest): AsyncIterable<CallPiece> => {
    opened.push(request)
    return pieces()
  }
  const call = gathered(
    steadyCall(
      { calls: { open }, clock },
      { peer: 'p', request: rpcCall('SendStreamingMessage', userMessage('m', long)) }
    )
  )
  while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve))
  clock.advance(3000)
  t.is(await call.end, 'done')
  const [, again] = opened
  t.is(again?.parameters['last-event-id'], '3')
  t.alike(JSON.parse(fromUtf8(again?.body ?? new Uint8Array())), {
    jsonrpc: '2.0',
    id: 7,
    method: 'SubscribeToTask',
    params: { id: 'task_1' }
  })
})

test('a stream of one message comes once, also when its link is cut behind the message', async (t) => {
  const it = await scene(t)
  const stream = it.call('SendStreamingMessage', userMessage('m1', 'hi'))
  await it.world.settle()
  t.is(stream.pieces.length, 0)
  it.slow.finish({ a2a: { message: 'hello' } })
  t.is(await settled(it.world, stream.end), 'done')
  const [item, ...more] = stream.pieces
  const { message, task } = (item?.json['result'] ?? {}) as { message?: { parts: object[] }; task?: object }
  t.alike([message?.parts, task, more.length], [[{ text: 'hello' }], undefined, 0])

  let opened = 0
  async function* open(): AsyncIterable<CallPiece> {
    await Promise.resolve()
    opened++
    yield { type: 'item', generation: null, body: utf8(JSON.stringify(item?.json)) }
    throw new NodeError('CHANNEL_CLOSED', 'cut')
  }
  const request = rpcCall('SendStreamingMessage', userMessage('m', 'hi'))
  const cut = gathered(steadyCall({ calls: { open }, clock: new ManualClock() }, { peer: 'p', request }))
  t.is(await cut.end, 'done')
  t.alike([cut.pieces.length, opened], [1, 1])
})

test('a URL of the mesh names a node and an agent of it, or the node alone', (t) => {
  t.alike(readMeshUrl('a2a-mesh://laptop/agents/text'), { node: 'laptop', path: '/agents/text' })
  t.alike(readMeshUrl('a2a-mesh://laptop'), { node: 'laptop', path: '/a2a' })
  t.alike(readMeshUrl('A2A-MESH://laptop/a2a/'), { node: 'laptop', path: '/a2a' })
  for (const text of [
    'a2a-mesh://',
    'a2a-mesh:///a2a',
    'a2a-mesh://x@y/a2a',
    'a2a-mesh://x:1/a2a',
    'a2a-mesh://x/a2a?y',
    'http://x/a2a'
  ])
    t.is(readMeshUrl(text), null, text)
})
