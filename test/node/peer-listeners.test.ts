import test from 'brittle'
import type { A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import { agentDefinition, echo, FakeAgent } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { forgeControl, request, forge } from '../support/forge.js'

test('a peer that comes and goes is an event each time, by its name', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  t.alike(
    here.core.events.recent().flatMap(({ type, message, data }) => (type === 'peer' ? [[message, data['peer']]] : [])),
    [
      ['a peer is online', 'peer'],
      ['a peer is offline', 'peer']
    ]
  )
})

test('a peer that is linked gets the cards of this node, and again over a further link', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  t.ok(peer.core.directory.card({ agentId: 'a', nodeId: here.id }))
  const cards = (): number => here.links.open.flatMap((link) => link.sent).length
  const before = cards()
  await world.link(here, peer)
  t.ok(cards() > before)
})

test('a peer cancels its own request only', async (t) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text'))
  const here = await world.member('here', { agents: [agent] })
  const [peer, other] = [await world.member('peer'), await world.member('other')]
  await world.link(here, peer)
  await world.link(here, other)
  forge(peer, here, { payload: request('r') } satisfies Partial<A2AEnvelope>)
  await world.settle()
  t.is(agent.open.length, 1)
  forgeControl(other, here, { name: 'cancel', body: { requestId: 'r#1' } })
  await world.settle()
  t.is(agent.open.length, 1)
  forgeControl(peer, here, { name: 'cancel', body: { requestId: 'r#1' } })
  await world.settle()
  t.is(agent.open.length, 0)
})
