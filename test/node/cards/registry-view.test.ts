import test from 'brittle'
import { AgentRegistry } from '../../../src/domain/card/registry.js'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

test('the registry of a node shows every agent of the mesh, and can be written down', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('text', { tier: 3 }), echo('files', { sandboxId: 'ci' })] })
  await world.link(here, peer)
  const { registry } = createLayer(here.core)
  t.is(registry.getById('text').length, 2)
  t.is(registry.getByAddress(`files@${peer.id}`)?.origin, 'remote')
  t.alike(
    registry.findByCapability('files.do').map((one) => one.nodeId),
    [peer.id]
  )
  t.alike(
    registry.findByTier(3).map((one) => one.id),
    ['text']
  )
  t.is(registry.ofNode(peer.id).length, 3)
  t.is(registry.getLocalCards().length + registry.getRemoteCards().length, registry.listAll().length)
  t.alike(
    registry.visibleTo('ci').map((one) => one.id),
    ['files']
  )
  const copy = AgentRegistry.deserialize(registry.serialize())
  t.alike(copy.listAll(), registry.listAll())
})

test('with discovery off only the agents of this node are known; on again, the others come back', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('files')] })
  await world.link(here, peer)
  const layer = createLayer(here.core)
  const { registry, router, envelopes } = layer
  const send = async (): Promise<string | undefined> => {
    const sending = router.send(
      envelopes.create({ sender: 'text', recipient: `files@${peer.id}`, type: 'notification', payload: 1 })
    )
    await world.pass(1000)
    return (await sending).code
  }
  t.is(await send(), undefined)
  registry.disableDiscovery()
  t.absent(registry.isDiscovering)
  peer.source.set([echo('files'), echo('more')])
  await world.settle()
  t.is(registry.getRemoteCards().length, 0)
  t.ok(registry.getLocalCards().length > 0)
  t.is(await send(), 'AGENT_NOT_FOUND')
  t.ok(createLayer(peer.core).registry.getByAddress(`text@${here.id}`), 'the others still know of it')
  registry.enableDiscovery()
  t.ok(registry.isDiscovering)
  t.alike(
    registry
      .getRemoteCards()
      .map((one) => one.id)
      .sort(),
    ['files', 'more', 'operator']
  )
  t.is(await send(), undefined)
})
