import test from 'brittle'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

const worker = (): FakeAgent =>
  new FakeAgent(agentDefinition('w', { capabilities: [capability('work.do')] }), ({ input }) => ({ ok: true, result: input }))

test('a launched swarm uses the offers, leases and memory of its node, alone or with participants', async (t) => {
  for (const members of [1, 3]) {
    const world = new World(t)
    const owner = await world.owner()
    const nodes = await Promise.all(['b', 'c', 'd'].slice(0, members).map((name) => world.member(name, { agents: [worker()] })))
    await world.link(owner, ...nodes)
    const items = [1, 2].map((input) => ({ item: `item ${input}`, input }))
    const id = await owner.core.swarms.launch({ goal: 'g', capability: 'work.do', strategy: 'map', items })
    await world.pass(5000)
    const { status, results } = owner.core.swarms.get(id).results()
    t.is(status, 'completed')
    t.alike(
      results.map(({ result }) => result),
      [1, 2]
    )
    t.is(owner.core.swarms.get(id).info().coordination === undefined, members === 1)
    t.is(owner.core.tasks.list()[0]?.state, 'completed')
  }
})
