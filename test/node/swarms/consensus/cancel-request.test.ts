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
  const asked = c.node.core.swarms.cancel(id)
  await scene.pass(2000)
  const info = await asked
  t.is(info.status, 'canceled')
  t.is(info.willBeCanceled, undefined)
  t.is((await scene.same(id)).status, 'canceled')
  t.is(await c.ledger.get(SWARM_KEYS.cancel(id)), null, 'the cancel request is gone with the end')
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
  const info = await c.node.core.swarms.cancel(id)
  t.alike([info.status, info.willBeCanceled, info.coordination?.coordinator], ['stalled', true, null])
  await scene.kill(c)
  await scene.restart(c)
  t.is((await scene.info(c, id)).willBeCanceled, true)
  await scene.restart(a)
  await scene.pass(30_000, [a, c])
  t.is((await scene.same(id, [a, c])).status, 'canceled')
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
