import test, { type Assert } from 'brittle'
import { beginTask } from '../../../src/adapters/a2a/server/operations.js'
import { Abort } from '../../../src/kit/abort.js'
import { MAX_WAITING } from '../../../src/node/agents/agent-queue.js'
import { MAX_IN_FLIGHT_MS } from '../../../src/node/agents/load-estimate.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { AgentDefinition } from '../../../src/ports/agent-runtime.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}
const SKILL = 'shared.do'
const able = (id: string, rest: Partial<AgentDefinition> = {}): FakeAgent =>
  new FakeAgent(agentDefinition(id, { capabilities: [capability(SKILL)], ...rest }))
const external = (id: string): FakeAgent => able(id, { runtime: 'a2a' })

async function asking(t: Assert, node: FakeNode) {
  const gateway = new TaskService(node.core)
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
  t.alike([own.tasks.length, outside.tasks.length], [1, 0], 'further agents wait at the one of the mesh')
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

test('an external agent is asked when no agent of the mesh is there or free, and without one the error says so', async (t: Assert) => {
  const world = new World(t)
  const [far, outside] = [able('far'), external('outside')]
  const owner = await world.owner({ agents: [outside] })
  const peer = await world.member('peer', { agents: [far] })
  const ask = await asking(t, owner)
  await ask()
  await world.settle()
  t.alike(
    [owner.core.registry.getByAddress(`far@${peer.id}`)?.id, outside.tasks.length],
    ['far', 1],
    'it is known, and away'
  )
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

test('messages for a skill are spread over equal agents of one node, sent at once or one after the other', async (t: Assert) => {
  for (const isSpaced of [false, true]) {
    const world = new World(t)
    const owner = await world.owner({ agents: [able('one'), able('two')] })
    const ask = await asking(t, owner)
    const replies: Awaited<ReturnType<typeof ask>>[] = []
    const sending: Promise<unknown>[] = []
    for (let i = 0; i < 6; i++) {
      sending.push(ask().then((reply) => replies.push(reply)))
      if (isSpaced) await world.pass(100)
    }
    await Promise.all(sending)
    t.alike(chosen(replies), { [`one@${owner.id}`]: 3, [`two@${owner.id}`]: 3 }, isSpaced ? '100 ms apart' : 'at once')
  }
})

test('messages for a skill are spread over the agents of other nodes, and over all of them again once they have ended', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({})
  const quick = (): FakeAgent =>
    new FakeAgent(agentDefinition('far', { capabilities: [capability(SKILL)] }), () => ({ ok: true, result: 'done' }))
  const members = await Promise.all(['b', 'c', 'd'].map((name) => world.member(name, { agents: [quick()] })))
  for (const member of members) await world.link(owner, member)
  await world.settle()
  const ask = await asking(t, owner)
  for (let round = 0; round < 2; round++) {
    const sending = Promise.all(Array.from({ length: 6 }, () => ask()))
    await world.settle()
    await world.pass(100)
    t.alike(chosen(await sending), Object.fromEntries(members.map(({ id }) => [`far@${id}`, 2])))
    for (const { id } of members) t.is(owner.core.asked.tasks(`far@${id}`), 0)
  }
})

test('an agent with running or waiting tasks is sent fewer, by the places that each has', async (t: Assert) => {
  const world = new World(t)
  const wide = agentDefinition('wide', { capabilities: [capability(SKILL)], concurrency: 3 })
  const owner = await world.owner({ agents: [able('busy'), new FakeAgent(wide)] })
  const ask = await asking(t, owner)
  const signal = new Abort()
  const task = { taskId: 't', requestId: 'r', attempt: 1, capability: SKILL, description: '', swarm: null, input: {} }
  const given = [1, 2].map(() =>
    owner.core.agents.run('busy', task, { signal, onStart: () => {}, onProgress: () => {} })
  )
  const replies = await Promise.all(Array.from({ length: 6 }, () => ask()))
  t.alike(chosen(replies), { [`wide@${owner.id}`]: 6 }, 'two for its one place are as many as six for three')
  signal.abort()
  await Promise.all(given)
})

test('a task that an agent was chosen for and that never came is not counted for long', async (t: Assert) => {
  const world = new World(t)
  const { core } = await world.owner({ agents: [able('one'), able('two')] })
  const choose = () =>
    core.selector.pick({ sender: { agentId: 'operator', nodeId: core.self }, type: 'request', capabilities: [SKILL] })
      .agentId
  t.alike([choose(), choose(), choose()], ['one', 'two', 'one'])
  await world.pass(MAX_IN_FLIGHT_MS)
  t.is(core.agents.tasksAPlace('one'), 0)
  t.is(choose(), 'one')
})

/** How many of the tasks each agent has. */
function chosen(replies: readonly Awaited<ReturnType<typeof beginTask>>[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const reply of replies) {
    const agent = reply.kind === 'task' ? reply.snapshot.task.agent : ''
    counts[agent] = (counts[agent] ?? 0) + 1
  }
  return counts
}

async function failsWithMessage(t: Assert, message: string, run: () => Promise<unknown>): Promise<void> {
  const error = await run().then(
    () => null,
    (thrown: unknown) => thrown as Error
  )
  t.is(error?.message, message)
}
