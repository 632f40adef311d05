import test, { type Assert } from 'brittle'
import type { SwarmEvent } from '../../../src/ports/swarm-api.js'
import { approvalScene, firstWaiting, taskState, waitingOf } from '../../support/approval-scene.js'
import type { ApprovalScene } from '../../support/approval-scene.js'
import { forgeControl } from '../../support/forge.js'

/** Launches a swarm of two items for `text@peer`, whose node asks a person about each, and lets its leases arrive. */
async function launched(t: Assert): Promise<ApprovalScene & { id: string; events: SwarmEvent[] }> {
  const scene = await approvalScene(t)
  const { owner, world } = scene
  const events: SwarmEvent[] = []
  const items = ['a', 'b'].map((item) => ({ item, input: { n: item } }))
  const id = await owner.core.swarms.launch({
    goal: 'g',
    capability: 'text.do',
    strategy: 'map',
    items,
    maxParallel: 1
  })
  owner.core.swarms.get(id).follow((event) => events.push(event))
  await world.settle()
  await world.pass(1000)
  return { ...scene, id, events }
}

function waits(events: readonly SwarmEvent[]): unknown[] {
  return events.flatMap((one) => (one.type === 'waiting' ? [[one.item, one.agent, one.waitingFor]] : []))
}

test('an item whose lease waits for a person of its node is shown as waiting, not as worked on', async (t) => {
  const { world, owner, peer, id, events, agent } = await launched(t)
  t.is((await waitingOf(peer)).length, 1)
  t.alike(waits(events), [['a', 'text@peer', 'approval']])
  const { running, waitingForApproval } = await owner.api().call('swarm.show', { id })
  t.alike([running, waitingForApproval], [0, 1])
  t.is(await taskState(owner), 'submitted approval')
  await world.pass(20_000)
  t.is(
    events.filter(({ type }) => type === 'lease').length,
    1,
    'the lease lives, as its node goes on to say that it waits'
  )
  t.alike(waits(events).length, 1, 'reported once')
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.pass(1000)
  t.is(agent.tasks.length, 1)
  t.alike(waits(events).at(-1), ['b', 'text@peer', 'approval'], 'the next one waits in its turn')
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.pass(1000)
  t.is((await owner.api().call('swarm.show', { id })).status, 'completed')
  t.is(await taskState(owner), 'completed null')
})

test('once its node works on it the item is worked on, and only that node can say so', async (t) => {
  const { world, owner, peer, id, events } = await launched(t)
  const key = `${id}.0#1`
  const other = await world.member('other')
  await world.link(owner, other)
  forgeControl(other, owner, { name: 'heartbeat', body: { requests: [key] } })
  await world.settle()
  t.is((await owner.api().call('swarm.show', { id })).waitingForApproval, 1)
  forgeControl(peer, owner, { name: 'heartbeat', body: { requests: [key] } })
  await world.settle()
  t.alike(waits(events).at(-1), ['a', 'text@peer', null])
  const { running, waitingForApproval } = await owner.api().call('swarm.show', { id })
  t.alike([running, waitingForApproval], [1, 0])
  t.is(await taskState(owner), 'working null')
})
