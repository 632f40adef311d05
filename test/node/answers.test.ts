import test, { type Assert } from 'brittle'
import { agentDefinition, FakeAgent } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'
import { NodeError } from '../../src/kit/errors.js'
import { forge, request } from '../support/forge.js'
import { isOpen, takeAllReplies } from '../support/exchanges.js'

interface Scene {
  readonly world: World
  readonly here: FakeNode
  readonly agent: FakeAgent
  /** A peer whose requests arrive and then wait until {@link Scene.answer}. It is away. */
  awayWith(name: string, requests: number): Promise<FakeNode>
  /** Answers the oldest request. */
  answer(result: unknown): Promise<void>
  /** Links a peer; the number of answers that come. */
  back(node: FakeNode): Promise<number>
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text', { concurrency: 2000 }))
  const here = await world.member('here', { agents: [agent], settings: { maxInFlightPerPeer: 2000 } })
  return {
    world,
    here,
    agent,
    awayWith: async (name, requests) => {
      const node = await world.member(name)
      await world.link(here, node)
      for (let i = 0; i < requests; i++) forge(node, here)
      await world.settle()
      world.net.disconnect(here.id, node.id)
      return node
    },
    answer: async (result) => {
      agent.finish(result)
      await world.settle()
    },
    back: async (node) => {
      takeAllReplies(node)
      await world.link(here, node)
      // Large ones wait for the channel one after the other.
      await world.pass(5000, 1000)
      return node.counted('messages_delivered', 'response')
    }
  }
}

test('waiting answers are bounded in number', async (t) => {
  const { world, here, agent, awayWith, back } = await scene(t)
  const peer = await awayWith('peer', 1030)
  while (agent.open.length > 0) agent.finish()
  await world.settle()
  t.is(here.core.work.unsentCount(), 1024)
  t.is(here.counted('errors', 'answer'), 6)
  t.is(await back(peer), 1024)
})

test('the exchange of an answer that had to make room, or has no caller any more, is over', async (t) => {
  const { world, here, agent } = await scene(t)
  const peer = await world.member('peer')
  await world.link(here, peer)
  for (let i = 0; i < 1030; i++) forge(peer, here, { correlationId: `thr${i}` })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  while (agent.open.length > 0) agent.finish()
  await world.settle()
  const open = (): number =>
    Array.from({ length: 1030 }, (_, i) => isOpen(here, { peer: peer.id, correlationId: `thr${i}` })).filter(Boolean).length
  t.is(open(), 1024)
  here.core.work.onRevoked(peer.id)
  t.is(open(), 0)
})

test('an answer to a caller who is there but has no room goes out when it has, and lives no longer than it may', async (t) => {
  const { world, here, agent } = await scene(t)
  const peer = await world.member('peer')
  await world.link(here, peer)
  let isFull = true
  const { peers } = here.core
  const send = peers.send.bind(peers)
  peers.send = (to, message) => {
    if (isFull && message.kind === 'reliable') throw new NodeError('OVERLOADED', 'no room')
    send(to, message)
  }
  const answerOne = async (requestId: string): Promise<void> => {
    forge(peer, here, { payload: request(requestId) })
    await world.settle()
    agent.finish()
    await world.settle()
  }
  await answerOne('first')
  await world.pass(86_400_000 - 60_000, 60_000)
  await answerOne('second')
  t.is(here.core.lanes.waiting, 2)
  await world.pass(60_000, 60_000)
  t.is(here.core.lanes.waiting, 1, 'the first has had its day')
  isFull = false
  await world.pass(3000)
  t.is(here.core.lanes.waiting, 0)
})

test('much that waits for one caller pushes out nothing that waits for another', async (t) => {
  const { here, awayWith, answer, back } = await scene(t)
  const honest = await awayWith('honest', 1)
  await answer('small and old')
  const greedy = await awayWith('greedy', 5)
  for (let i = 0; i < 5; i++) await answer(Array.from({ length: 10 }, () => 'x'.repeat(1024 * 1024)))
  t.is(here.core.work.unsentCount(), 4, 'three of the large ones fit')
  t.is(await back(honest), 1)
  t.is(await back(greedy), 3)
})

test('answers that have waited too long are no longer counted, though their caller stays away', async (t) => {
  const { world, here, awayWith, answer } = await scene(t)
  await awayWith('peer', 1)
  await answer('late')
  t.is(here.core.work.unsentCount(), 1)
  world.clock.advance(86_400_000)
  await world.settle()
  t.is(here.core.work.unsentCount(), 0)
})
