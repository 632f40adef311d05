import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createLayer, type Layer } from '../../../src/node/sdk/layer.js'
import type { SwarmSession } from '../../../src/node/swarms/session.js'
import { failsWith } from '../../support/fails.js'
import { arbAgents, arbWanted, withAgents } from '../../support/arb-agents.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

interface Scene {
  readonly world: World
  readonly nodes: readonly FakeNode[]
  readonly layer: Layer
  /** Agents whose runs wait for the test, by address. */
  readonly agents: ReadonlyMap<string, FakeAgent>
}

/** Three nodes whose agents can do what `can` says, in turn. Everybody is at L0. */
async function scene(t: Assert, can: readonly (readonly string[])[]): Promise<Scene> {
  const world = new World(t)
  const agents = new Map<string, FakeAgent>()
  const make = (index: number): FakeAgent =>
    new FakeAgent(agentDefinition(`agent${index}`, { capabilities: (can[index] ?? []).map((one) => capability(one)) }))
  const all = can.map((_, index) => make(index))
  const ofNode = (place: number): FakeAgent[] => all.filter((_, index) => index % 3 === place)
  const nodes = [
    await world.owner({ agents: ofNode(0) }),
    await world.member('b', { terms: { tier: 0 }, agents: ofNode(1) }),
    await world.member('c', { terms: { tier: 0 }, agents: ofNode(2) })
  ]
  await world.link(...nodes)
  for (const [index, agent] of all.entries()) agents.set(`agent${index}@${nodes[index % 3].id}`, agent)
  return { world, nodes, layer: createLayer(nodes[0].core), agents }
}

function sessionOf(layer: Layer, id: string): SwarmSession {
  const session = layer.swarms.getSwarm(id)
  assert.ok(session)
  return session
}

test('Feature: a2a-mcp-protocols, Property 25: Swarm broadcast to capable agents', async (t) => {
  const { world, nodes, layer } = await scene(t, [])
  const arbCase = arbAgents.chain((agents) =>
    fc.record({ agents: fc.constant(agents), required: arbWanted(agents, 3) })
  )
  const arbItems = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined })
  await holds(
    t,
    fc.asyncProperty(arbCase, arbItems, async ({ agents, required }, count) => {
      let capable: string[] = []
      const items =
        count === undefined
          ? {}
          : { items: Array.from({ length: count }, (_, input) => ({ item: `item ${input}`, input })) }
      const given = await withAgents({ world, nodes }, agents, async (can) => {
        capable = [...can]
          .filter(([, one]) => required.every((skill) => one.includes(skill)))
          .map(([address]) => address)
        const launching = layer.swarms.createSwarm('work', required, items)
        if (capable.length === 0) return await assert.rejects(launching, { code: 'NO_CAPABLE_AGENT' })
        const { id } = await launching
        await world.pass(600)
        const { participants, status } = sessionOf(layer, id)
        const working = count === undefined ? capable : capable.filter((one) => participants.includes(one))
        assert.deepEqual([[...participants].sort(), status], [[...working].sort(), 'completed'])
      })
      const asked = given.filter(({ envelope }) => envelope.type === 'task-proposal').map(({ address }) => address)
      assert.deepEqual(asked.sort(), capable.sort(), 'the agents that have all of them, once each, and no other')
    }),
    100
  )
})

test('Feature: a2a-mcp-protocols, Property 26: Swarm sub-task assignment and state consistency', async (t) => {
  const most = 5
  const can = Array.from({ length: most }, (_, index) =>
    Array.from({ length: most - index }, (_ignored, more) => `team${index + 1 + more}`)
  )
  const { world, layer, agents } = await scene(t, can)
  const arbSize = fc.tuple(
    fc.integer({ min: 1, max: most }),
    fc.option(fc.nat({ max: 6 })),
    fc.infiniteStream(fc.nat())
  )
  await holds(
    t,
    fc.asyncProperty(arbSize, async ([team, more, picks]) => {
      const items =
        more === null
          ? undefined
          : Array.from({ length: team + more }, (_, input) => ({ item: `item ${input}`, input }))
      const { id, status } = await layer.swarms.createSwarm(
        'work',
        [`team${team}`],
        items === undefined ? {} : { items }
      )
      assert.equal(status, 'recruiting')
      assert.ok(layer.swarms.listActiveSwarms().some((one) => one.id === id))
      await world.pass(600)
      const done = new Map<string, unknown>()
      for (;;) {
        const session = sessionOf(layer, id)
        const running = session.subTasks.filter((one) => one.status === 'running')
        const waiting = session.subTasks.some((one) => one.status === 'pending')
        assert.deepEqual(
          session.sharedState,
          Object.fromEntries(done),
          'only completed results are in the shared state'
        )
        if (running.length === 0) break
        assert.equal(session.status, waiting ? 'active' : 'completing')
        const subTask = running[(picks.next().value ?? 0) % running.length]
        const result = { by: subTask.assignedAgent, number: done.size }
        agents.get(subTask.assignedAgent)?.finish(result)
        done.set(subTask.id, result)
        await world.settle()
      }
      const session = sessionOf(layer, id)
      assert.equal(session.status, 'completed')
      assert.equal(session.subTasks.length, items?.length ?? team)
      assert.equal(session.participants.length, team)
      for (const agent of session.participants)
        assert.ok(
          session.subTasks.some((one) => one.assignedAgent === agent),
          'has a sub-task'
        )
      for (const one of session.subTasks) assert.deepEqual([one.status, one.result], ['completed', done.get(one.id)])
      assert.equal(layer.swarms.listActiveSwarms().length, 0)
    }),
    100
  )
})

test('a sub-task that failed goes to another agent; one that fails everywhere fails its swarm', async (t) => {
  const { world, layer, agents } = await scene(t, [['do'], ['do']])
  const { id } = await layer.swarms.createSwarm('work', ['do'], { items: [{ item: 'one', input: 1 }], retries: 1 })
  await world.pass(600)
  const [first] = sessionOf(layer, id).subTasks
  t.is(first.status, 'running')
  layer.swarms.failSubTask(id, first.id, 'it will not do')
  await world.settle()
  const [again] = sessionOf(layer, id).subTasks
  t.is(again.status, 'running')
  t.not(again.assignedAgent, first.assignedAgent)
  t.is(agents.get(first.assignedAgent)?.open.length, 0, 'the first gets the order to stop')
  layer.swarms.failSubTask(id, first.id, 'nor here')
  await world.settle()
  t.alike([sessionOf(layer, id).status, sessionOf(layer, id).subTasks[0].status], ['failed', 'failed'])
  t.alike(sessionOf(layer, id).sharedState, {})
})

test('a sub-task of a lost participant goes to one that is there', async (t) => {
  const { world, nodes, layer, agents } = await scene(t, [[], ['do'], ['do']])
  const { id } = await layer.swarms.createSwarm('work', ['do'], { items: [{ item: 'one', input: 1 }] })
  await world.pass(600)
  const [before] = sessionOf(layer, id).subTasks
  const lost = nodes.find((node) => before.assignedAgent.endsWith(node.id))
  world.net.disconnect(nodes[0].id, lost?.id ?? '')
  await world.settle()
  const [after] = sessionOf(layer, id).subTasks
  t.is(after.status, 'running')
  t.not(after.assignedAgent, before.assignedAgent)
  agents.get(after.assignedAgent)?.finish(7)
  await world.settle()
  t.alike(sessionOf(layer, id).sharedState, { [after.id]: 7 })
  t.alike([...sessionOf(layer, id).participants].sort(), [before.assignedAgent, after.assignedAgent].sort())
})

test('a sub-task is completed from outside once, in the place of its agent', async (t) => {
  // At another node, so that its answer to the offer takes longer than the swarm takes to be there.
  const { world, layer, agents } = await scene(t, [[], ['do']])
  const { id } = await layer.swarms.createSwarm('work', ['do'])
  const [{ id: subTask }] = sessionOf(layer, id).subTasks
  await failsWith(t, 'TASK_NOT_FOUND', () => layer.swarms.completeSubTask(id, subTask, 'early'))
  await world.pass(600)
  layer.swarms.completeSubTask(id, subTask, 'mine')
  await world.settle()
  t.is(sessionOf(layer, id).status, 'completed')
  t.alike(sessionOf(layer, id).sharedState, { [subTask]: 'mine' })
  t.is([...agents.values()][1].open.length, 0, 'its agent gets the order to stop')
  await failsWith(t, 'TASK_NOT_FOUND', () => layer.swarms.completeSubTask(id, subTask, 'twice'))
  await failsWith(t, 'TASK_NOT_FOUND', () => layer.swarms.completeSubTask(id, 'other.0', 1))
  await failsWith(t, 'SWARM_NOT_FOUND', () => layer.swarms.completeSubTask('swarm_none', subTask, 1))
})

test('an agent that comes later is offered a part; one that cannot is refused', async (t) => {
  const { world, nodes, layer } = await scene(t, [['do'], ['other']])
  const items = [1, 2, 3].map((input) => ({ item: `item ${input}`, input }))
  const { id } = await layer.swarms.createSwarm('work', ['do'], { items })
  await world.pass(600)
  const late = new FakeAgent(agentDefinition('late', { capabilities: [capability('do')] }))
  nodes[2].source.set([late])
  await world.settle()
  await layer.swarms.joinSwarm(id, 'late')
  await world.settle()
  t.ok(sessionOf(layer, id).participants.includes(`late@${nodes[2].id}`))
  t.is(late.open.length, 1)
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => layer.swarms.joinSwarm(id, 'agent1'))
  await failsWith(t, 'USAGE', () => layer.swarms.createSwarm('work', []))
  t.is(layer.swarms.getSwarm('swarm_none'), undefined)
})
