import test, { type Assert } from 'brittle'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { ALICE, gatewayOf, taskOf } from '../../support/gateway.js'

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly agent: FakeAgent
  readonly gateway: TaskService
  readonly member: Principal
}

/** A member that has used up its share of checks at a node that serves others. */
async function spent(t: Assert): Promise<Scene> {
  const [world, agent] = [new World(t), new FakeAgent(agentDefinition('slow'))]
  const [owner, { id }] = [await world.owner({ agents: [agent] }), await world.member('m')]
  const gateway = await gatewayOf(t, owner)
  const { checkShare, peers } = owner.core
  for (let second = 0; second < 3; second++) {
    peers.usedHere()
    try {
      checkShare.within(id, () => world.clock.advance(900))
    } catch {
      // It has used it up.
    }
  }
  peers.usedHere()
  return {
    world,
    owner,
    agent,
    gateway,
    member: { kind: 'peer', name: 'm', id, tier: 0, sandboxId: null, scopes: ['read', 'send'] }
  }
}

/** Lets time pass at a node that serves others, until its agent has begun. */
async function untilBegun({ world, owner, agent }: Scene): Promise<void> {
  const end = world.clock.monotonic() + 10_000
  while (agent.open.length === 0 && world.clock.monotonic() < end) {
    owner.core.peers.usedHere()
    world.clock.advance(100)
    await world.settle()
  }
}

const asked = (messageId: string) =>
  ({
    skill: null,
    mayAnswer: false,
    wait: false,
    agent: 'slow',
    message: { messageId, role: 'user', parts: [{ text: 'a' }] }
  }) as const

test('requests of a member over its A2A binding are checked in its share of time: over it the task waits, and those of others do not', async (t: Assert) => {
  const here = await spent(t)
  const { world, agent, gateway, member } = here
  const { task } = taskOf(await gateway.send(member, asked('one')))
  await world.settle()
  t.is(agent.open.length, 0)
  await gateway.send(ALICE, asked('two'))
  await world.settle()
  t.is(agent.open.length, 1)
  agent.finish('done')
  await world.settle()
  t.is(agent.open.length, 0)
  await untilBegun(here)
  t.is(agent.open.length, 1, 'it begins once the share has come back')
  agent.finish('done')
  await world.settle()
  t.is((await gateway.get(member, task.id)).task.state, 'completed')
})

test('after a start the requests of members have one share until the gateway has read its tasks, then each that of its member', async (t: Assert) => {
  const { world, owner, gateway, member } = await spent(t)
  const { checkShare } = owner.core
  const requests = new Set<string>()
  const payerOf = checkShare.payerOf.bind(checkShare)
  checkShare.payerOf = (requestId, peer) => payerOf((requests.add(requestId), requestId), peer)
  await gateway.send(member, asked('one'))
  await world.settle()
  const [requestId = ''] = requests
  t.is(payerOf(requestId, owner.id), member.id)
  gateway.stop()
  await owner.core.close()
  const agents = [new FakeAgent(agentDefinition('slow'))]
  const { core } = await world.start(owner.actor, { agents, store: owner.store, ledger: owner.ledger })
  const next = new TaskService(core)
  t.absent([owner.id, member.id].includes(core.checkShare.payerOf(requestId, owner.id)), 'nobody knows yet')
  await next.start()
  t.teardown(() => next.stop())
  t.is(core.checkShare.payerOf(requestId, owner.id), member.id)
})
