import test from 'brittle'
import { decodeControl } from '../../../src/domain/channel/control.js'
import { approvalScene, callText, firstWaiting } from '../../support/approval-scene.js'
import type { FakeNode } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'

async function elsewhere(node: FakeNode) {
  return (await node.api().call('approvals.list', {})).elsewhere ?? []
}

test('the asking node lists each request that waits for a person at another node, until it is decided', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const reply = callText(owner)
  await world.settle()
  await world.pass(10_000, 1000)
  const id = await firstWaiting(peer)
  const [own] = (await peer.api().call('approvals.list', {})).approvals
  const [task] = (await owner.api().call('tasks.list', {})).tasks
  const [one, ...others] = await elsewhere(owner)
  t.alike(
    { ...one, node: one?.node.id, since: '', until: '' },
    {
      agent: 'text@peer',
      node: peer.id,
      capability: 'text.do',
      taskId: task?.id,
      swarm: null,
      since: '',
      id,
      until: ''
    }
  )
  t.is(others.length, 0)
  t.ok(Math.abs(Date.parse(one?.until ?? '') - Date.parse(own?.expiresAt ?? '')) <= 1000)
  t.ok(Math.abs(Date.parse(one?.since ?? '') - Date.parse(own?.askedAt ?? '')) <= 1000)
  t.alike(await elsewhere(peer), [], 'the approving node lists it as its own')
  await peer.api().call('approvals.allow', { id })
  await reply
  t.alike(await elsewhere(owner), [])
})

test('a watch of approvals reports when a request begins and ends to wait elsewhere', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const seen: number[] = []
  const watch = owner.api().watch('approvals.list', {})
  const reading = (async () => {
    for await (const item of watch) {
      seen.push(item.elsewhere?.length ?? 0)
      if (seen.length === 3) return
    }
  })()
  const reply = callText(owner)
  await world.settle()
  t.alike(seen, [0, 1])
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await reply
  await reading
  t.alike(seen, [0, 1, 0])
})

test('a request of a node to itself is listed once, as an approval of its own', async (t) => {
  const { world, peer } = await approvalScene(t)
  void callText(peer, { wait: false })
  await world.settle()
  const { approvals, elsewhere: others } = await peer.api().call('approvals.list', {})
  t.alike([approvals.length, others], [1, []])
})

test('an item of a swarm that waits for a person is listed with its swarm', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const { id } = await owner
    .api()
    .call('swarm.start', { strategy: 'map', goal: 'all', capability: 'text.do', items: [{ item: 'one', input: 1 }] })
  await world.pass(3000, 500)
  const [one] = await elsewhere(owner)
  t.alike([one?.swarm, one?.taskId, one?.node.id], [id, null, peer.id])
  await owner.api().call('swarm.cancel', { id })
  await world.settle()
  t.alike(await elsewhere(owner), [])
})

test('a report of an older build, without ids, is listed without them', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  void callText(owner)
  await world.settle()
  const [task] = (await owner.api().call('tasks.list', {})).tasks
  const [waiting] = (await peer.api().call('approvals.list', {})).approvals
  const { requestId } = await peer.api().call('approvals.show', { id: waiting?.id ?? '' })
  forgeControl(peer, owner, { name: 'approval', body: { requests: [`${requestId}#1`] } })
  await world.settle()
  const [one] = await elsewhere(owner)
  t.alike([one?.id, one?.until, one?.taskId], [null, null, task?.id])
})

test('ids that do not belong into a command, and times out of bounds, do not fit', (t) => {
  const body = (approval: unknown): unknown => ({ requests: ['r#1'], approvals: [approval] })
  t.ok(decodeControl('approval', body({ id: 'app_4k2m', leftMs: 1 })).ok)
  for (const id of ['', 'app_', 'app_a b', 'app_a;rm', 'app_$(x)', `app_${'a'.repeat(61)}`, 'x_a', 7, null])
    t.absent(decodeControl('approval', body({ id, leftMs: 1 })).ok, String(id))
  for (const leftMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e12, '1', null])
    t.absent(decodeControl('approval', body({ id: 'app_a', leftMs })).ok, String(leftMs))
  const many = Array.from({ length: 1001 }, () => ({ id: 'app_a', leftMs: 1 }))
  t.absent(decodeControl('approval', { requests: ['r#1'], approvals: many }).ok)
})
