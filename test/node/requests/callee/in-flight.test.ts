import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { Abort } from '../../../../src/kit/abort.js'
import { InFlight, type Execution } from '../../../../src/node/requests/callee/in-flight.js'
import { failsWith } from '../../../support/fails.js'
import { agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../../support/fake-node.js'
import { forge, forgeControl, request } from '../../../support/forge.js'
import { requestPayloadSchema } from '../../../../src/domain/task/payloads.js'
import { holds } from '../../../support/holds.js'
import { isOpen, takeAllReplies } from '../../../support/exchanges.js'

const MIB = 1024 * 1024

function piece(peer: string, key: string, bytes = 0): Execution {
  const address = { agentId: 'text', nodeId: peer }
  return {
    key,
    peer,
    recipient: address,
    payload: requestPayloadSchema.parse({ requestId: key, attempt: 1, capability: null, input: null }),
    taskId: '',
    bytes,
    abort: new Abort(),
    threads: [{ sender: address, recipient: address, correlationId: 'first' }],
    isNotification: false,
    record: null,
    isRunning: false,
    hasEnded: false,
    isAwaited: true,
    isStopped: false,
    ending: null,
    lostAt: null
  }
}

interface Scene {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
  readonly other: FakeNode
  readonly agent: FakeAgent
  /** Codes of the errors that came to a node. */
  errors(node: FakeNode): Promise<string[]>
}

async function scene(t: Assert, options: FakeNodeOptions = {}): Promise<Scene> {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text', { concurrency: 256 }))
  const here = await world.member('here', { agents: [agent], ...options })
  const [peer, other] = [await world.member('peer'), await world.member('other')]
  await world.link(here, peer, other)
  const codes = new Map<FakeNode, string[]>()
  for (const node of [peer, other]) {
    const list: string[] = []
    codes.set(node, list)
    takeAllReplies(node)
    node.core.exchanges.deliver = (_from, header, payload) => {
      if (header.type === 'error') list.push((payload as { code: string }).code)
    }
  }
  const errors = async (node: FakeNode): Promise<string[]> => {
    await world.settle()
    return codes.get(node) ?? []
  }
  return { world, here, peer, other, agent, errors }
}

test('notifications of one id run once at a time, and free their places when they have ended', async (t) => {
  const { world, here, peer, other, agent, errors } = await scene(t, {
    settings: { maxInFlight: 3, maxInFlightPerPeer: 2 }
  })
  for (let i = 0; i < 20; i++) forge(peer, here, { type: 'notification', id: 'same' })
  await world.settle()
  t.is(agent.open.length, 1)
  t.is(here.core.tasks.list().length, 1)
  while (agent.open.length > 0) {
    agent.finish()
    await world.settle()
  }
  forge(other, here)
  forge(other, here)
  t.alike(await errors(other), [])
  t.is(agent.open.length, 2)
})

test('notifications count for the active work of a peer', async (t) => {
  const { world, here, peer, agent, errors } = await scene(t, { settings: { maxInFlightPerPeer: 2 } })
  for (let i = 0; i < 5; i++) forge(peer, here, { type: 'notification' })
  await world.settle()
  t.is(agent.open.length, 2)
  forge(peer, here)
  t.alike(await errors(peer), ['OVERLOADED'])
})

test('a notification with the id of a request leaves the request as it is', async (t) => {
  const { world, here, peer, agent } = await scene(t)
  forge(peer, here, { payload: request('req_x', { input: 'request' }) })
  forge(peer, here, { type: 'notification', id: 'req_x', payload: { input: 'notification' } })
  await world.settle()
  forge(peer, here, { payload: request('req_x', { input: 'repeated' }) })
  await world.settle()
  t.alike(
    agent.tasks.map((one) => one.input),
    ['request', 'notification']
  )
  forgeControl(peer, here, { name: 'cancel', body: { requestId: 'req_x#1' } })
  await world.settle()
  t.alike(
    agent.open.map((one) => one.task.input),
    ['notification']
  )
})

test('a request repeated too often is refused as OVERLOADED, and no exchange of it stays open', async (t) => {
  const { world, here, peer, agent, errors } = await scene(t)
  const threads = Array.from({ length: 12 }, (_, index) => `thr_${index}`)
  for (const correlationId of threads) forge(peer, here, { payload: request('req_x'), correlationId })
  // On a thread that will be answered the request may come again, without becoming another repeat.
  forge(peer, here, { payload: request('req_x'), correlationId: 'thr_0' })
  t.alike(await errors(peer), ['OVERLOADED', 'OVERLOADED', 'OVERLOADED', 'OVERLOADED'])
  agent.finish()
  await world.settle()
  t.is(peer.counted('messages_delivered', 'response'), 8)
  t.is(agent.tasks.length, 1)
  t.alike(
    threads.filter((one) => isOpen(here, { peer: peer.id, correlationId: one })),
    []
  )
})

test('inputs in flight are bounded in bytes for a peer, and for the node', async (t) => {
  const { world, here, peer, other, agent, errors } = await scene(t)
  let last = 0
  const big = (): Record<string, unknown> =>
    request(`req_${last++}`, { input: Array.from({ length: 15 }, () => 'x'.repeat(MIB)) })
  // A link carries no more than 64 MiB at once.
  const later = async (): Promise<void> => {
    await world.settle()
    world.clock.advance(2000)
  }
  for (let i = 0; i < 3; i++) forge(peer, here, { payload: big() })
  await later()
  for (let i = 0; i < 2; i++) forge(peer, here, { payload: big() })
  t.alike(await errors(peer), ['OVERLOADED'], '60 MiB fit, 75 do not')
  forge(other, here, { payload: big() })
  t.alike(await errors(other), [], 'another has its own share')
  t.is(agent.open.length, 5)
  agent.finish()
  await world.settle()
  forge(peer, here, { payload: big() })
  t.is((await errors(peer)).length, 1, 'space again')
  await later()
  const others = [other]
  for (const name of ['c', 'd', 'e']) {
    const node = await world.member(name)
    await world.link(here, node)
    others.push(node)
  }
  for (const node of others) for (let i = 0; i < 4; i++) forge(node, here, { payload: big() })
  await world.settle()
  t.is(agent.open.length, 17, '255 MiB of 256')
})

test('counts and bytes are those of the active work, for any additions and removals', async (t) => {
  const step = fc.record({
    peer: fc.constantFrom('a', 'b'),
    key: fc.constantFrom('1', '2', '3'),
    bytes: fc.nat(9),
    isOut: fc.boolean()
  })
  const property = fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const inFlight = new InFlight()
    const model = new Map<string, Execution>()
    for (const { peer, key, bytes, isOut } of steps) {
      const name = `${peer}/${key}`
      if (isOut) {
        inFlight.remove(piece(peer, key))
        model.delete(name)
      } else if (model.has(name)) {
        assert.throws(() => inFlight.add(piece(peer, key, bytes)))
      } else {
        const one = piece(peer, key, bytes)
        inFlight.add(one)
        model.set(name, one)
      }
      const pieces = [...model.values()]
      const of = (list: readonly Execution[]): object => ({
        count: list.length,
        bytes: list.reduce((sum, one) => sum + one.bytes, 0)
      })
      assert.deepEqual(inFlight.load(), of(pieces))
      assert.deepEqual(inFlight.load('a'), of(pieces.filter((one) => one.peer === 'a')))
      assert.deepEqual(new Set(inFlight.all()), new Set(pieces))
    }
  })
  await holds(t, property, 200)
})

test('a key that is in flight is not added again', async (t) => {
  const inFlight = new InFlight()
  const first = piece('a', 'k')
  inFlight.add(first)
  await failsWith(t, 'INTERNAL', () => inFlight.add(piece('a', 'k')))
  t.is(inFlight.all()[0], first)
  t.is(inFlight.join('b', 'k', first.threads[0]), 'new', 'the key is looked up under the peer')
})
