import test from 'brittle'
import { SWARM_KEYS } from '../../../../src/domain/reliable/swarm-keys.js'
import { failsWith } from '../../../support/fails.js'
import { mapOf } from '../../../support/swarm-scene.js'
import { type Member, VotersScene } from '../../../support/voters-scene.js'

type Three = readonly [Member, Member, Member]

test('any participant may cancel a swarm: it asks the coordinator, and the swarm has ended when that has answered', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, , c] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  const asked = c.node.core.swarms.cancel(id, 'token ci')
  await scene.pass(2000)
  const info = await asked
  t.is(info.status, 'canceled')
  t.is(info.willBeCanceled, undefined)
  t.is((await scene.same(id)).status, 'canceled')
  t.is(await c.ledger.get(SWARM_KEYS.cancel(id)), null, 'the cancel request is gone with the end')
})

test('every participant says which node canceled a swarm, that node also which caller, and all still say so after a restart', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, , c] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  const asked = c.node.core.swarms.cancel(id, 'token ci')
  await scene.pass(2000)
  await asked
  const canceledBy = async (member: Member): Promise<unknown[]> => {
    const by = (await member.node.core.swarms.find(id)).info().canceledBy
    return [by?.node.id, by?.caller, Date.parse(by?.at ?? '') > 0]
  }
  const expected = (member: Member): unknown[] => [c.node.id, member === c ? 'token ci' : null, true]
  for (const member of scene.members) t.alike(await canceledBy(member), expected(member))
  for (const member of scene.members) await scene.kill(member)
  for (const member of scene.members) await scene.restart(member)
  for (const member of scene.members) t.alike(await canceledBy(member), expected(member), 'after a restart')
})

test('a coordinator that cancels a swarm itself names its caller everywhere, and a later request of another changes nothing', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, , c] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  const asked = a.node.core.swarms.cancel(id, 'operator')
  await scene.pass(2000)
  await asked
  await c.node.core.swarms.cancel(id, 'token late')
  for (const member of scene.members) {
    const by = (await member.node.core.swarms.find(id)).info().canceledBy
    t.alike([by?.node.id, by?.caller], [a.node.id, 'operator'])
  }
})

test('a swarm that is canceled while nobody coordinates it says so, and is canceled when a majority is back, also after a restart', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  await scene.kill(a)
  await scene.kill(b)
  await scene.pass(10_000, [c])
  t.is((await scene.info(c, id)).status, 'stalled')
  const info = await c.node.core.swarms.cancel(id, 'operator')
  t.alike([info.status, info.willBeCanceled, info.coordination?.coordinator], ['stalled', true, null])
  await scene.kill(c)
  await scene.restart(c)
  t.is((await scene.info(c, id)).willBeCanceled, true)
  await scene.restart(a)
  await scene.pass(30_000, [a, c])
  for (const member of [a, c]) {
    const { status, canceledBy } = await scene.info(member, id)
    t.alike([status, canceledBy?.node.id], ['canceled', c.node.id])
    if (member === c) t.is(canceledBy?.caller, 'operator')
  }
})

test('a coordinator that cancels a swarm and loses the lease before that is accepted has it canceled by the next one', async (t) => {
  const scene = await VotersScene.start(t)
  const [a] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(200))
  await scene.pass(2000)
  await scene.cut(a)
  const asked = a.node.core.swarms.cancel(id)
  await scene.pass(20_000)
  t.is((await asked).willBeCanceled, true)
  t.is((await scene.info(a, id)).status, 'stalled')
  await scene.link(a)
  await scene.pass(5000)
  t.is((await scene.same(id)).status, 'canceled')
})

test('the request to cancel a swarm is given up at its deadline: no coordinator is asked then, and no further request is accepted', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = scene.members as unknown as Three
  const id = await a.node.core.swarms.launch(mapOf(60, { deadlineMs: 30_000 }))
  await scene.pass(2000)
  await scene.kill(b)
  await scene.kill(c)
  await scene.pass(10_000, [a])
  t.is((await a.node.core.swarms.cancel(id)).willBeCanceled, true)
  await scene.pass(20_000, [a])
  t.is((await scene.info(a, id)).willBeCanceled, undefined)
  await failsWith(t, 'CONFLICT', () => a.node.core.swarms.cancel(id))
  await scene.restart(b)
  await scene.restart(c)
  await scene.pass(30_000)
  t.is((await scene.same(id)).status, 'partial', 'it has ended as every swarm whose time is over')
})
