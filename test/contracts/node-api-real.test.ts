import { checkedApi } from '../../src/adapters/control/contract.js'
import { echo } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { nodeApiSuite } from './node-api.js'

nodeApiSuite('of a real node', async (t) => {
  const world = new World(t)
  // The suite compares times with those of this machine.
  world.clock.setNow(Date.now())
  const owner = await world.owner({ agents: [echo('text'), echo('host')] })
  await world.settle()
  return { api: checkedApi(owner.api()), close: async () => {} }
})
