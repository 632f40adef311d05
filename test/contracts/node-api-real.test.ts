import { checkedApi } from '../../src/adapters/control/contract.js'
import { echo } from '../support/fake-agents.js'
import { TaskService } from '../../src/node/gateway/task-service.js'
import { FakeWebhooks } from '../support/fake-webhooks.js'
import { World } from '../support/fake-node.js'
import { NOBODY_GONE } from '../support/push-scene.js'
import { nodeApiSuite } from './node-api.js'

nodeApiSuite('of a real node', async (t) => {
  const world = new World(t)
  // The suite compares times with those of this machine.
  world.clock.setNow(Date.now())
  let gateway: TaskService | null = null
  const owner = await world.owner({
    agents: [echo('text'), echo('host')],
    push: () => gateway?.push?.admin ?? null,
    contexts: () => gateway?.contexts ?? null
  })
  gateway = new TaskService(owner.core, { push: { webhooks: new FakeWebhooks(), owners: NOBODY_GONE } })
  await gateway.start()
  await world.settle()
  return { api: checkedApi(owner.api()), close: () => Promise.resolve(gateway?.stop()) }
})
