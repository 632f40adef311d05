import crypto from 'hypercore-crypto'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { MemoryNet } from './memory-transport.js'

streamTransportContract('memory transport', async (t) => {
  const net = new MemoryNet()
  return async () => {
    const transport = net.open(crypto.keyPair())
    t.teardown(() => transport.close())
    return { id: transport.nodeId, transport }
  }
})
