import test, { type Assert } from 'brittle'
import { MAX_APPROVAL_WAIT_MS } from '../../../src/domain/task/approval-wait.js'
import { approvalScene, ASK, callText, firstWaiting, waitingOf } from '../../support/approval-scene.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'

/** Ends once true: the answer is there. */
function endOf(reply: ReturnType<typeof callText>): { outcome: string | null } {
  const end: { outcome: string | null } = { outcome: null }
  void reply.then(({ outcome, error }) => (end.outcome = error?.code ?? outcome))
  return end
}

/** Reports of a node about a run, as its channel carries them. */
function reports(from: FakeNode, to: FakeNode, name: 'approval' | 'heartbeat', key: string): void {
  forgeControl(from, to, { name, body: { requests: [key] } })
}

test('a timeout shorter than the approval does not end the request while a person decides', async (t) => {
  for (const timeoutMs of [1, 500, 5000, 29_000]) {
    const { world, owner, peer, agent } = await approvalScene(t)
    const end = endOf(callText(owner, { timeoutMs }))
    await world.settle()
    await world.pass(290_000, 1000)
    t.is(end.outcome, null, `${timeoutMs}`)
    await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
    await world.settle()
    t.alike([end.outcome, agent.tasks.length], ['COMPLETED', 1], `${timeoutMs}`)
  }
})

test('an approval that ends without a decision answers with its own code, not with the timeout of the caller', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const end = endOf(callText(owner, { timeoutMs: 5000 }))
  await world.settle()
  await world.pass(299_000, 1000)
  t.is((await waitingOf(peer)).length, 1)
  await world.pass(2000, 1000)
  t.is(end.outcome, 'APPROVAL_TIMEOUT')
})

test('after the approval the rest of the timeout passes', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, owner, peer } = await approvalScene(t, ASK, agent)
  const end = endOf(callText(owner, { timeoutMs: 10_000 }))
  await world.settle()
  await world.pass(60_000, 1000)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  await world.pass(9000, 1000)
  t.is(end.outcome, null)
  await world.pass(4000, 1000)
  t.is(end.outcome, 'TIMEOUT', 'with at most a heartbeat more')
})

test('a node that reports an approval for ever, or in turns, delays its caller by an hour at most', async (t) => {
  for (const names of [['approval'], ['heartbeat', 'approval']] as const) {
    const agent = new FakeAgent(agentDefinition('text'))
    // Its own heartbeats would tell the truth.
    const { world, owner, peer } = await approvalScene(t, '', agent, { heartbeatMs: 86_400_000 })
    const end = endOf(callText(owner, { timeoutMs: 20_000 }))
    await world.settle()
    const [task] = agent.tasks
    const key = `${task?.requestId}#1`
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 2000) {
        for (const name of names) reports(peer, owner, name, key)
        await world.pass(2000)
      }
    }
    await pass(3_000_000)
    t.is(end.outcome, null, 'delayed')
    await pass(MAX_APPROVAL_WAIT_MS - 3_000_000 + 22_000)
    t.is(end.outcome, 'TIMEOUT', names.join())
  }
})

test('a wait for approval that is reported no more delays the caller by a lease at most', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, owner, peer } = await approvalScene(t, '', agent)
  const end = endOf(callText(owner, { timeoutMs: 20_000 }))
  await world.settle()
  const [task] = agent.tasks
  reports(peer, owner, 'approval', `${task?.requestId}#1`)
  await world.settle()
  world.net.disconnect(owner.id, peer.id)
  await world.pass(19_000, 1000)
  await world.pass(7000, 1000)
  t.ok(end.outcome === 'TIMEOUT' || end.outcome === 'PEER_OFFLINE', String(end.outcome))
})

test('a request to an agent of the own node waits as long for its owner', async (t) => {
  const { world, peer, agent } = await approvalScene(t)
  const end = endOf(callText(peer, { timeoutMs: 2000 }))
  await world.settle()
  await world.pass(60_000, 1000)
  t.is(end.outcome, null)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.pass(1000)
  t.alike([end.outcome, agent.tasks.length], ['COMPLETED', 1])
})

test('a request that nobody must approve ends at its timeout', async (t: Assert) => {
  const { world, owner } = await approvalScene(t, '', new FakeAgent(agentDefinition('text')))
  const end = endOf(callText(owner, { timeoutMs: 5000 }))
  await world.settle()
  await world.pass(5000, 1000)
  t.is(end.outcome, 'TIMEOUT')
})
