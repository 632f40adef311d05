import test from 'brittle'
import crypto from 'hypercore-crypto'
import { HyperswarmTransport } from '../../../../src/adapters/mesh/transport/hyperswarm-transport.js'
import { keyFromText, keyToText } from '../../../../src/kit/ids.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { actor } from '../../../support/membership.js'
import { labNetwork, loopbackDht } from '../lab.js'

streamTransportContract('Hyperswarm transport', async (t) => {
  const bootstrap = await loopbackDht(t)
  return async () => {
    const { network } = labNetwork(bootstrap)
    const keyPair = crypto.keyPair()
    const transport = network.openTransport(keyPair)
    t.teardown(async () => {
      await transport.close()
      await network.close()
    })
    return { id: keyToText(keyPair.publicKey), transport }
  }
})

test('a key that the swarm banned or gave up is dialled all the same', async (t) => {
  const { network } = labNetwork(await loopbackDht(t))
  const transport = network.openTransport(crypto.keyPair()) as HyperswarmTransport
  t.teardown(async () => {
    await transport.close()
    await network.close()
  })
  const { id } = actor('ann')
  transport.dial(id)
  const info = transport.swarm.peers.get(Buffer.from(keyFromText(id)).toString('hex'))
  info?.ban(true)
  if (info !== undefined) info.attempts = 9
  transport.dial(id)
  t.is(info?.banned, false)
  t.is(info?.attempts, 0)
})

test('a refresh announces the node again and looks up each of its topics', async (t) => {
  const { network } = labNetwork(await loopbackDht(t))
  const transport = network.openTransport(crypto.keyPair()) as HyperswarmTransport
  t.teardown(async () => {
    await transport.close()
    await network.close()
  })
  await transport.listen(new Uint8Array(32).fill(1))
  transport.rendezvous.join(new Uint8Array(32).fill(2), { server: true, client: true })
  const calls: string[] = []
  Reflect.set(transport.swarm.server, 'refresh', () => void calls.push('announced'))
  for (const discovery of transport.swarm.topics()) Reflect.set(discovery, 'refresh', async () => void calls.push('looked up'))
  transport.refresh()
  t.alike(calls, ['announced', 'looked up', 'looked up'])
})
