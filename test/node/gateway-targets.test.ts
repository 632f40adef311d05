import test, { type Assert } from 'brittle'
import { GatewayTasks } from '../../src/node/gateway.js'
import type { Principal } from '../../src/ports/node-api.js'
import { agentDefinition, FakeAgent } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'

const ALICE: Principal = { kind: 'token', name: 'token alice', id: 'tok_a', tier: 0, sandboxId: null, scopes: ['read', 'send'] }
const ASKED = { skill: null, mayAnswer: false, wait: false } as const

async function gatewayOf(t: Assert, node: FakeNode): Promise<GatewayTasks> {
  const gateway = new GatewayTasks(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  return gateway
}

test('an id alone is the agent of this node, where other nodes have one of that id as well', async (t: Assert) => {
  const world = new World(t)
  const twins = [new FakeAgent(agentDefinition('slow')), new FakeAgent(agentDefinition('slow'))] as const
  const owner = await world.owner({ agents: [twins[0]] })
  const peer = await world.member('peer', { agents: [twins[1]] })
  await world.link(owner, peer)
  const gateway = await gatewayOf(t, owner)
  for (const agent of ['slow', 'slow@peer']) {
    await gateway.send(ALICE, { ...ASKED, agent, message: { messageId: agent, role: 'user', parts: [{ text: agent }] } })
    await world.settle()
  }
  t.alike(
    twins.map(({ tasks }) => tasks.map(({ input }) => input)),
    [[{ text: 'slow' }], [{ text: 'slow@peer' }]]
  )
  const { tasks } = await gateway.list(ALICE, { agentName: 'slow' }, { after: null, limit: 5, isWhole: true })
  t.alike(
    tasks.map(({ history }) => history[0]?.parts),
    [[{ text: 'slow' }]]
  )
})
