import test from 'brittle'
import { approvalScene, waitingOf } from '../../../support/approval-scene.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import { forge, request } from '../../../support/forge.js'

test('unrepeatable work that has begun stays on record, also when a copy of it is refused', async (t) => {
  const agent = new FakeAgent(agentDefinition('text', { capabilities: [capability('text.do', { idempotent: false })] }))
  const { world, owner, peer } = await approvalScene(t, 'rules:\n  - decision: ask\n    from: {tier: L3}\n', agent)
  const copy = (correlationId: string, tier: 0 | 3): void =>
    forge(owner, peer, { payload: request('same'), correlationId, metadata: { tier, justification: 'why' } })
  copy('one', 3)
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  copy('two', 0)
  await world.settle()
  t.is(agent.tasks.length, 1, 'the rules let the stronger one pass')
  world.net.disconnect(owner.id, peer.id)
  await world.pass(20_000, 1000)
  t.alike(await waitingOf(peer), [], 'its sender is away for too long')
  const open = []
  for await (const { requestId, status } of peer.core.requestStore.pending()) open.push([requestId, status])
  t.alike(open, [['same', 'started']])
  agent.finish('done')
  await world.settle()
  t.is(peer.core.tasks.list()[0]?.state, 'completed')
})
