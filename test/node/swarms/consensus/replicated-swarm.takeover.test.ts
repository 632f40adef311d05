import test, { type Assert } from 'brittle'
import { sizeOf } from '../../../../src/kit/size.js'
import type { ReplicatedSwarm } from '../../../../src/node/swarms/consensus/replicated-swarm.js'
import { mapOf } from '../../../support/swarm-scene.js'
import { type Member, VotersScene } from '../../../support/voters-scene.js'

test('the launcher is killed for good mid-swarm: another participant finishes it, and the third has the same results', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(30))
  await scene.pass(3000)
  const before = await scene.info(a, id)
  t.is(before.coordination?.coordinator, 'owner')
  t.ok((before.running ?? 0) > 0)
  t.is((await scene.info(b, id)).running, null, 'a follower knows of no leases')
  t.ok(b.node.core.swarms.participants.has(c.node.id), 'while they vote their link is in use')
  t.ok(before.counts.completed > 0 && before.counts.completed < 30, `${before.counts.completed} done`)
  const told = (await a.node.core.swarms.find(id)).results().results
  await scene.kill(a)
  const rest = [b, c]
  await scene.pass(60_000, rest)
  for (const member of rest) {
    const { status, counts } = await scene.info(member, id)
    t.is(status, 'completed')
    t.is(counts.completed, 30)
  }
  t.absent(b.node.core.swarms.participants.has(c.node.id))
  const results = (await b.node.core.swarms.find(id)).results()
  t.alike(results, (await c.node.core.swarms.find(id)).results())
  for (const one of told)
    t.alike(
      results.results.find(({ item }) => item === one.item),
      one,
      'reported text stays'
    )
})

test('after a takeover the displayed number is that of the attempt, not of the lease', async (t) => {
  const scene = await VotersScene.start(t)
  const [a] = scene.members as [Member]
  const id = await a.node.core.swarms.launch(mapOf(12))
  const [next, other] = scene.rest(id)
  await scene.pass(1500)
  await scene.kill(a)
  await scene.pass(60_000, [next, other])
  const { past, stop } = (await next.node.core.swarms.find(id)).follow(() => {})
  stop()
  const told = past.flatMap((event) => (event.type === 'lease' || event.type === 'item' ? [event.attempt] : []))
  t.ok(told.length > 12)
  t.alike([...new Set(told)], [1])
  t.alike([...new Set((await scene.same(id, [next, other])).results.map(({ attempt }) => attempt))], [1])
})

test('unrepeatable work continues at the remaining nodes: only runs on the lost launcher end as unknown', async (t) => {
  // It ends before anybody takes over, or long after.
  for (const runsMs of [0, 60_000]) {
    const scene = await VotersScene.start(t)
    const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
    const id = await a.node.core.swarms.launch(mapOf(12, { capability: 'work.once' }))
    await scene.pass(1500)
    const runs = [a, b, c].map(({ agent }) => agent.open.length)
    t.alike(runs, [1, 1, 1], 'each has a run')
    await scene.kill(a)
    await scene.world.pass(runsMs, 500)
    t.is(b.agent.open.length + c.agent.open.length, 2, `a begun run continues after ${runsMs} ms`)
    await scene.pass(90_000, [b, c])
    const { status, results } = await scene.same(id, [b, c])
    t.is(status, 'partial')
    t.is(results.filter((one) => one.status === 'unknown').length, 1)
    t.is(results.filter((one) => one.status === 'completed').length, 11)
    t.is(new Set(scene.begun).size, scene.begun.length, 'none was begun twice')
  }
})

test('an item that failed for the earlier coordinator is leased to no other, and a run for it that is no longer wanted is stopped', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(3, { capability: 'work.once' }))
  await scene.world.pass(1500, 500)
  const [failing, lasting] = scene.rest(id)
  const [run] = failing.agent.open
  await scene.kill(a)
  run?.end({ ok: false, code: 'TASK_FAILED', message: 'it did not work' })
  await scene.world.pass(40_000, 500)
  t.is(lasting.agent.open.length, 1)
  const unknown = (await scene.rows(b, id)).filter((one) => one.status === 'unknown').map(({ error }) => error?.message)
  t.ok(unknown.includes('it did not work'), unknown.join())
  await c.node.core.swarms.cancel(id)
  await scene.world.pass(10_000, 500)
  t.is(lasting.agent.open.length, 0, 'it was stopped')
})

test('a new coordinator without the right to query unrepeatable work leases it to no other: it ends as unknown', async (t) => {
  for (const whose of ['its own rules', 'those of the agent'] as const) {
    const scene = await VotersScene.start(t)
    const [a] = scene.members as [Member, Member, Member]
    const id = await a.node.core.swarms.launch(mapOf(12, { capability: 'work.once' }))
    const [next, other] = scene.rest(id)
    await scene.pass(1500)
    const leased = other.agent.open.map(({ task }) => task.requestId)
    t.is(leased.length, 1)
    if (whose === 'its own rules')
      next.node.policy.write(`rules:\n  - { to: { node: ${other.node.id} }, decision: deny }\n`)
    else other.node.policy.write(`rules:\n  - { from: { node: ${next.node.id} }, decision: deny }\n`)
    await scene.kill(a)
    await scene.pass(90_000, [next, other])
    const { results } = await scene.same(id, [next, other])
    const [row] = results.filter(({ item }) => leased.includes(`${id}.${item.slice('item '.length)}`))
    t.alike([row?.status, row?.error?.code], ['unknown', 'POLICY_DENIED'], whose)
    t.is(new Set(scene.begun).size, scene.begun.length, 'none was begun twice')
  }
})

test('an isolated coordinator has nothing accepted any more, for any results of its own agent; when it is back it has the results of the others', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(40))
  await scene.pass(2000)
  await scene.cut(a)
  const before = (await scene.rows(a, id)).length
  await scene.pass(5500)
  t.is((await scene.rows(a, id)).length, before, 'not while its lease lasts')
  await scene.pass(8000)
  t.is((await scene.rows(a, id)).length, before, 'nor after it')
  t.is((await scene.info(a, id)).status, 'stalled')
  const elsewhere = await scene.info(b, id)
  t.ok(elsewhere.counts.completed > before, 'the majority goes on')
  t.is((await scene.info(c, id)).coordination?.coordinator, elsewhere.coordination?.coordinator)
  await scene.link(a)
  await scene.pass(60_000)
  const { status, results } = await scene.same(id)
  t.is(status, 'completed')
  t.is(results.length, 40)
  t.is(a.node.core.tasks.list().find(({ kind }) => kind === 'swarm')?.state, 'completed', 'its task is done, too')
})

test('a worker does not begin what a coordinator of a lower epoch leases', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(40))
  await scene.pass(1000)
  await scene.cut(a)
  await scene.pass(8000, [b, c])
  t.ok(((await scene.info(c, id)).coordination?.epoch ?? 0) > 1)
  await scene.link(a)
  const begun = scene.begun.length
  const ask = async (epoch: number): Promise<string> => {
    const asked = await a.node.core.requests.ask({
      sender: { agentId: 'operator', nodeId: a.node.id },
      target: { agentId: 'w', nodeId: c.node.id },
      capability: 'work.again',
      input: 1,
      description: '',
      timeoutMs: 1000,
      mayQueue: false,
      lease: { swarm: id, epoch, requestId: `${id}.39`, attempt: epoch, isQuery: false, changes: () => [] }
    })
    const answer = scene.world.pass(2000).then(() => asked.answer)
    const { outcome, ...rest } = await answer
    return 'error' in rest ? rest.error.code : outcome
  }
  t.is(await ask(1), 'CONFLICT')
  t.absent(scene.begun.slice(begun).includes(`${id}.39`))
})

test('a participant that lost its disk votes only when it has learned what it may have promised; the swarm goes on, and all have the same', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(40))
  await scene.pass(2000)
  await scene.kill(c)
  await scene.restart(c, true)
  await scene.pass(2000)
  t.is((await scene.info(a, id)).coordination?.coordinator, 'owner')
  t.is((await scene.info(c, id)).coordination?.epoch, 0, 'it has granted nothing yet')
  await scene.pass(8000)
  await scene.kill(a)
  await scene.pass(60_000, [b, c])
  const { status, results } = await scene.same(id, [b, c])
  t.is(status, 'completed', 'with the launcher gone, that vote was needed')
  t.is(results.length, 40)
})

test('the launcher comes back when all is over: it has the end and the results that the others have', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(12))
  await scene.pass(1500)
  await scene.kill(a)
  await scene.pass(40_000, [b, c])
  await scene.restart(a)
  await scene.pass(3000)
  const { status, results } = await scene.same(id)
  t.is(status, 'completed')
  t.is(results.length, 12)
  t.ok((await scene.info(a, id)).counts.completed === 12)
})

test('a node that was away at the end, and has records of forgotten leases, gets the end from nodes that were restarted since', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(12, { capability: 'work.once' }))
  await scene.pass(1500)
  t.ok((await scene.info(c, id)).counts.completed > 0)
  await scene.cut(c)
  await scene.pass(1000, [a, b])
  const cancelled = a.node.core.swarms.cancel(id)
  await scene.pass(2000, [a, b])
  await cancelled
  for (const one of [a, b]) {
    await scene.kill(one)
    await scene.restart(one)
  }
  await scene.link(c)
  await scene.pass(5000)
  t.is((await scene.same(id)).status, 'canceled')
})

test('a new coordinator reports no accepted result before it is durable there', async (t) => {
  // A majority stores what was accepted without the node that takes over.
  const scene = await VotersScene.start(t, ['b', 'c', 'd', 'e'])
  const a = scene.at(0)
  const id = await a.node.core.swarms.launch(mapOf(60))
  const [next] = scene.rest(id)
  const others = scene.members.filter((one) => one !== a && one !== next)
  await scene.pass(1000)
  // It has missed what was accepted.
  await scene.cut(next)
  await scene.pass(2500, [a, ...others])
  const { ledger } = next
  const commit = ledger.commit.bind(ledger)
  let go = (): void => {}
  let isHeld = false
  const gate = new Promise<void>((resolve) => (go = resolve))
  ledger.commit = async (changes) => {
    const isRecord = typeof changes !== 'function' && changes.some(({ key }) => key.startsWith('swarm-record/'))
    if (isRecord) {
      isHeld = true
      await gate
    }
    await commit(changes)
  }
  const before = (await scene.rows(next, id)).length
  await scene.kill(a)
  await scene.link(next)
  for (let left = 60; left > 0 && !isHeld; left--) await scene.world.pass(500)
  t.ok(isHeld, 'it takes over')
  await scene.world.pass(3000, 500)
  t.is((await scene.rows(next, id)).length, before)
  go()
  await scene.world.pass(2000, 500)
  t.ok((await scene.rows(next, id)).length > before, 'now it reports them')
  await scene.pass(60_000, [next, ...others])
  t.is((await scene.same(id, [next, ...others])).status, 'completed')
})

test('a participant keeps the newest hundred swarms in memory; its ledger has all others', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b] = [scene.at(0), scene.at(1)]
  const ids: string[] = []
  for (let at = 0; at < 103; at++) {
    ids.push(await a.node.core.swarms.launch(mapOf(1)))
    await scene.pass(1500)
  }
  await scene.pass(3000)
  const [first = ''] = ids
  for (const member of [a, b]) {
    t.is(member.node.core.swarms.list().length, 100)
    t.is((await scene.info(member, first)).status, 'completed')
  }
  t.is((await scene.same(first, [a, b])).results.length, 1)
})

test('a participant that has learned again what it lost votes after its next start as one that never lost it', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(150))
  await scene.pass(2000)
  await scene.kill(c)
  await scene.restart(c, true)
  await scene.pass(12_000)
  t.is((await scene.info(c, id)).coordination?.epoch, 1, 'it has learned')
  t.is((await scene.info(c, id)).status, 'running')
  await scene.kill(c)
  await scene.kill(a)
  await scene.restart(c)
  await scene.pass(90_000, [b, c])
  t.is((await scene.same(id, [b, c])).status, 'completed', 'with the launcher gone, that vote was needed')
})

test('a swarm without a majority is let go when all that is known of it expires', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(30))
  await scene.pass(2000)
  const { head } = (await b.node.core.swarms.find(id)) as unknown as { readonly head: { readonly expiresAt: number } }
  await scene.kill(a)
  await scene.kill(c)
  await scene.pass(10_000, [b])
  t.is((await scene.info(b, id)).status, 'stalled')
  await b.node.core.swarms.purgeExpired(head.expiresAt - 1)
  t.is((await scene.info(b, id)).status, 'stalled')
  await b.node.core.swarms.purgeExpired(head.expiresAt)
  t.is((await scene.info(b, id)).status, 'failed')
  t.absent(b.node.core.swarms.participants.has(c.node.id), 'it is no participant of it any more')
  t.alike(
    (await b.ledger.list({ from: 'swarm', to: 'swarn', limit: 10 })).map(({ key }) => key),
    []
  )
})

test('a node that cannot read the accepted results leaves it to another to coordinate', async (t) => {
  const scene = await VotersScene.start(t)
  const [a] = scene.members as [Member, Member, Member]
  const id = await a.node.core.swarms.launch(mapOf(40))
  const { head } = (await a.node.core.swarms.find(id)) as unknown as {
    readonly head: { readonly voters: readonly string[] }
  }
  await scene.pass(2000)
  const next = scene.members.find(({ node }) => node.id === head.voters[1]) ?? a
  const rest = scene.members.filter((one) => one !== a)
  const { ledger } = next
  const get = ledger.get.bind(ledger)
  ledger.get = (key) => (key.startsWith('swarm-result/') ? Promise.resolve(null) : get(key))
  await scene.kill(a)
  await scene.pass(40_000, rest)
  ledger.get = get
  await scene.pass(40_000, rest)
  t.is((await scene.same(id, rest)).status, 'completed')
  t.is((await scene.info(next, id)).coordination?.epoch, 3, 'the second that took over')
})

test('a new coordinator that waits for content which no node can give, though one had it, lets another try', (t) =>
  inVain(t, 'one'))

test('a new coordinator that waits for content which no node can give, though a majority had it, lets another try', (t) =>
  inVain(t, 'a majority'))

/** Outcomes that were accepted can be read by nobody who is there; `whose` disks have them. */
async function inVain(t: Assert, whose: 'one' | 'a majority'): Promise<void> {
  const scene = await VotersScene.start(t)
  const [a] = scene.members as [Member, Member, Member]
  const id = await a.node.core.swarms.launch(mapOf(30))
  const [next, other] = scene.rest(id)
  await scene.pass(1000)
  // It has missed what was accepted.
  await scene.cut(next)
  await scene.pass(2500, [a, other])
  const mended = [hide(other)]
  await scene.kill(a)
  await scene.link(next)
  await scene.pass(10_000, [next, other])
  const { epoch = 0 } = (await scene.info(other, id)).coordination ?? {}
  t.is((await scene.info(other, id)).coordination?.coordinator, next.node.name)
  if (whose === 'a majority') {
    mended.push(hide(a))
    await scene.restart(a)
  }
  await scene.pass(45_000, [next, other])
  t.is((await scene.info(other, id)).coordination?.epoch, epoch, 'it waits for a while')
  await scene.pass(30_000, [next, other])
  const after = (await scene.info(next, id)).coordination
  t.ok((after?.epoch ?? 0) > epoch, 'not for ever')
  t.not(after?.coordinator, next.node.name, 'another tries')
  const { past, stop } = (await next.node.core.swarms.find(id)).follow(() => {})
  stop()
  const told = past.flatMap((event) => (event.type === 'status' ? [event.reason ?? ''] : []))
  t.ok(
    told.some((reason) => reason.includes('all that they accepted before')),
    'and says why'
  )
  for (const mend of mended) mend()
  const all = whose === 'one' ? [next, other] : scene.members
  await scene.pass(200_000, all)
  t.is((await scene.same(id, all)).status, 'completed', 'it goes on once somebody can')
}

/** Outcomes on its disk cannot be read; they can again when the mend is called. */
function hide({ ledger }: Member): () => void {
  const get = ledger.get.bind(ledger)
  ledger.get = (key) => (key.startsWith('swarm-result/') ? Promise.reject(new Error('a bad block')) : get(key))
  return () => void (ledger.get = get)
}

test('a swarm is as large as the outcomes that a node has of it, from any coordinator', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(30))
  await scene.pass(3000)
  await scene.kill(a)
  await scene.pass(60_000, [b, c])
  const expected = (await scene.same(id, [b, c])).results.reduce(
    (sum, { result, error }) => sum + sizeOf(result) + sizeOf(error),
    0
  )
  t.ok(expected > 0)
  for (const { node } of [b, c]) t.is(((await node.core.swarms.find(id)) as ReplicatedSwarm).bytes, expected)
})

test('a swarm of two nodes, or one with --no-takeover, has no voters: its launcher alone coordinates it', async (t) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const pinned = await a.node.core.swarms.launch(mapOf(3, { takeover: false }))
  await scene.pass(3000)
  t.is((await scene.info(a, pinned)).status, 'completed')
  t.is((await scene.info(a, pinned)).coordination, undefined)
  await scene.cut(c)
  const small = await a.node.core.swarms.launch(mapOf(3))
  await scene.pass(3000)
  t.is((await scene.info(a, small)).status, 'completed')
  t.alike(b.node.core.swarms.list(), [])
})
