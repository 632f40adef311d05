import test, { type Assert } from 'brittle'
import { beginTask } from '../../src/adapters/a2a/operations.js'
import { Abort } from '../../src/kit/abort.js'
import { MAX_WAITING } from '../../src/node/agent-queue.js'
import { GatewayTasks } from '../../src/node/gateway.js'
import type { AgentDefinition } from '../../src/ports/agent-runtime.js'
import type { Principal } from '../../src/ports/node-api.js'
import { agentDefinition, capability, FakeAgent } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'

const ALICE: Principal = { kind: 'token', name: 'token alice', id: 'tok_a', tier: 0, sandboxId: null, scopes: ['read', 'send'] }
const SKILL = 'shared.do'
const able = (id: string, rest: Partial<AgentDefinition> = {}): FakeAgent =>
  new FakeAgent(agentDefinition(id, { capabilities: [capability(SKILL)], ...rest }))
const external = (id: string): FakeAgent => able(id, { runtime: 'a2a' })

async function asking(t: Assert, node: FakeNode) {
  const gateway = new GatewayTasks(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  let said = 0
  return (skill = SKILL) =>
    beginTask(
      { gateway, by: ALICE, agent: null, signal: new AbortController().signal },
      { message: { messageId: `m${++said}`, role: 'user', parts: [{ text: 'x' }] }, skill },
      { wait: false, mayAnswer: false }
    )
}

test('an agent of the mesh goes before an external one, also when it is busier and on another node', async (t: Assert) => {
  const world = new World(t)
  const [own, far, outside] = [able('own'), able('far'), external('outside')]
  const owner = await world.owner({ agents: [own, outside] })
  const peer = await world.member('peer', { agents: [far] })
  const ask = await asking(t, owner)
  for (let i = 0; i < 3; i++) {
    await ask()
    await world.settle()
  }
  t.alike([own.tasks.length, outside.tasks.length], [1, 0], 'what is more waits at the one of the mesh')
  await world.link(owner, peer)
  await ask()
  await world.settle()
  t.alike([far.tasks.length, outside.tasks.length], [1, 0])
})

test('the external agent of another node is known as one by its card, and its node cannot gain by saying so', async (t: Assert) => {
  const world = new World(t)
  const [own, outside] = [able('own'), external('outside')]
  const owner = await world.owner({ agents: [own] })
  const peer = await world.member('peer', { agents: [outside] })
  await world.link(owner, peer)
  t.is(owner.core.registry.getByAddress(`outside@${peer.id}`)?.external, true)
  const ask = await asking(t, owner)
  for (let i = 0; i < 3; i++) await ask()
  await world.settle()
  t.is(outside.tasks.length, 0)
})

test('an external agent is asked when nobody of the mesh is there or has room, and without one it is said that nobody is', async (t: Assert) => {
  const world = new World(t)
  const [far, outside] = [able('far'), external('outside')]
  const owner = await world.owner({ agents: [outside] })
  const peer = await world.member('peer', { agents: [far] })
  const ask = await asking(t, owner)
  await ask()
  await world.settle()
  t.alike([owner.core.registry.getByAddress(`far@${peer.id}`)?.id, outside.tasks.length], ['far', 1], 'it is known, and away')
  await failsWithMessage(t, 'No agents available for skill: no.such', () => ask('no.such'))

  const full = able('full')
  const crowded = await new World(t).owner({ agents: [full, external('other')] })
  const { agents } = crowded.core
  const signal = new Abort()
  const task = { taskId: 't', requestId: 'r', attempt: 1, capability: SKILL, description: '', swarm: null, input: {} }
  const runs = Array.from({ length: MAX_WAITING + 1 }, () =>
    agents.run('full', task, { signal, onStart: () => Promise.resolve(), onProgress: () => {} })
  )
  const reply = await (await asking(t, crowded))()
  t.is(reply.kind === 'task' ? reply.snapshot.task.agent : null, `other@${crowded.id}`)
  signal.abort()
  await Promise.all(runs)
})

async function failsWithMessage(t: Assert, message: string, run: () => Promise<unknown>): Promise<void> {
  const error = await run().then(
    () => null,
    (thrown: unknown) => thrown as Error
  )
  t.is(error?.message, message)
}
