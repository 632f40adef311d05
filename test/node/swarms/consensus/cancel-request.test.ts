import test, { type Assert } from 'brittle'
import type { SwarmInfo } from '../../../../src/ports/swarm-api.js'
import { FIRST_RULES } from '../../../../src/adapters/storage/policy/policy-file.js'
import { SWARM_KEYS } from '../../../../src/domain/reliable/swarm-keys.js'
import { failsWith } from '../../../support/fails.js'
import { mapOf } from '../../../support/swarm-scene.js'
import { type Member, VotersScene } from '../../../support/voters-scene.js'

type Three = readonly [Member, Member, Member]

/** Three participants of a running swarm that the first one launched; by default its nodes share everything. */
async function running(
  t: Assert,
  ...nodes: [names?: readonly string[], rules?: { policy: string; mine: readonly string[] }]
): Promise<{ scene: VotersScene; members: Three; id: string }> {
  const scene = await VotersScene.start(t, ...nodes)
  const members = scene.members as unknown as Three
  const id = await members[0].node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  return { scene, members, id }
}

/** A participant cancels a swarm for a caller of its API, and has the answer of the coordinator. */
async function cancel(scene: VotersScene, { node }: Member, ...of: [id: string, caller?: string]): Promise<SwarmInfo> {
  const asked = node.core.swarms.cancel(...of)
  await scene.pass(2000)
  return await asked
}

test('any participant may cancel a swarm: it asks the coordinator, and the swarm has ended when that has answered', async (t) => {
  const { scene, members, id } = await running(t)
  const [, , c] = members
  const info = await cancel(scene, c, id, 'token ci')
  t.is(info.status, 'canceled')
  t.is(info.willBeCanceled, undefined)
  t.is((await scene.same(id)).status, 'canceled')
  t.is(await c.ledger.get(SWARM_KEYS.cancel(id)), null, 'the cancel request is gone with the end')
})

test('every participant says which node canceled a swarm, that node also which caller, and all still say so after a restart', async (t) => {
  const { scene, members, id } = await running(t)
  const [, , c] = members
  await cancel(scene, c, id, 'token ci')
  const canceledBy = async (member: Member): Promise<unknown[]> => {
    const by = (await member.node.core.swarms.find(id)).info().canceledBy
    return [by?.node.id, by?.caller, Date.parse(by?.at ?? '') > 0]
  }
  const expected = (member: Member): unknown[] => [c.node.id, member === c ? 'token ci' : null, true]
  for (const member of scene.members) {
    t.alike(await canceledBy(member), expected(member))
    t.alike(
      member.node.audit.of('control').map(({ code, reason, by }) => [code, reason, by]),
      [['swarm-canceled', member === c ? `${id} by token ci` : id, c.node.id]]
    )
  }
  for (const member of scene.members) await scene.kill(member)
  for (const member of scene.members) await scene.restart(member)
  for (const member of scene.members) t.alike(await canceledBy(member), expected(member), 'after a restart')
})

test('a coordinator that cancels a swarm itself names its caller everywhere, and a later request of another changes nothing', async (t) => {
  const { scene, members, id } = await running(t)
  const [a, , c] = members
  await cancel(scene, a, id, 'operator')
  await c.node.core.swarms.cancel(id, 'token late')
  for (const member of scene.members) {
    const by = (await member.node.core.swarms.find(id)).info().canceledBy
    t.alike([by?.node.id, by?.caller], [a.node.id, 'operator'])
  }
})

test('a swarm that is canceled while nobody coordinates it says so, and is canceled when a majority is back, also after a restart', async (t) => {
  const { scene, members, id } = await running(t)
  const [a, b, c] = members
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

/** The launcher a, the guest g and the second machine m of the launcher's person, each with the rules of a new home. */
function guestScene(t: Assert): ReturnType<typeof running> {
  return running(t, ['g', 'm'], { policy: FIRST_RULES, mine: ['m'] })
}

test('a guest of the launcher cannot cancel its swarm, by its id or its task; a machine of its person can', async (t) => {
  const { scene, members, id } = await guestScene(t)
  const [a, g, m] = members
  const { taskId } = g.node.core.swarms.get(id).head
  await failsWith(t, 'FORBIDDEN', () => g.node.core.swarms.cancel(id))
  await failsWith(t, 'FORBIDDEN', () => g.node.core.swarms.cancelTask(taskId))
  t.is(await g.ledger.get(SWARM_KEYS.cancel(id)), null)
  await scene.pass(1000)
  t.is((await scene.info(a, id)).status, 'running')
  t.is((await cancel(scene, m, id)).status, 'canceled')
  t.is((await scene.same(id)).status, 'canceled')
})

test('the coordinator ignores a guest that asks to cancel all the same, and heeds a machine of its person', async (t) => {
  const { scene, members, id } = await guestScene(t)
  const [a, g, m] = members
  const says = async (from: Member): Promise<void> => {
    a.node.core.swarms.participants.onWord(from.node.id, { name: 'swarm', body: { kind: 'cancel', swarm: id } })
    await scene.pass(500)
  }
  await says(g)
  t.is((await scene.info(a, id)).status, 'running')
  await says(m)
  t.is((await scene.info(a, id)).status, 'canceled')
})

test('when the launcher is gone, a guest cannot cancel its swarm at any coordinator, and the trust of the log decides', async (t) => {
  const { scene, members, id } = await guestScene(t)
  const [a, g, m] = members
  await scene.kill(a)
  const rest = [g, m]
  await scene.pass(15_000, rest)
  t.ok(
    [g, m].some(
      ({ node }) =>
        node.core.swarms.inMemory(id)?.info().coordination?.coordinator === node.core.directory.ref(node.id).name
    )
  )
  await failsWith(t, 'FORBIDDEN', () => g.node.core.swarms.cancel(id))
  await m.node.api().call('peers.trust', { peer: 'g', trust: 'mine' })
  const asked = g.node.core.swarms.cancel(id)
  await scene.pass(3000, rest)
  t.is((await asked).status, 'canceled')
  t.is((await scene.same(id, rest)).status, 'canceled')
})

test('a request to cancel is void while its node is a guest of the launcher', async (t) => {
  const { scene, members, id } = await guestScene(t)
  const [a, , m] = members
  await scene.cut(m)
  const asked = m.node.core.swarms.cancel(id)
  await scene.pass(6000)
  t.is((await asked).willBeCanceled, true)
  await a.node.api().call('peers.trust', { peer: 'm', trust: 'guest' })
  t.is((await scene.info(m, id)).willBeCanceled, undefined)
  await scene.link(m)
  await scene.pass(2000)
  t.is((await scene.info(a, id)).status, 'running')
})
