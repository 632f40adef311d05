import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { ASK, approvalScene, callText, firstWaiting, taskState, waitingOf } from '../../support/approval-scene.js'
import { failsWith } from '../../support/fails.js'
import { echo } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'
import { forge, forgeControl, request } from '../../support/forge.js'
import { isOpen } from '../../support/exchanges.js'

/** How waits ended, on record as decided by a person (`approval`) or by nobody (`refusal`). */
function approvalsOnRecord(node: FakeNode, kind: 'approval' | 'refusal' = 'approval'): string[] {
  return node.audit.events
    .filter((one) => one.kind === kind)
    .map((one) => `${one.code}: ${one.reason?.replace(/^\S+ /, '')}`)
}

test('a message that a rule asks about waits, its sender sees that, and once it is allowed it runs', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const reply = callText(owner)
  await world.settle()
  t.is(agent.tasks.length, 0, 'nothing runs')
  t.is(await taskState(owner), 'submitted approval')
  const [one] = await waitingOf(peer)
  t.alike(
    { ...one, id: '', askedAt: '', expiresAt: '' },
    {
      id: '',
      from: 'operator@owner',
      fromNode: { id: owner.id, name: 'owner' },
      to: 'text@peer',
      toNode: { id: peer.id, name: 'peer' },
      fromTier: 'L0',
      type: 'request',
      capability: 'text.do',
      sideEffect: 'exec',
      description: '',
      justification: null,
      input: '{"n":1}',
      cut: [],
      rule: 'policy.yaml:3: ask',
      askedAt: '',
      expiresAt: '',
      endsBy: 'node'
    }
  )
  await peer.api().call('approvals.allow', { id: one?.id ?? '' })
  await world.settle()
  t.alike((await reply).payload, { n: 1 })
  t.is(agent.tasks.length, 1)
  t.is(await taskState(owner), 'completed null')
  t.alike(await waitingOf(peer), [])
  t.alike(approvalsOnRecord(peer), ['ALLOWED: allowed by operator: text.do'])
  const [line] = peer.audit.events.filter((each) => each.kind === 'approval')
  t.alike(
    [line?.rule, line?.peer, line?.sender, line?.recipient],
    ['policy.yaml:3: ask', owner.id, `operator@${owner.id}`, `text@${peer.id}`]
  )
})

test('a listener of an agent gets a waiting message once it is allowed, not before', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const heard: string[] = []
  createLayer(peer.core).router.onReceive('text', (envelope) => heard.push(envelope.type))
  const reply = callText(owner)
  await world.settle()
  t.alike(heard, [])
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  await reply
  t.alike(heard, ['request'])
})

test('a denied message does not run, its sender gets POLICY_DENIED with the rule', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const reply = callText(owner)
  await world.settle()
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.settle()
  const { outcome, error } = await reply
  t.alike(
    [outcome, error?.code, error?.data],
    ['FAILED', 'POLICY_DENIED', { rule: 'policy.yaml:3: ask', node: 'peer' }]
  )
  t.is(agent.tasks.length, 0)
  t.alike(
    approvalsOnRecord(peer),
    ['POLICY_DENIED: denied by operator: text.do'].map((text) => text)
  )
  t.is(peer.counted('messages_refused', 'POLICY_DENIED'), 1)
})

test('a request without a decision in time is denied with its own code', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const reply = callText(owner, { timeoutMs: 600_000 })
  await world.settle()
  await world.pass(299_000, 1000)
  t.is((await waitingOf(peer)).length, 1)
  await world.pass(1000)
  t.is((await reply).error?.code, 'APPROVAL_TIMEOUT')
  t.is(agent.tasks.length, 0)
  t.alike(await waitingOf(peer), [])
  t.alike(approvalsOnRecord(peer, 'refusal'), ['APPROVAL_TIMEOUT: nobody decided in time: text.do'])
})

test('the sender takes a request back by canceling, and when its own time is over', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t, ASK, echo('text'), { approvalTimeoutMs: 86_400_000 })
  const canceled = await callText(owner, { wait: false })
  await world.settle()
  await owner.api().call('tasks.cancel', { id: canceled.taskId ?? '' })
  await world.settle()
  t.alike(await waitingOf(peer), [])
  const late = callText(owner, { timeoutMs: 5000 })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  t.is((await peer.api().call('node.status', {})).approvals.waiting, 1)
  await world.pass(3_605_000, 2500)
  const { outcome, error } = await late
  t.alike(
    [outcome, error?.message, error?.data],
    ['UNKNOWN', 'nobody allowed it in time; it was taken back', { timeoutMs: 5000 }]
  )
  const { state, error: why } = await owner.api().call('tasks.show', { id: (await late).taskId ?? '' })
  t.alike([state, why?.message], ['unknown', 'nobody allowed it in time; it was taken back'], 'the task says so too')
  t.alike(await waitingOf(peer), [])
  t.is(agent.tasks.length, 0)
  t.alike(approvalsOnRecord(peer, 'refusal'), [
    'CANCELED: canceled by its sender: text.do',
    'CANCELED: canceled by its sender: text.do'
  ])
})

test('a peer cancels its own requests only', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const other = await world.member('other')
  await world.link(other, peer)
  forge(owner, peer, { payload: request('mine') })
  await world.settle()
  forgeControl(other, peer, { name: 'cancel', body: { requestId: 'mine#1' } })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
})

test('a sender that stays away is waited for no longer than a lease, and learns of it when it is back', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const reply = callText(owner, { timeoutMs: 600_000 })
  await world.settle()
  world.net.disconnect(owner.id, peer.id)
  await world.pass(4000)
  t.is((await waitingOf(peer)).length, 1, 'a short absence ends nothing')
  await world.pass(3000)
  t.alike(await waitingOf(peer), [])
  await world.link(owner, peer)
  await world.pass(2000)
  t.is((await reply).error?.code, 'PEER_OFFLINE')
  t.is(agent.tasks.length, 0)
})

test('a sender that is put out of the mesh leaves nothing that could be allowed', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const other = await world.member('other')
  await world.link(other, peer)
  forge(other, peer, { metadata: { tier: 1 } })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  await owner.api().call('peers.revoke', { peer: 'other' })
  await world.settle()
  t.alike(await waitingOf(peer), [])
  t.alike(approvalsOnRecord(peer, 'refusal'), ['REVOKED: its sender was put out of the mesh: text.do'])
  t.is(agent.tasks.length, 0)
})

test('a request that the rules refuse by the time it is allowed does not run', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const other = await world.member('other')
  await world.link(other, peer)
  forge(other, peer, { metadata: { tier: 1 } })
  await world.settle()
  await owner.api().call('peers.tier', { peer: 'other', tier: 2 })
  await world.settle()
  const id = await firstWaiting(peer)
  await failsWith(t, 'ESCALATION_REQUIRED', () => peer.api().call('approvals.allow', { id }))
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.alike(await waitingOf(peer), [])
})

test('an agent that changed while the message waited is not what was allowed', async (t) => {
  const { world, owner, peer } = await approvalScene(
    t,
    'rules:\n  - { to: { agent: text }, decision: ask }\n',
    echo('text')
  )
  const reply = owner.api().call('message.send', { agent: 'text@peer', text: 'x' })
  await world.settle()
  t.is((await waitingOf(peer))[0]?.capability, 'text.do')
  const other = echo('text', {
    capabilities: [{ id: 'text.wipe', name: 'wipe', description: '', inputSchema: {}, outputSchema: {} }]
  })
  peer.source.set([other])
  await world.pass(2000)
  const id = await firstWaiting(peer)
  await failsWith(t, 'POLICY_DENIED', () => peer.api().call('approvals.allow', { id }))
  await world.settle()
  t.is((await reply).error?.code, 'POLICY_DENIED')
  t.is(other.tasks.length, 0)
})

test('the same request sent again waits once, runs once, and every copy is answered', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const payload = request('twice')
  // The times that are left differ when it is sent again.
  for (const [at, correlationId] of ['one', 'two', 'three'].entries()) {
    const times = { timeoutMs: 9000 - at, approvalMs: 90_000 - at, ttlMs: 900_000 - at }
    forge(owner, peer, { payload: { ...payload, ...times }, correlationId, metadata: { tier: 0 } })
  }
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.is(agent.tasks.length, 1)
  t.is(peer.counted('messages_sent', 'response'), 3)
  forge(owner, peer, { payload, correlationId: 'four' })
  await world.settle()
  t.alike(await waitingOf(peer), [], 'a finished request is answered from memory, nobody is asked')
  t.is(agent.tasks.length, 1)
})

test('copies of a waiting request leave no exchange open, for any number of them and any decision', async (t) => {
  for (const decision of ['approvals.allow', 'approvals.deny'] as const) {
    const { world, owner, peer } = await approvalScene(t)
    const threads = Array.from({ length: 20 }, (_, index) => `thr_${index}`)
    // Each thread twice: the second is on one that hears of the decision already.
    for (const correlationId of [...threads, ...threads])
      forge(owner, peer, { payload: request('same'), correlationId, metadata: { tier: 0 } })
    await world.settle()
    await peer.api().call(decision, { id: await firstWaiting(peer) })
    await world.settle()
    await world.settle()
    t.alike(
      threads.filter((one) => isOpen(peer, { peer: owner.id, correlationId: one })),
      [],
      decision
    )
  }
})

test('a decision is taken once', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  void callText(owner)
  await world.settle()
  const id = await firstWaiting(peer)
  const api = peer.api()
  const both = await Promise.allSettled([
    api.call('approvals.allow', { id, remember: true }),
    api.call('approvals.deny', { id })
  ])
  await world.settle()
  t.alike(
    both.map((one) => (one.status === 'fulfilled' ? 'done' : (one.reason as NodeError).code)),
    ['done', 'APPROVAL_NOT_FOUND']
  )
  t.is(agent.tasks.length, 1)
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => api.call('approvals.allow', { id }))
})

test('--remember writes a rule for exactly this sender, agent and capability, before the rule that asked', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const first = callText(owner)
  await world.settle()
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer), remember: true })
  await world.settle()
  t.is((await first).outcome, 'COMPLETED')
  const [head = '', comment = '', rule = '', ...rest] = peer.policy.text.split('\n')
  t.is(`${head}\n${comment}\n${rest.join('\n')}`, ASK, 'all else stays as it was')
  t.ok(rule.startsWith('  - { from: { node: ') && rule.includes(`${owner.id}, agent: operator, tier: L0 }`), rule)
  t.ok(
    rule.includes(
      `to: { node: ${peer.id}, agent: text }, capability: text.do, type: request, sideEffect: exec, decision: allow } # `
    ),
    rule
  )
  const second = callText(owner)
  await world.settle()
  t.is((await second).outcome, 'COMPLETED', 'nobody is asked again')
  const other = await world.member('other')
  await world.link(other, peer)
  forge(other, peer, { metadata: { tier: 1 } })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1, 'another sender is asked about')
  t.is(agent.tasks.length, 2)
})

test('a remembered denial is refused at once from then on', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const first = callText(owner)
  await world.settle()
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer), remember: true })
  await world.settle()
  t.is((await first).error?.code, 'POLICY_DENIED')
  const second = callText(owner)
  await world.settle()
  t.is((await second).error?.code, 'POLICY_DENIED')
  t.alike((await second).error?.data, { rule: 'policy.yaml:3: deny', node: 'peer' })
})

test('a decision that cannot be remembered leaves the request waiting', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  void callText(owner)
  await world.settle()
  const id = await firstWaiting(peer)
  peer.policy.failure = new NodeError('DISK_FULL', 'no space left')
  await failsWith(t, 'DISK_FULL', () => peer.api().call('approvals.allow', { id, remember: true }))
  t.is((await waitingOf(peer)).length, 1)
  t.is(agent.tasks.length, 0)
  await peer.api().call('approvals.allow', { id })
  await world.settle()
  t.is(agent.tasks.length, 1)
})

test('a change of the policy lets go or refuses what it decides by itself now', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const allowed = callText(owner)
  await world.settle()
  peer.policy.write('rules: []')
  await world.settle()
  t.is((await allowed).outcome, 'COMPLETED')
  peer.policy.write(ASK)
  const denied = callText(owner)
  await world.settle()
  peer.policy.write('rules: [{ decision: deny }]')
  await world.settle()
  t.is((await denied).error?.code, 'POLICY_DENIED')
  t.is(agent.tasks.length, 1)
  peer.policy.write(ASK)
  const kept = callText(owner)
  await world.settle()
  peer.policy.write('rules: [{ decision: dunno }]')
  await world.settle()
  t.is((await waitingOf(peer)).length, 1, 'a broken file changes nothing')
  t.ok(
    (await peer.api().call('node.status', {})).problems.some(
      (one) => one.code === 'CONFIG_INVALID' && one.message.includes('policy.yaml:1')
    )
  )
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.settle()
  t.is((await kept).outcome, 'FAILED')
})

test('an agent of this very node waits as well, and so does a call of a weaker principal', async (t) => {
  const { world, peer, agent } = await approvalScene(t)
  const reply = peer.api({ name: 'page', tier: 3 }).call('message.call', {
    agent: 'text@peer',
    capability: 'text.do',
    input: {},
    justification: 'why not'
  })
  await world.settle()
  t.is(await taskState(peer), 'submitted approval')
  const [one] = await waitingOf(peer)
  t.alike([one?.from, one?.fromTier, one?.justification], ['operator@peer', 'L3', 'why not'])
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.is(agent.tasks.length, 1)
})

test('a notification waits too; a denial is not reported to its sender', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const sent = await owner.api().call('message.send', { agent: 'text@peer', text: 'hello', type: 'notification' })
  await world.settle()
  t.is(sent.outcome, 'COMPLETED')
  t.is(agent.tasks.length, 0)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.is(agent.tasks.length, 1)
  await owner.api().call('message.send', { agent: 'text@peer', text: 'again', type: 'notification' })
  await world.settle()
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.settle()
  t.is(agent.tasks.length, 1)
  t.is(peer.counted('messages_refused', 'POLICY_DENIED'), 1)
  t.is(peer.counted('messages_sent', 'error'), 0)
})

test('a peer may only say of its own requests that they wait', async (t) => {
  const { world, owner, peer } = await approvalScene(t, '')
  const other = await world.member('other', { agents: [echo('o')] })
  await world.link(owner, other)
  peer.source.set([])
  const { requestId } = await owner
    .api()
    .call('message.call', { agent: 'text@peer', capability: 'text.do', input: {}, wait: false })
  forgeControl(other, owner, { name: 'approval', body: { requests: [`${requestId}#1`] } })
  await world.settle()
  t.not((await taskState(owner)).split(' ')[1], 'approval')
})

test('decisions need the right to administer, looking does not', async (t) => {
  const { peer } = await approvalScene(t)
  const sender = peer.api({ scopes: ['read', 'send'] })
  t.alike(await sender.call('approvals.list', {}), { approvals: [], elsewhere: [] })
  await failsWith(t, 'FORBIDDEN', () => sender.call('approvals.allow', { id: 'app_1' }))
  await failsWith(t, 'FORBIDDEN', () => sender.call('approvals.deny', { id: 'app_1' }))
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => peer.api().call('approvals.allow', { id: 'app_nothing' }))
})
