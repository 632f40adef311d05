import test, { type Assert } from 'brittle'
import { failsWith } from '../../support/fails.js'
import { capability, echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

test('message.judge refuses a token exactly the calls that would be refused, and sends and records nothing', async (t: Assert) => {
  const world = new World(t)
  const agents = [0, 1, 2, 3].map((tier) => {
    const id = `l${tier}`
    return echo(id, { tier: tier as 0, capabilities: [capability(`${id}.do`), capability(`${id}.more`)] })
  })
  const owner = await world.owner({ agents })
  let [refusals, passed] = [0, 0]
  for (const tier of [0, 1, 2, 3] as const) {
    const api = owner.api({ kind: 'token', name: 't', tier, scopes: ['send'] })
    for (const { definition, tasks } of agents) {
      const { id: agent } = definition
      const capabilities = [`${agent}.do`, `${agent}.more`]
      const before = [owner.audit.all.length, tasks.length]
      const { refused } = await api.call('message.judge', { agent, capabilities })
      t.alike([owner.audit.all.length, tasks.length], before)
      for (const one of capabilities) {
        const error = refused.find((other) => other.capability === one)?.error
        const call = api.call('message.call', { agent, capability: one, input: {} })
        if (error !== undefined) {
          refusals++
          await failsWith(t, error.code, () => call)
        } else {
          passed++
          await world.settle()
          t.is((await call).outcome, 'COMPLETED')
        }
      }
    }
  }
  t.ok(refusals > 0 && passed > 0, `${refusals} refused, ${passed} passed`)
  await failsWith(t, 'AGENT_NOT_FOUND', () => owner.api().call('message.judge', { agent: 'nobody', capabilities: [] }))
  const reader = owner.api({ kind: 'token', name: 'r', tier: 0, scopes: ['read'] })
  await failsWith(t, 'FORBIDDEN', () => reader.call('message.judge', { agent: 'l0', capabilities: [] }))
})
