import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { SwarmEvent, SwarmRequest } from '../../../src/ports/swarm-api.js'
import { isRecord } from '../../../src/kit/json.js'
import { arbAgents, arbWanted, withAgents } from '../../support/arb-agents.js'
import { World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'
import { SwarmScene } from '../../support/swarm-scene.js'

const base = { goal: 'do it', capability: 'work.again', input: { n: 1 }, retries: 0 } as const
const items = [
  { item: 'x', input: 1 },
  { item: 'y', input: 2 },
  { item: 'z', input: 3 }
]
const REQUESTS: Readonly<Record<SwarmRequest['strategy'], SwarmRequest>> = {
  each: { ...base, strategy: 'each' },
  map: { goal: 'do it', capability: 'work.again', strategy: 'map', items, retries: 0 },
  race: { ...base, strategy: 'race', answers: 2 },
  vote: { ...base, strategy: 'vote', answers: 2 },
  pipeline: { ...base, strategy: 'pipeline', stages: ['work.again', 'work.again'] },
  plan: {
    ...base,
    strategy: 'plan',
    plan: {
      tasks: [
        { id: 'a', capability: 'work.again' },
        { id: 'b', capability: 'work.again', needs: ['a'] },
        { id: 'c', capability: 'work.again' }
      ]
    }
  }
}

async function followed(scene: SwarmScene, id: string): Promise<SwarmEvent[]> {
  const events: SwarmEvent[] = []
  const swarm = await scene.launcher.core.swarms.find(id)
  events.push(...swarm.follow((event) => events.push(event)).past)
  return events
}

test('vote: one that ends without a majority says which command shows the answers, when it ends and later', async (t: Assert) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.run(REQUESTS.vote)
  for (let round = 0; (await scene.info(id)).status === 'running' && round < 200; round++) {
    for (const { agent } of scene.workers) for (const run of [...agent.open]) scene.end(run)
    await scene.world.pass(500, 500)
  }
  const done = (await followed(scene, id)).find((event) => event.type === 'done')
  const { status, error } = await scene.info(id)
  t.is(status, 'failed')
  for (const one of [error, done?.type === 'done' ? done.error : null]) {
    t.is(one?.message, 'vote: no majority among 2: 1, 1 alike')
    t.alike(one?.next, [`a2a-node swarm results ${id}`])
  }
})

for (const [strategy, request] of Object.entries(REQUESTS)) {
  test(`${strategy}: when no agent is left the swarm says so, fails and ends, and never hangs`, async (t: Assert) => {
    const scene = await SwarmScene.start(t)
    const id = await scene.run(request)
    await scene.world.pass(1000, 500)
    const events = await followed(scene, id)
    for (const worker of scene.workers) await scene.unlink(worker)
    await scene.world.pass(2000, 500)
    t.is((await scene.info(id)).status, 'stalled')
    t.ok(events.some((event) => event.type === 'status' && event.status === 'stalled'))
    t.ok(
      scene.launcher.core.events.recent().some(({ type, data }) => type === 'swarm' && data['swarm'] === id),
      'the node reports it'
    )
    await scene.world.pass(150_000, 2500)
    t.is((await scene.info(id)).status, 'failed')
    const done = events.find((event) => event.type === 'done')
    t.ok(['NO_CAPABLE_AGENT', 'PEER_OFFLINE'].includes(done?.type === 'done' ? (done.error?.code ?? '') : ''))
    const session = scene.launcher.core.swarms.inMemory(id)?.session()
    t.is(session?.status, 'failed')
  })

  if (strategy !== 'each')
    test(`${strategy}: the work of a lost agent is done by another`, async (t: Assert) => {
      const scene = await SwarmScene.start(t, ['b', 'c', 'd'])
      scene.answer = () => 'same'
      const id = await scene.run(request)
      await scene.world.pass(1000, 500)
      const [lost] = scene.workers.filter(({ agent }) => agent.open.length > 0)
      if (lost === undefined) throw new Error('nobody works')
      const runs = lost.agent.open.map(({ task }) => task.requestId)
      await scene.unlink(lost)
      const others = scene.workers.filter((one) => one !== lost)
      for (let round = 0; (await scene.info(id)).status === 'running' && round < 200; round++) {
        for (const { agent } of others) for (const run of [...agent.open]) scene.end(run)
        await scene.world.pass(500, 500)
      }
      t.is((await scene.info(id)).status, 'completed')
      const begun = new Set(others.flatMap(({ agent }) => agent.tasks.map(({ requestId }) => requestId)))
      const rows = await scene.rows(id)
      for (const run of runs)
        t.ok(
          begun.has(run) || rows[Number(run.split('.').at(-1))]?.status === 'canceled',
          `${run} was taken over, or not needed`
        )
    })
}

/** A request of each strategy whose stages take these skills in turn, and the skills that it needs. */
const STAGED: readonly ((skills: readonly [string, ...string[]]) => {
  readonly request: SwarmRequest
  readonly needs: readonly string[]
})[] = [
  ([capability]) => ({ request: { goal: 'do it', strategy: 'each', capability, input: 1 }, needs: [capability] }),
  ([capability]) => ({ request: { goal: 'do it', strategy: 'map', capability, items }, needs: [capability] }),
  ([capability, reduce = capability]) => ({
    request: { goal: 'do it', strategy: 'map', capability, items, reduce },
    needs: [capability, reduce]
  }),
  ([capability]) => ({
    request: { goal: 'do it', strategy: 'race', capability, input: 1, answers: 1 },
    needs: [capability]
  }),
  ([capability, judge = capability]) => ({
    request: { goal: 'do it', strategy: 'vote', capability, input: 1, answers: 1, judge },
    needs: [capability, judge]
  }),
  (stages) => ({
    request: { goal: 'do it', strategy: 'pipeline', capability: stages[0], input: 1, stages },
    needs: stages
  }),
  (skills) => {
    const tasks = skills.map((capability, at) => ({
      id: `t${at}`,
      capability,
      ...(at === 0 ? {} : { needs: [`t${at - 1}`] })
    }))
    return {
      request: { goal: 'do it', strategy: 'plan', capability: skills[0], input: 1, plan: { tasks } },
      needs: skills
    }
  }
]

test('Feature: a2a-mcp-protocols, Property 25: Swarm broadcast to capable agents, for every strategy and sub-task', async (t) => {
  const world = new World(t)
  const nodes = [
    await world.owner(),
    await world.member('b', { terms: { tier: 0 } }),
    await world.member('c', { terms: { tier: 0 } })
  ]
  await world.link(...nodes)
  const { swarms } = nodes[0].core
  const arbCase = arbAgents.chain((agents) => fc.record({ agents: fc.constant(agents), skills: arbWanted(agents, 3) }))
  const property = fc.asyncProperty(arbCase, fc.constantFrom(...STAGED), async ({ agents, skills }, staged) => {
    const { request, needs } = staged(skills)
    let expected: string[] = []
    const given = await withAgents({ world, nodes }, agents, async (can) => {
      const capable = needs.map((skill) =>
        [...can].flatMap(([address, one]) => (one.includes(skill) ? [`${address} ${skill}`] : []))
      )
      const launching = swarms.launch({ takeover: false, retries: 0, ...request })
      if (capable.some((those) => those.length === 0))
        return await assert.rejects(launching, { code: 'NO_CAPABLE_AGENT' })
      expected = [...new Set(capable.flat())]
      const id = await launching
      await world.pass(2000, 500)
      assert.equal((await swarms.find(id)).info().status, 'completed')
    })
    const asked = given.flatMap(({ address, envelope: { type, payload } }) =>
      type === 'task-proposal' && isRecord(payload) ? [`${address} ${String(payload['requiredCapabilities'])}`] : []
    )
    assert.deepEqual(
      asked.sort(),
      expected.sort(),
      `${request.strategy}: each agent for its capabilities, once, and no other`
    )
  })
  await holds(t, property, 100)
})
