import test from 'brittle'
import { approvalScene, firstWaiting, waitingOf } from '../../support/approval-scene.js'
import { forge, request } from '../../support/forge.js'

/** Whoever says to be of the least tier is asked about. */
const ASK_WEAK = 'rules:\n  - decision: ask\n    from: {tier: L3}\n'
const weak = { tier: 3, justification: 'why' } as const

test('a query about a request that waits for a person gets the decision, and runs nothing', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  forge(owner, peer, { payload: request('same', { input: { n: 1 } }), correlationId: 'one', metadata: { tier: 0 } })
  await world.settle()
  forge(owner, peer, {
    payload: request('same', { input: null, isQuery: true }),
    correlationId: 'two',
    metadata: { tier: 0 }
  })
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  t.is(peer.counted('messages_sent', 'error'), 0, 'nobody is refused')
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.alike(
    agent.tasks.map(({ input }) => input),
    [{ n: 1 }]
  )
  t.is(peer.counted('messages_sent', 'response'), 2, 'both threads are answered')
})

test('a query about finished work needs no approval: it gets the outcome, and never a failure', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  forge(owner, peer, { payload: request('same'), correlationId: 'one', metadata: { tier: 0 } })
  await world.settle()
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  forge(owner, peer, {
    payload: request('same', { input: null, isQuery: true }),
    correlationId: 'two',
    metadata: { tier: 0 }
  })
  forge(owner, peer, {
    payload: request('never', { input: null, isQuery: true }),
    correlationId: 'three',
    metadata: { tier: 0 }
  })
  await world.settle()
  t.alike(await waitingOf(peer), [])
  t.is(peer.counted('messages_sent', 'response'), 3, 'an unknown request is answered as unknown')
  t.is(agent.tasks.length, 1)
})

test('a query that the rules let pass does not begin what waits for a person', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t, ASK_WEAK)
  forge(owner, peer, { payload: request('same', { input: { n: 1 } }), correlationId: 'one', metadata: weak })
  await world.settle()
  forge(owner, peer, {
    payload: request('same', { input: null, isQuery: true }),
    correlationId: 'two',
    metadata: { tier: 0 }
  })
  await world.settle()
  t.is(agent.tasks.length, 0)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.alike(
    agent.tasks.map(({ input }) => input),
    [{ n: 1 }]
  )
  t.is(peer.counted('messages_sent', 'response'), 1)
})
