import test from 'brittle'
import { createLayer } from '../../src/node/layer.js'
import { ASK, approvalScene, callText, firstWaiting, waitingOf } from '../support/approval-scene.js'
import { failsWith } from '../support/fails.js'
import { capability, echo, type FakeAgent } from '../support/fake-agents.js'
import { forge, request } from '../support/forge.js'

test('a copy with the same ids that says something else does not ride on an approval, and nobody hears it', async (t) => {
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
  t.is(peer.counted('messages_sent', 'response'), 3, 'the honest copies are answered; what was done is not done again')
  t.alike(await waitingOf(peer), [])
})

test('a remembered permission is for the side effect that a person saw', async (t) => {
  const can = (sideEffect: 'read' | 'exec'): FakeAgent => echo('text', { capabilities: [{ ...capability('text.do'), sideEffect }] })
  const { world, owner, peer } = await approvalScene(t, ASK, can('read'))
  void callText(owner)
  await world.settle()
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer), remember: true })
  await world.settle()
  t.ok(peer.policy.text.includes('capability: text.do, type: request, sideEffect: read, decision: allow }'), peer.policy.text)
  peer.source.set([can('exec')])
  await world.pass(2000)
  void callText(owner)
  await world.settle()
  t.is((await waitingOf(peer)).length, 1, 'a person is asked again')
})

test('nothing is remembered of an agent that changed while the message waited', async (t) => {
  const can = (sideEffect: 'read' | 'exec'): FakeAgent => echo('text', { capabilities: [{ ...capability('text.do'), sideEffect }] })
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
