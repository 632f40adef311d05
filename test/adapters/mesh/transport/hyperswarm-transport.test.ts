import test, { type Assert } from 'brittle'
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

async function opened(t: Assert): Promise<HyperswarmTransport> {
  const { network } = labNetwork(await loopbackDht(t))
  const transport = network.openTransport(crypto.keyPair()) as HyperswarmTransport
  t.teardown(async () => {
    await transport.close()
    await network.close()
  })
  return transport
}

test('a key that the swarm banned or gave up is dialled all the same', async (t) => {
  const transport = await opened(t)
  const { id } = actor('ann')
  transport.dial(id)
  const info = transport.swarm.peers.get(Buffer.from(keyFromText(id)).toString('hex'))
  info?.ban(true)
  if (info !== undefined) info.attempts = 9
  transport.dial(id)
  t.is(info?.banned, false)
  t.is(info?.attempts, 0)
})

test('with each refresh the server is announced, and each topic is looked up', async (t) => {
  const transport = await opened(t)
  await transport.listen(new Uint8Array(32).fill(1))
  const { swarm } = transport
  const told: string[] = []
  swarm.server.refresh = () => void told.push('server')
  for (const discovery of swarm.topics()) discovery.refresh = () => Promise.resolve(told.push('topic') > 0)
  transport.refresh()
  t.alike(told, ['server', 'topic'])
  transport.refresh()
  t.is(told.length, 4)
})
