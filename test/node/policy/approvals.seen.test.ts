import test from 'brittle'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { ASK, approvalScene, callText, firstWaiting, waitingOf } from '../../support/approval-scene.js'
import { failsWith } from '../../support/fails.js'
import { capability, echo, type FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { forge, forgeControl, request } from '../../support/forge.js'

test('a copy with the same ids and other content is not covered by an approval, and reaches no listener', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const heard: unknown[] = []
  createLayer(peer.core).router.onReceive('text', ({ payload }) => heard.push((payload as { input?: unknown }).input))
  const copy = (correlationId: string, input: unknown): void =>
    forge(owner, peer, { payload: request('same', { input }), correlationId, metadata: { tier: 0 } })
  const [seen, other] = [
    { path: 'a', list: [1, 2], bytes: 'b' },
    { path: 'a', list: [1, 3], bytes: 'b' }
  ]
  copy('one', seen)
  await world.settle()
  copy('two', other)
  copy('three', { ...seen, more: 1 })
  copy('four', structuredClone(seen))
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  t.is(peer.counted('messages_sent', 'error'), 2, 'the others are refused')
  t.alike(peer.audit.events.at(-1)?.rule, 'approvals: as asked')
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  copy('five', other)
  await world.settle()
  t.alike(
    agent.tasks.map((one) => one.input),
    [seen]
  )
  t.absent(heard.some((input) => JSON.stringify(input) !== JSON.stringify(seen)))
  t.is(peer.counted('messages_sent', 'response'), 3, 'the honest copies are answered; finished work is not done again')
  t.alike(await waitingOf(peer), [])
})

test('a remembered permission is for the side effect that a person saw', async (t) => {
  const can = (sideEffect: 'read' | 'exec'): FakeAgent =>
    echo('text', { capabilities: [{ ...capability('text.do'), sideEffect }] })
  const { world, owner, peer } = await approvalScene(t, ASK, can('read'))
  void callText(owner)
  await world.settle()
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer), remember: true })
  await world.settle()
  t.ok(
    peer.policy.text.includes('capability: text.do, type: request, sideEffect: read, decision: allow }'),
    peer.policy.text
  )
  peer.source.set([can('exec')])
  await world.pass(2000)
  void callText(owner)
  await world.settle()
  t.is((await waitingOf(peer)).length, 1, 'a person is asked again')
})

test('nothing is remembered of an agent that changed while the message waited', async (t) => {
  const can = (sideEffect: 'read' | 'exec'): FakeAgent =>
    echo('text', { capabilities: [{ ...capability('text.do'), sideEffect }] })
  const { world, owner, peer } = await approvalScene(t, ASK, can('read'))
  void callText(owner)
  await world.settle()
  const changed = can('exec')
  peer.source.set([changed])
  await world.pass(2000)
  const id = await firstWaiting(peer)
  await failsWith(t, 'POLICY_DENIED', () => peer.api().call('approvals.allow', { id, remember: true }))
  t.is(peer.policy.text, ASK)
  t.is(changed.tasks.length, 0)
})

test('a permission that a person gave for a reason is not remembered: the next has to give one too', async (t) => {
  const world = new World(t)
  const asks = 'rules:\n  - decision: ask\n    from: {tier: L3}\n'
  const here = await world.member('here', { terms: { tier: 1 }, agents: [echo('text')], policy: asks })
  const weak = await world.member('weak', { terms: { tier: 3 } })
  await world.link(here, weak)
  forge(weak, here, { metadata: { tier: 3, justification: 'the ticket 42' } })
  await world.settle()
  const id = await firstWaiting(here)
  await failsWith(t, 'USAGE', () => here.api().call('approvals.allow', { id, remember: true }))
  t.is(here.policy.text, asks)
  await here.api().call('approvals.allow', { id })
  forge(weak, here, { metadata: { tier: 3 } })
  await world.settle()
  t.alike(
    here.audit.of('refusal').map(({ code }) => code),
    ['ESCALATION_REQUIRED']
  )
})

test('a remembered permission is for messages of its type', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const first = callText(owner)
  await world.settle()
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer), remember: true })
  await world.settle()
  await first
  forge(owner, peer, { type: 'notification', payload: { input: 1 }, metadata: { tier: 0 } })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  t.is(agent.tasks.length, 1)
})

test('a waiting request is counted once, as delivered or as refused, for any end', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const counted = (): number =>
    peer.core.deps.telemetry
      .snapshot()
      .counters.filter(({ name }) => name === 'messages_delivered' || name === 'messages_refused')
      .reduce((sum, { value }) => sum + value, 0)
  const before = counted()
  forge(owner, peer, { payload: request('r1'), metadata: { tier: 0 } })
  await world.settle()
  t.is(counted(), before, 'it waits')
  forgeControl(owner, peer, { name: 'cancel', body: { requestId: 'r1#1' } })
  await world.settle()
  t.is(counted(), before + 1, 'it was canceled')
  t.is(peer.counted('messages_refused', 'CANCELED'), 1)
})
