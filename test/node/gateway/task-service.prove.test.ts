import test, { type Assert } from 'brittle'
import { RETENTION_MS } from '../../../src/node/gateway/task-index.js'
import { MortalLedger } from '../../support/durable-scene.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { ALICE, gatewayOf, request, says, taskOf } from '../../support/gateway.js'

test('a task that is answered while others are let go of is kept or gone as a whole', async (t: Assert) => {
  for (let ticks = 0; ticks <= 40; ticks += 4) {
    const world = new World(t)
    const ledger = new MortalLedger()
    const slow = new FakeAgent(agentDefinition('slow'))
    const gateway = await gatewayOf(t, await world.owner({ agents: [slow], ledger }))
    const ids: string[] = []
    for (const text of ['a', 'b', 'c']) {
      const begun = gateway.send(ALICE, request(says(text)))
      await world.settle()
      slow.finish({ a2a: { state: 'input-required' } })
      await world.settle()
      ids.push(taskOf(await begun).task.id)
    }
    const release = ledger.hold('now')
    world.clock.advance(RETENTION_MS + 120_000)
    release()
    for (let tick = 0; tick < ticks; tick++) await Promise.resolve()
    const answering = gateway.send(ALICE, request(says('answer', { taskId: ids[2] ?? '' }))).then(
      (reply) => taskOf(reply).task.state,
      (error: { code: string }) => error.code
    )
    await world.pass(3000)
    const answer = await answering
    const now = await gateway.get(ALICE, ids[2] ?? '').then(
      ({ task }) => task.state,
      (error: { code: string }) => error.code
    )
    const kept = (await ledger.list({ from: 'a2a-', to: 'a2a.', limit: 20 })).length
    t.is(now, answer, `${ticks}`)
    t.is(slow.open.length, answer === 'working' ? 1 : 0)
    t.is(kept === 0, answer === 'TASK_NOT_FOUND', 'nothing is left of a removed one')
  }
})
