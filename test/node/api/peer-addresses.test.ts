import test from 'brittle'
import { failsWith } from '../../support/fails.js'
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

test('a text that is no address is refused with a step for the same peer, and a revoked peer gets no address', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const box = await world.member('my box')
  const api = owner.api()
  for (const [remove, next] of [
    [false, "a2a-node peers add 'my box' --address 10.0.0.5:7422"],
    [true, "a2a-node peers show 'my box'"]
  ] as const) {
    const error = await failsWith(t, 'USAGE', () =>
      api.call('peers.address', { peer: 'my box', address: 'a:70000', remove })
    )
    t.alike(error.next, [next])
    t.ok(error.message.includes('a port of 1 to 65535'), error.message)
  }
  const short = await failsWith(t, 'PEER_NOT_FOUND', () =>
    api.call('peers.address', { peer: box.id.slice(0, 3), address: 'a:1' })
  )
  t.ok(short.message.endsWith('the beginning of an id needs at least 4 characters'), short.message)
  await api.call('peers.address', { peer: 'my box', address: 'a:1' })
  await api.call('peers.revoke', { peer: 'my box' })
  await failsWith(t, 'REVOKED', () => api.call('peers.address', { peer: 'my box', address: 'b:1' }))
  const removed = await api.call('peers.address', { peer: 'my box', address: 'a:1', remove: true })
  t.alike([removed.addresses, removed.changed], [[], true])
})
