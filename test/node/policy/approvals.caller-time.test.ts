import test from 'brittle'
import { ASK, approvalScene, callText, firstWaiting, taskState, waitingOf } from '../../support/approval-scene.js'
import { chain } from '../../support/chain.js'
import { DurableScene } from '../../support/durable-scene.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'
import { forge, request } from '../../support/forge.js'

/** The last of three asks about what the first, which it has no link to, wants done. */
const asking = { policy: { c: ASK }, settings: { c: { approvalTimeoutMs: 86_400_000 } } } as const
/** A timeout of 4 s, and the longest wait for a person. */
const CALLER_MS = 3_604_000

/** What the first asks the last. */
function call(a: FakeNode, timeoutMs: number) {
  return a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: { x: 1 }, timeoutMs })
}

test('over a hop the sender sees that its request waits for a person, and when it does so no longer', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { ...asking, agent })
  const reply = call(a, 60_000)
  await world.settle()
  t.is(await taskState(a), 'submitted approval')
  await world.pass(20_000, 1000)
  t.is(await taskState(a), 'submitted approval')
  t.is(b.counted('messages_passed_on', 'request'), 1)
  await c.api().call('approvals.allow', { id: await firstWaiting(c) })
  await world.pass(1000)
  t.is(agent.tasks.length, 1)
  t.is(await taskState(a), 'working null', 'its node names it over the hop')
  agent.finish()
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('over a hop a sender takes back what nobody allowed in time, as over a link', async (t) => {
  const { world, a, c, agent } = await chain(t, asking)
  const reply = call(a, 4000)
  await world.settle()
  const id = await firstWaiting(c)
  await world.pass(CALLER_MS, 4000)
  t.alike([(await reply).outcome, (await reply).error?.code], ['UNKNOWN', 'TIMEOUT'])
  t.is((await reply).error?.message, 'nobody allowed it in time; it was taken back')
  t.alike(await waitingOf(c), [], 'at that moment already')
  t.is((await c.api().call('node.status', {})).approvals.waiting, 0)
  for (const verb of ['allow', 'deny'] as const)
    await failsWith(t, 'APPROVAL_NOT_FOUND', () => c.api().call(`approvals.${verb}`, { id }))
  await world.pass(10_000)
  t.is(agent.tasks.length, 0)
  t.alike(
    c.audit.of('refusal').map(({ code }) => code),
    ['CANCELED']
  )
})

test('a request without approval ends with its own code when the time of its caller is over, also when the caller cannot be reached', async (t) => {
  const { world, a, b, c, agent } = await chain(t, asking)
  const reply = call(a, 4000)
  await world.settle()
  const id = await firstWaiting(c)
  world.net.disconnect(a.id, b.id)
  await world.pass(CALLER_MS, 4000)
  t.alike([(await reply).outcome, (await reply).error?.code], ['UNKNOWN', 'TIMEOUT'])
  t.alike(await waitingOf(c), [], 'at that moment already')
  const refused = await failsWith(t, 'APPROVAL_TIMEOUT', () => c.api().call('approvals.allow', { id }))
  t.is(
    refused.message,
    `${id} does not wait any more: nobody allowed it before its caller's time was over; nothing was done`
  )
  await world.pass(1000)
  for (const verb of ['allow', 'deny'] as const)
    await failsWith(t, 'APPROVAL_TIMEOUT', () => c.api().call(`approvals.${verb}`, { id }))
  await failsWith(t, 'APPROVAL_TIMEOUT', () => c.api().call('approvals.show', { id }))
  await world.link(a, b)
  await world.pass(30_000, 1000)
  const { state, error } = await a.api().call('tasks.show', { id: (await reply).taskId ?? '' })
  t.alike([state, error?.code], ['failed', 'APPROVAL_TIMEOUT'], 'its sender gets an error')
  t.is(agent.tasks.length, 0)
  t.alike(c.audit.of('approval'), [], 'nobody has decided')
})

test('a request without a waiting caller is not released by a policy that allows it by then', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  forge(owner, peer, { payload: request('r1', { timeoutMs: 1000 }), metadata: { tier: 0 } })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  world.clock.advance(1000)
  peer.policy.write('rules: []\n')
  await world.settle()
  t.is(agent.tasks.length, 0)
  await world.pass(1000)
  t.is(agent.tasks.length, 0)
  t.alike(
    peer.audit.events.map(({ code }) => code),
    ['APPROVAL_TIMEOUT']
  )
})

test('a request that this node ended in time is distinguished from one that never waited', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  void callText(owner, { timeoutMs: 600_000 })
  await world.settle()
  const id = await firstWaiting(peer)
  await world.pass(300_000, 5000)
  const refused = await failsWith(t, 'APPROVAL_TIMEOUT', () => peer.api().call('approvals.allow', { id }))
  t.is(refused.message, `${id} does not wait any more: nobody allowed it in time; nothing was done`)
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => peer.api().call('approvals.allow', { id: 'app_nobody' }))
})

test('the common beginning of all ids is no name of the only waiting request', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  void callText(owner)
  await world.settle()
  const id = await firstWaiting(peer)
  for (const text of ['app_', id.slice(0, 7)])
    await failsWith(t, 'APPROVAL_NOT_FOUND', () => peer.api().call('approvals.allow', { id: text }))
  t.is((await waitingOf(peer)).length, 1)
  await peer.api().call('approvals.allow', { id: id.slice(0, 8) })
  await world.settle()
  t.is(agent.tasks.length, 1)
})

test('after a restart of its node a request waits until the end of its own approval', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  const { world } = scene
  for (const capability of ['slow.again', 'slow.again']) await scene.ask({ capability, timeoutMs: 60_000 })
  await world.settle()
  await world.pass(20_000, 1000)
  await scene.unlink()
  await scene.crashPeer('rules:\n  - decision: ask\n')
  const { approvals } = await scene.peer.api().call('approvals.list', {})
  t.alike(
    approvals.map(({ askedAt, expiresAt, endsBy }) => [Date.parse(expiresAt) - Date.parse(askedAt), endsBy]),
    [
      [300_000, 'node'],
      [300_000, 'node']
    ]
  )
})
