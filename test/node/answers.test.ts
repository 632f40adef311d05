import test, { type Assert } from 'brittle'
import { agentDefinition, FakeAgent } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'
import { forge } from '../support/forge.js'
import { takeAllReplies } from '../support/exchanges.js'

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
