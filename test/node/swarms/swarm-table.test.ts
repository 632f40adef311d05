import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { SwarmEvent, SwarmRequest } from '../../../src/ports/swarm-api.js'
import { failsWith } from '../../support/fails.js'
import { capability, agentDefinition, FakeAgent, type Script } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'
import { holds } from '../../support/holds.js'

const CAPABILITIES = [capability('work.do')]

function worker(id = 'w', script?: Script, concurrency = 2): FakeAgent {
  return new FakeAgent(agentDefinition(id, { capabilities: CAPABILITIES, concurrency }), script)
}

function items(count: number): NonNullable<SwarmRequest['items']> {
  return Array.from({ length: count }, (_, index) => ({ item: `item ${index}`, input: index }))
}

const map = (count: number, changes: Partial<Omit<SwarmRequest, 'items'>> = {}): SwarmRequest => ({
  goal: 'do it',
  capability: 'work.do',
  strategy: 'map',
  items: items(count),
  ...changes
})

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly nodes: readonly FakeNode[]
  readonly agents: readonly FakeAgent[]
  /** Launches and lets everybody answer the offers. */
  launch(request: SwarmRequest): Promise<{ id: string; events: SwarmEvent[] }>
}

/** An owner that launches, and two members with a worker each. */
async function scene(t: Assert, script?: Script): Promise<Scene> {
  const world = new World(t)
  const agents = [worker('w', script), worker('w', script)]
  const owner = await world.owner()
  const nodes = [await world.member('b', { agents: [agents[0]] }), await world.member('c', { agents: [agents[1]] })]
  await world.link(owner, ...nodes)
  return {
    world,
    owner,
    nodes,
    agents,
    launch: async (request) => {
      const events: SwarmEvent[] = []
      const id = await owner.core.swarms.launch(request)
      const { past } = owner.core.swarms.get(id).follow((event) => events.push(event))
      events.unshift(...past)
      await world.settle()
      return { id, events }
    }
  }
}

function ofType<T extends SwarmEvent['type']>(
  events: readonly SwarmEvent[],
  type: T
): Extract<SwarmEvent, { type: T }>[] {
  return events.filter((event): event is Extract<SwarmEvent, { type: T }> => event.type === type)
}

const done: Script = (task) => ({ ok: true, result: `did ${String(task.input)}` })

test('map: every item is done once, shared between the nodes, and the end says so', async (t) => {
  const { world, owner, nodes, launch } = await scene(t, done)
  const { id, events } = await launch(map(10))
  await world.settle()
  const { results, status } = owner.core.swarms.get(id).results()
  t.is(status, 'completed')
  t.alike(
    results.map((one) => [one.item, one.result]),
    Array.from({ length: 10 }, (_, index) => [`item ${index}`, `did ${index}`])
  )
  t.alike(new Set(results.map((one) => one.agent)), new Set(['w@b', 'w@c']))
  const end = events.at(-1)
  t.is(end?.type, 'done')
  t.alike(end?.type === 'done' ? end.counts : null, { total: 10, completed: 10, failed: 0 })
  const info = owner.core.swarms.get(id).info()
  t.is(info.running, 0)
  t.alike(new Set(info.participants), new Set(['w@b', 'w@c']))
  t.is(owner.core.tasks.list()[0]?.state, 'completed')
  for (const node of nodes) t.alike(node.audit.events, [])
})

test('each: every capable agent does it once, on this node too', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [worker('w', done)] })
  const b = await world.member('b', { agents: [worker('w', done), worker('v', done)] })
  await world.link(owner, b)
  const id = await owner.core.swarms.launch({ goal: 'g', capability: 'work.do', strategy: 'each', input: 'x' })
  await world.settle()
  const { results } = owner.core.swarms.get(id).results()
  t.alike(results.map((one) => one.agent).sort(), ['v@b', 'w@b', 'w@owner'])
  t.alike(
    results.map((one) => one.item),
    results.map((one) => one.agent)
  )
})

test('a node lost in the middle: its items are done by others, each with exactly one result', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  const { id, events } = await launch(map(12))
  t.is(agents[0].open.length, 2)
  agents[0].finish('by b')
  await world.settle()
  world.net.disconnect(owner.id, nodes[0].id)
  const back = ofType(events, 'released')
  t.is(back.length, 2)
  t.ok(back.every((one) => one.agent === 'w@b' && one.reason === 'its node is gone'))
  for (let i = 0; i < 20 && owner.core.swarms.get(id).info().status === 'running'; i++) {
    if (agents[1].open.length > 0) agents[1].finish('by c')
    await world.settle()
  }
  const { results, status } = owner.core.swarms.get(id).results()
  t.is(status, 'completed')
  t.is(results.length, 12)
  t.is(results.filter((one) => one.agent === 'w@b').length, 1)
  t.is(ofType(events, 'item').length, 12)
})

test('a node that comes back is asked again and gets work again', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  await launch(map(12))
  world.net.disconnect(owner.id, nodes[0].id)
  await world.settle()
  const before = agents[0].tasks.length
  await world.link(owner, nodes[0])
  await world.pass(1000)
  t.ok(agents[0].tasks.length > before)
})

test('late answers of released leases change nothing', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  const { id, events } = await launch(map(2, { maxParallel: 1 }))
  const first = agents.find((agent) => agent.open.length > 0) ?? agents[0]
  const node = nodes[agents.indexOf(first)]
  const run = first.open[0]
  world.net.disconnect(owner.id, node.id)
  await world.link(owner, node)
  await world.pass(1000)
  run.end({ ok: true, result: 'late' })
  await world.settle()
  t.absent(ofType(events, 'item').some((one) => one.result === 'late' && one.attempt === 1))
  while (owner.core.swarms.get(id).info().status === 'running') {
    for (const agent of agents) if (agent.open.length > 0) agent.finish('good')
    await world.settle()
  }
  t.alike(
    owner.core.swarms
      .get(id)
      .results()
      .results.map((one) => one.result),
    ['good', 'good']
  )
})

test('a worker that falls silent loses its lease; nobody else can keep it alive', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  const { id, events } = await launch(map(2, { maxParallel: 1 }))
  const silent = agents.find((agent) => agent.open.length > 0) ?? agents[0]
  const [at, other] = silent === agents[0] ? [nodes[0], nodes[1]] : [nodes[1], nodes[0]]
  await at.core.executor.stop()
  const { requestId } = silent.tasks[0]
  for (let second = 0; second < 6; second++) {
    forgeControl(other, owner, { name: 'heartbeat', body: { requests: [`${requestId}#1`] } })
    await world.pass(1000, 500)
  }
  const [released] = ofType(events, 'released')
  t.is(released?.reason, 'no heartbeat for 5000 ms')
  t.ok(owner.core.swarms.get(id).info().status === 'running')
})

test('a worker that heartbeats keeps its lease however long it takes', async (t) => {
  const { world, agents, launch } = await scene(t)
  const { events } = await launch(map(1))
  await world.pass(60_000, 1000)
  t.alike(ofType(events, 'released'), [])
  for (const agent of agents) if (agent.open.length > 0) agent.finish()
  await world.settle()
  t.is(events.at(-1)?.type, 'done')
})

test('a failed run is tried again by another agent, at most so often', async (t) => {
  const script: Script = (task) =>
    task.input === 0
      ? { ok: false, code: 'TASK_FAILED', message: `attempt ${task.attempt}` }
      : { ok: true, result: 'fine' }
  const { world, owner, agents, launch } = await scene(t, script)
  const { id } = await launch(map(2, { retries: 2 }))
  await world.pass(30_000, 1000)
  const { results, status } = owner.core.swarms.get(id).results()
  t.is(status, 'partial')
  t.is(results[0].status, 'failed')
  t.is(results[0].attempt, 3)
  t.is(results[0].error?.message, 'attempt 3')
  const tried = agents.flatMap((agent) => agent.tasks.filter((task) => task.input === 0))
  t.is(tried.length, 3)
  t.ok(agents.every((agent) => agent.tasks.some((task) => task.input === 0)))
})

test('at the deadline what is not done has failed, and the workers stop', async (t) => {
  const { world, owner, agents, launch } = await scene(t)
  const { id } = await launch(map(10, { deadlineMs: 20_000 }))
  agents[0].finish('in time')
  await world.settle()
  await world.pass(20_000, 1000)
  const { results, status } = owner.core.swarms.get(id).results()
  t.is(status, 'partial')
  t.is(results.filter((one) => one.status === 'completed').length, 1)
  t.is(results.filter((one) => one.error?.code === 'TIMEOUT').length, 9)
  t.is(agents[0].open.length + agents[1].open.length, 0)
})

test('cancelling stops the workers and ends the swarm as canceled', async (t) => {
  const { world, owner, agents, launch } = await scene(t)
  const { id, events } = await launch(map(10))
  t.is(agents[0].open.length + agents[1].open.length, 4)
  t.is((await owner.core.swarms.cancel(id)).status, 'canceled')
  await world.settle()
  t.is(agents[0].open.length + agents[1].open.length, 0)
  const end = events.at(-1)
  t.is(end?.type === 'done' ? end.error?.code : '', 'CANCELED')
  t.is(owner.core.tasks.list()[0]?.state, 'canceled')
  t.absent(await owner.core.swarms.cancelTask(owner.core.tasks.list()[0]?.id ?? ''), 'it has ended')
})

test('a swarm whose agents are all away is stalled, and goes on when one is back', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  // With others that vote it would wait for them as well.
  const { id } = await launch(map(4, { takeover: false }))
  t.is(owner.core.swarms.get(id).info().status, 'running')
  for (const node of nodes) world.net.disconnect(owner.id, node.id)
  t.is(owner.core.swarms.get(id).info().status, 'stalled')
  t.is(owner.core.swarms.list()[0]?.status, 'stalled')
  t.is(owner.core.swarms.get(id).results().status, 'stalled')
  await world.pass(10_000, 1000)
  t.is(owner.core.swarms.get(id).info().status, 'stalled', 'it is not over')
  await world.link(owner, nodes[0])
  await world.pass(1000)
  t.is(owner.core.swarms.get(id).info().status, 'running')
  while (owner.core.swarms.get(id).info().status === 'running') {
    agents[0].finish()
    await world.settle()
  }
  t.is(owner.core.swarms.get(id).info().status, 'completed')
})

test('while the first offers are out a swarm is running, not stalled', async (t) => {
  const { world, owner } = await scene(t)
  const id = await owner.core.swarms.launch(map(1))
  t.is(owner.core.swarms.list()[0]?.status, 'running')
  t.is(owner.core.swarms.inMemory(id)?.session()?.status, 'recruiting')
  await world.settle()
})

test('nobody capable, nobody allowed, everybody offline: each says so at once, with the rule', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const b = await world.member('b', { agents: [worker('strong'), new FakeAgent(agentDefinition('weak', { tier: 3 }))] })
  const { core } = b
  await world.link(owner, b)
  const none = await failsWith(t, 'NO_CAPABLE_AGENT', () => core.swarms.launch({ ...map(1), capability: 'no.such' }))
  t.alike(none.data, { capability: 'no.such' })
  const refused = await failsWith(t, 'TIER_VIOLATION', () => core.swarms.launch({ ...map(1), capability: 'weak.do' }))
  t.alike(refused.data, { leftOut: [{ agent: 'weak@b', rule: 'tier: L1 may open to L0, L1' }] })
  const unmarked = await failsWith(t, 'NO_CAPABLE_AGENT', () =>
    owner.core.swarms.launch({ ...map(1), labels: ['tpu'] })
  )
  t.alike(unmarked.data, { leftOut: [{ agent: 'strong@b', rule: 'label: its node is not marked tpu' }] })
  t.is(unmarked.next[0], 'a2a-node agents show strong@b', 'there are its labels')
  world.net.disconnect(owner.id, b.id)
  const away = await failsWith(t, 'PEER_OFFLINE', () => owner.core.swarms.launch(map(1)))
  t.alike(away.data, { leftOut: [{ agent: 'strong@b', rule: 'offline' }] })
  await failsWith(t, 'USAGE', () => core.swarms.launch(map(0)))
  await failsWith(t, 'USAGE', () => core.swarms.launch(map(10_001)))
  t.is(core.swarms.list().length, 0)
  t.is(core.tasks.list().length, 0)
})

test('an agent without the right to take part is left out, with the rule, and gets nothing', async (t) => {
  const world = new World(t)
  const [good, weak] = [
    worker('good', done),
    new FakeAgent(agentDefinition('weak', { tier: 3, capabilities: CAPABILITIES }), done)
  ]
  const here = await world.member('here', { agents: [good, weak] })
  const id = await here.core.swarms.launch(map(3))
  await world.settle()
  t.is(weak.tasks.length, 0)
  t.is(good.tasks.length, 3)
  t.alike(here.core.swarms.get(id).info().leftOut, [{ agent: 'weak@here', rule: 'tier: L1 may open to L0, L1' }])
})

test('a swarm is as weak as its launcher', async (t) => {
  const world = new World(t)
  const agent = worker('w', done)
  const here = await world.member('here', { agents: [agent] })
  const weak = here.api({ tier: 3 })
  await failsWith(t, 'ESCALATION_REQUIRED', () => weak.call('swarm.start', map(1)))
  const { id } = await weak.call('swarm.start', map(1, { justification: 'asked to' }))
  await world.settle()
  t.is(here.core.swarms.get(id).info().status, 'completed')
  t.is(agent.tasks.length, 1)
})

test('an agent that is removed gives its leases back without a retry, and is asked again when it is back', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  const { id, events } = await launch(map(8, { retries: 0 }))
  nodes[0].source.set([])
  await world.pass(1000)
  const before = ofType(events, 'lease').filter((one) => one.agent === 'w@b').length
  nodes[0].source.set([agents[0]])
  await world.pass(1000)
  for (let i = 0; i < 40 && owner.core.swarms.get(id).info().status === 'running'; i++) {
    for (const agent of agents) if (agent.open.length > 0) agent.finish()
    await world.pass(250)
  }
  t.is(owner.core.swarms.get(id).info().status, 'completed')
  t.ok(ofType(events, 'lease').filter((one) => one.agent === 'w@b').length > before)
})

test('an agent that is away for a moment costs no retry, and is asked again', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  world.net.disconnect(owner.id, nodes[1].id)
  const { id, events } = await launch(map(4, { retries: 0 }))
  const [first] = agents[0].open
  nodes[0].source.set([])
  await world.settle()
  first.end({ ok: true, result: 'by the old version' })
  await world.settle()
  const young = worker('w', done)
  nodes[0].source.set([young])
  await world.pass(250)
  agents[0].finish('also by the old version')
  await world.pass(1000)
  t.is(owner.core.swarms.get(id).info().status, 'completed')
  t.is(young.tasks.length, 2)
  t.is(ofType(events, 'item').filter((one) => one.status === 'failed').length, 0)
})

test('an item that only a removed agent could do fails soon, and says why', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t)
  const { id } = await launch({ goal: 'g', capability: 'work.do', strategy: 'each' })
  agents[1].finish('fine')
  nodes[0].source.set([])
  await world.pass(1000)
  const { results, status } = owner.core.swarms.get(id).results()
  t.is(status, 'partial')
  t.is(results.find((one) => one.item === 'w@b')?.error?.code, 'AGENT_NOT_FOUND')
})

test('an agent that accepts and goes before the leases begin gets none', async (t) => {
  const { world, owner, nodes, launch } = await scene(t, done)
  for (const link of nodes[1].links.open) link.isHeld = true
  const { events } = await launch(map(4))
  world.net.disconnect(owner.id, nodes[0].id)
  await world.pass(500)
  t.alike(ofType(events, 'lease'), [])
})

test('an agent that declines is left out; one that does not answer holds nobody up for long', async (t) => {
  const { world, owner, nodes, agents, launch } = await scene(t, done)
  for (const link of nodes[0].links.open) link.isHeld = true
  const { id, events } = await launch(map(4))
  t.is(ofType(events, 'lease').length, 0, 'the first leases wait for the answers')
  await world.pass(500)
  t.is(owner.core.swarms.get(id).info().status, 'completed')
  t.is(agents[0].tasks.length, 0)
  t.is(agents[1].tasks.length, 4)
})

test('each item has at most one result, and the end has them all, for any losses, delays and failures', async (t) => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ finish: fc.nat(1), ok: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ cut: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ link: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ pass: fc.constantFrom(250, 1000, 6000) }) }
  )
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 6 }),
    fc.array(step, { maxLength: 25 }),
    async (count, steps) => {
      const { world, owner, nodes, agents, launch } = await scene(t)
      const { id, events } = await launch(map(count, { retries: 1, deadlineMs: 120_000, takeover: false }))
      for (const one of steps) {
        if ('finish' in one) {
          const outcome = one.ok
            ? ({ ok: true, result: 'r' } as const)
            : ({ ok: false, code: 'TASK_FAILED', message: 'no' } as const)
          agents[one.finish].open[0]?.end(outcome)
        } else if ('cut' in one) world.net.disconnect(owner.id, nodes[one.cut].id)
        else if ('link' in one) {
          if (!owner.core.peers.isOnline(nodes[one.link].id)) world.net.connect(owner.id, nodes[one.link].id)
        } else await world.pass(one.pass, 500)
        await world.settle()
        const live = new Set(ofType(events, 'item').map((event) => event.item))
        assert.equal(live.size, ofType(events, 'item').length, 'one result an item')
      }
      await world.pass(125_000, 2500)
      const { results, status } = owner.core.swarms.get(id).results()
      assert.equal(results.length, count)
      assert.ok(status !== 'running' && status !== 'stalled')
      const [end] = ofType(events, 'done')
      assert.equal(end.counts.completed, results.filter((one) => one.status === 'completed').length)
      assert.equal(events.at(-1), end, 'nothing after the end')
      for (const agent of agents) assert.ok(agent.mostAtOnce <= 2)
      for (const node of [owner, ...nodes]) await node.core.close()
    }
  )
  await holds(t, property, 100)
})
