import test from 'brittle'
import { echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'
import { actor, cardBody, signedCard } from '../../support/membership.js'

test('an agent without a known card is found by asking the members', async (t) => {
  const world = new World(t)
  world.log.isWritable = false
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [echo('a')] })
  const other = await world.member('other')
  await world.link(here, peer, other)
  here.core.registry.unregister(`a@${peer.id}`)
  const asked = here.core.agentLookup.ask('a')
  await world.settle()
  await asked
  t.ok(here.core.registry.getByAddress(`a@${peer.id}`))
})

test('a member that does not answer holds the others up for a second only', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [echo('a')] })
  const silent = await world.member('silent')
  await world.link(here, peer, silent)
  for (const link of silent.links.open) link.isHeld = true
  here.core.registry.unregister(`a@${peer.id}`)
  let isOver = false
  const asked = here.core.agentLookup.ask('a').then(() => (isOver = true))
  await world.settle()
  t.ok(here.core.registry.getByAddress(`a@${peer.id}`))
  t.absent(isOver)
  world.clock.advance(1000)
  await asked
  t.ok(isOver)
})

test('a node alone asks nobody', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const links = here.links.open
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  const [sent, timers] = [links.map((link) => link.sent.length), world.clock.pending]
  let isOver = false
  void here.core.agentLookup.ask('a').then(() => (isOver = true))
  t.is(world.clock.pending, timers, 'there is nothing to wait for')
  await world.settle()
  t.ok(isOver, 'without the clock moving')
  t.alike(
    links.map((link) => link.sent.length),
    sent
  )
})

test('an unrequested answer is ignored, and no node answers for another', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  const owner = await world.owner()
  await world.link(here, peer, owner)
  forgeControl(peer, here, {
    name: 'found',
    body: { id: 'lookup_unknown', cards: [signedCard(peer.actor, cardBody('mine'))] }
  })
  await world.settle()
  t.absent(here.core.registry.getByAddress(`mine@${peer.id}`))
  const asked = here.core.agentLookup.ask('mine')
  const id = here.links.open
    .flatMap((link) => link.sent)
    .map((frame) => /"id":"(lookup_[^"]+)"/.exec(new TextDecoder().decode(frame))?.[1])
    .find((found) => found !== undefined)
  forgeControl(peer, here, {
    name: 'found',
    body: { id, cards: [signedCard(actor('owner'), cardBody('theirs', { tier: 0 }))] }
  })
  await world.settle()
  await asked
  t.absent(here.core.registry.getByAddress(`theirs@${owner.id}`))
  t.absent(here.core.registry.getByAddress(`theirs@${peer.id}`))
})
