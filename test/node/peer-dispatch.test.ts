import test from 'brittle'
import { echo } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { forgeControl } from '../support/forge.js'

test('a malformed control message is a fault of the peer and cuts its link, so that a thousand of them are one', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  for (const [body, what] of [
    [null, 'body'],
    [{ requests: 1 }, 'requests'],
    [{ requests: ['a#1', ''] }, 'requests.1'],
    [{ requests: Array.from({ length: 1001 }, () => 'a#1') }, 'requests']
  ] as const) {
    await world.link(here, peer)
    for (let i = 0; i < 1000; i++) forgeControl(peer, here, { name: 'heartbeat', body })
    await world.settle()
    t.alike(here.links.faults.splice(0), [{ peer: peer.id, reason: `heartbeat: ${what} does not fit` }])
    t.absent(here.core.peers.isOnline(peer.id))
  }
  t.alike(here.lines, [])
})

test('messages of this node are never malformed: no invalid name is looked for, and no more agents are named than fit', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: Array.from({ length: 1001 }, (_, index) => echo(`a${index}`)) })
  await world.link(here, peer)
  await here.core.agentLookup.ask('')
  peer.source.set([])
  await world.settle()
  t.alike([here.links.faults, peer.links.faults], [[], []])
  t.ok(here.core.peers.isOnline(peer.id))
})

test('a node that has stopped sends nobody its agents and notes nothing', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await here.core.close()
  const before = here.core.events.recent().length
  await world.link(here, peer)
  world.net.connect(peer.id, here.id)
  t.alike(
    here.links.open.map((link) => link.sent.length),
    [0, 0]
  )
  forgeControl(peer, here, { name: 'heartbeat', body: null })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  t.is(here.core.events.recent().length, before)
  t.alike(here.links.faults, [])
})
