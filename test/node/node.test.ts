import test from 'brittle'
import { failsWith } from '../support/fails.js'
import { agentDefinition, FakeAgent } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { forge } from '../support/forge.js'
import { actor } from '../support/membership.js'

test('a closed node leaves no timer, no run and nobody waiting', async (t) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text'))
  const owner = await world.owner({ agents: [agent] })
  const peer = await world.member('peer', { agents: [new FakeAgent(agentDefinition('text'))] })
  await world.link(owner, peer)
  const api = owner.api()
  const waiting = api.call('message.send', { agent: 'text@peer', text: 'x' })
  const { id } = await api.call('swarm.start', { goal: 'g', capability: 'text.do', strategy: 'each' })
  await world.settle()
  t.is(agent.open.length, 1)
  await owner.core.close()
  await peer.core.close()
  await world.settle()
  t.is((await waiting).outcome, 'UNKNOWN')
  t.is(agent.open.length, 0)
  t.ok(agent.isClosed)
  t.is(owner.core.swarms.get(id).info().status, 'running', 'it goes on when the node starts again')
  world.clock.advance(10_000)
  t.is(world.clock.pending, 0)
})

test('a closed node takes nothing in', async (t) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text'))
  const here = await world.member('here', { agents: [agent] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  await here.core.close()
  const { length } = here.core.events.recent()
  forge(peer, here)
  world.net.disconnect(here.id, peer.id)
  world.log.changed()
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.is(here.counted('messages_received', 'request'), 0)
  t.is(here.core.events.recent().length, length)
})

test('a node alone does its own work', async (t) => {
  const world = new World(t)
  const owner = await world.owner({
    agents: [new FakeAgent(agentDefinition('text'), (task) => ({ ok: true, result: task.input }))]
  })
  const reply = owner.api().call('message.send', { agent: 'text', text: 'alone' })
  await world.settle()
  t.alike((await reply).payload, { text: 'alone' })
  await failsWith(t, 'USAGE', () => owner.api().call('peers.ping', { peer: 'owner' }))
})

test('changes of the log before the start count from the start', async (t) => {
  const world = new World(t)
  const first = await world.member('first')
  world.log.model.revoke(actor('owner'), first.actor)
  world.log.changed()
  const here = await world.member('here')
  t.is(here.core.registry.ofNode(first.id).length, 0)
  t.is(
    (await here.api().call('peers.list', { all: true })).peers.find((one) => one.name === 'first')?.status,
    'revoked'
  )
})
