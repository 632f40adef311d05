import test from 'brittle'
import { World } from '../../support/fake-node.js'

test('an address of a peer is added and removed under one spelling, and peers show has it', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer')
  const api = owner.api()
  const added = await api.call('peers.address', { peer: 'peer', address: 'Host.Example:07422' })
  t.alike([added.id, added.changed], [peer.id, true])
  t.alike(added.addresses, [{ address: 'host.example:7422', fault: null }])
  t.absent((await api.call('peers.address', { peer: peer.id, address: 'host.example:7422' })).changed)
  t.alike((await api.call('peers.show', { peer: 'peer' })).addresses, added.addresses)
  const removed = await api.call('peers.address', { peer: 'peer', address: 'HOST.example:7422', remove: true })
  t.alike([removed.addresses, removed.changed], [[], true])
})
