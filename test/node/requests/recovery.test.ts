import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import { encodePayload } from '../../../src/domain/envelope/codec.js'
import { KEYS, rangeOf } from '../../../src/domain/reliable/keys.js'
import type { RequestRecord } from '../../../src/domain/reliable/records.js'
import type { Asked } from '../../../src/node/requests/caller/requests.js'
import { NodeError } from '../../../src/kit/errors.js'
import { DurableScene, type MortalLedger } from '../../support/durable-scene.js'
import type { FakeLog } from '../../support/fake-log.js'
import type { FakeNode } from '../../support/fake-node.js'
import { type Actor, actor, cardBody } from '../../support/membership.js'
import { madeChanges } from '../../support/ledger-changes.js'

const DENY = 'rules:\n  - capability: slow.*\n    decision: deny\n'

async function recordsOf({ core }: FakeNode): Promise<string[]> {
  const records = await core.requestStore.lasting(10)
  return records.map(({ capability, status, error }: RequestRecord) => `${capability} ${status} ${error?.code}`).sort()
}

/** The log changes, and nothing that the peer's process makes of it gets to its disk any more. */
function learnsWhileDown({ peer, world: { log } }: DurableScene, change: (of: FakeLog) => void): void {
  const ledger = peer.ledger as MortalLedger
  ledger.killIn(0, false, () => {})
  change(log)
  log.changed()
}

test('requests of members removed while this node was down end: none of them runs, and they are not looked at again', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask({ capability: 'slow.once' })
  await scene.ask({ capability: 'slow.again' })
  await scene.world.settle()
  t.is(scene.begun.length, 1)
  await scene.unlink()
  learnsWhileDown(scene, ({ model }) => model.revoke(actor('owner'), scene.here.actor))
  await scene.crashPeer()
  t.alike(await recordsOf(scene.peer), ['slow.again failed REVOKED', 'slow.once unknown TIMEOUT'])
  t.ok(scene.peer.audit.rules().includes('sender: a member'))
  t.is(scene.begun.length, 1)
})

test('a request that its sender may no longer ask for ends at the start of the node, and is not tried at each', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask({ capability: 'slow.once' })
  const { taskId } = await scene.ask({ capability: 'slow.again' })
  await scene.world.settle()
  await scene.unlink()
  const { world } = scene
  const owner = actor('owner')
  learnsWhileDown(scene, (log) => {
    const before = log.view().members.get(scene.here.id)?.certificate.body
    if (before !== undefined)
      log.model.recertify(owner, {
        ...before,
        maxTier: 3,
        serial: before.serial + 1,
        issuer: owner.id,
        issuedAt: world.clock.now()
      })
  })
  await scene.crashPeer()
  t.alike(await recordsOf(scene.peer), ['slow.again failed ESCALATION_REQUIRED', 'slow.once unknown TIMEOUT'])
  t.alike(scene.peer.links.strikes, [])
  await scene.link()
  await world.pass(60_000, 1000)
  t.is((await scene.task(taskId)).state, 'failed', 'its caller gets the outcome when it asks again')
})

test('a request whose sender never sends its card is given up when its time is over', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask({ capability: 'slow.again' })
  await scene.ask({ capability: 'slow.again', timeoutMs: 60_000 })
  await scene.world.settle()
  await scene.unlink()
  const { world } = scene
  // No other card of it comes either.
  world.log.isWritable = false
  learnsWhileDown(scene, ({ model }) => model.uncard(scene.here.actor, 'operator', 2))
  await scene.crashPeer()
  t.alike(await recordsOf(scene.peer), ['slow.again pending undefined', 'slow.again started undefined'])
  await world.pass(62_000, 1000)
  t.alike(await recordsOf(scene.peer), ['slow.again failed FORBIDDEN', 'slow.again started undefined'])
  t.is(scene.begun.length, 1)
})

test('while one request is read slowly, others that wait for the card of their sender are not forgotten', async (t) => {
  const scene = await DurableScene.start(t)
  const { world } = scene
  const other = await world.member('other')
  await world.link(other, scene.peer)
  await scene.ask()
  await world.settle()
  await world.pass(10)
  const sender = { agentId: 'operator', nodeId: other.id }
  const late = await other.core.requests.ask({
    sender,
    target: { agentId: 'slow', nodeId: scene.peer.id },
    capability: 'slow.again',
    input: { a: 1 },
    description: '',
    timeoutMs: 600_000,
    mayQueue: true
  })
  await world.settle()
  world.net.disconnect(other.id, scene.peer.id)
  await other.core.close()
  await scene.unlink()
  world.log.isWritable = false
  learnsWhileDown(scene, ({ model }) =>
    [scene.here.actor, other.actor].forEach((of) => model.uncard(of, 'operator', 2))
  )
  await scene.crashPeer()
  t.is(scene.begun.length, 2, 'both began before')
  const { ledger } = scene.peer
  const { get } = ledger
  let go: () => void = () => {}
  const wait = new Promise<void>((resolve) => (go = resolve))
  ledger.get = async (key) => {
    if (key.startsWith('request-in/')) await wait
    return await get(key)
  }
  // The card of the one comes, and what it asked is being read; that of the other comes later.
  const comes = (of: Actor): void => {
    world.log.model.card(of, cardBody('operator', { revision: 3 }))
    world.log.changed()
  }
  comes(scene.here.actor)
  await world.pass(5000, 500)
  go()
  await world.settle()
  t.is(scene.begun.length, 3)
  t.is(scene.runsOf(late.requestId), 1)
  comes(other.actor)
  await world.pass(5000, 500)
  t.is(scene.runsOf(late.requestId), 2)
})

test('a node starts though a record is damaged: it says so, that request ends as unknown, and the others go on', async (t) => {
  const scene = await DurableScene.start(t)
  const [bad, good] = [await scene.ask(), await scene.ask()]
  await scene.world.pass(3000)
  await scene.unlink()
  const { requestStore: book } = scene.peer.core
  for await (const record of book.pending()) {
    const key = KEYS.request(book.name(record))
    // A word that there is not, in the place of who asks.
    if (record.requestId === bad.requestId) await scene.peer.ledger.commit([{ key, value: new Uint8Array([1, 9, 9]) }])
  }
  await scene.crashPeer()
  t.ok(scene.peer.lines.some((line) => line.includes('damaged')))
  t.alike([scene.runsOf(bad.requestId), scene.runsOf(good.requestId)], [1, 2])
  await scene.link()
  await scene.world.pass(30_000, 1000)
  t.is((await scene.task(bad.taskId)).state, 'unknown')
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(good.taskId)).state, 'completed')
})

test('a request without an end when its node stopped is shown as ended once that is on disk, not while the disk is full', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  scene.fill('peer', true)
  await scene.crashPeer()
  const shown = async (): Promise<string[]> => {
    const { tasks } = await scene.peer.api().call('tasks.list', {})
    return tasks.map(({ capability, state }) => `${capability} ${state}`)
  }
  t.alike(await shown(), [])
  await scene.world.pass(5000, 500)
  t.alike([await shown(), await recordsOf(scene.peer)], [[], ['slow.once started undefined']])
  scene.fill('peer', false)
  await scene.world.pass(5000, 500)
  t.alike([await shown(), await recordsOf(scene.peer)], [['slow.once unknown'], ['slow.once unknown TIMEOUT']])
})

test('work that a removed peer may have begun stays unknown for good, and a request that never left this node has failed', async (t) => {
  const scene = await DurableScene.start(t)
  const { world } = scene
  const begun = await scene.ask({ capability: 'slow.once' })
  const repeatable = await scene.ask()
  await world.settle()
  await scene.crashPeer()
  await scene.link()
  await world.pass(10_000, 1000)
  await scene.unlink()
  const kept = await scene.ask()
  await world.settle()
  world.log.model.revoke(actor('owner'), scene.peer.actor)
  world.log.changed()
  await world.pass(5000, 1000)
  for (const again of [false, true]) {
    if (again) await scene.crashHere()
    await world.pass(5000, 1000)
    const ends = await Promise.all([begun, repeatable, kept].map(({ taskId }) => scene.task(taskId)))
    t.alike(
      ends.map(({ state, error }) => [state, error?.code]),
      [
        ['unknown', 'PEER_OFFLINE'],
        ['unknown', 'PEER_OFFLINE'],
        ['failed', 'PEER_OFFLINE']
      ],
      again ? 'also after a restart' : ''
    )
    t.is(ends[0]?.error?.retryable, false)
  }
})

test('a request that ended while it waited to be taken up after a start stays as it ended', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.ask({ timeoutMs: 60_000 })
  await scene.world.settle()
  await scene.unlink()
  const { world } = scene
  // It waits for its sender's card, which does not come, until its deadline.
  world.log.isWritable = false
  learnsWhileDown(scene, ({ model }) => model.uncard(scene.here.actor, 'operator', 2))
  await scene.crashPeer()
  const { core, ledger } = scene.peer
  const [record] = await core.requestStore.lasting(1)
  assert(record !== undefined)
  // As after a run in that time.
  const changes = core.requestStore.changes(record, { ...record, status: 'completed' }, { result: encodePayload(null) })
  await ledger.commit(changes)
  await world.pass(62_000, 1000)
  t.alike(await recordsOf(scene.peer), ['slow.again completed undefined'])
})

test('an unknown outcome stays unknown, for any number of starts and any later rule', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(10_000, 1000)
  t.is((await scene.task(taskId)).state, 'unknown')
  for (const policy of [DENY, DENY.replace('deny', 'ask')]) {
    await scene.crashPeer(policy)
    await scene.link()
    t.alike((await scene.peer.api().call('approvals.list', {})).approvals, [])
    await scene.world.pass(400_000, 5000)
    t.alike(await recordsOf(scene.peer), ['slow.once unknown TIMEOUT'])
    t.is((await scene.task(taskId)).state, 'unknown')
  }
})

test('an answer that could not be recorded before its caller was put out leaves no lane behind', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  await scene.ask()
  await world.settle()
  const { ledger } = peer
  const commit = ledger.commit.bind(ledger)
  ledger.commit = (given) => {
    const changes = madeChanges(given)
    return changes.some(({ key }) => key.startsWith('request-out/'))
      ? Promise.reject(new NodeError('DISK_FULL', 'full'))
      : commit(changes)
  }
  scene.finish()
  await world.settle()
  world.log.model.revoke(actor('owner'), here.actor)
  world.log.changed()
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  ledger.commit = commit
  await world.pass(60_000, 1000)
  for (const kind of ['lane-out', 'out', 'out-content'])
    t.alike(await ledger.list({ ...rangeOf(kind), limit: 10 }), [], kind)
  t.alike(await recordsOf(peer), ['slow.again completed undefined'], 'how it ended is on record all the same')
})

test('a request that waits for a removed node is gone with the next start, when this one ended before', async (t) => {
  const scene = await DurableScene.start(t)
  const { peer, world } = scene
  await scene.ask()
  await world.settle()
  await scene.unlink()
  scene.finish()
  await world.settle()
  t.is(peer.core.lanes.waiting, 1)
  learnsWhileDown(scene, ({ model }) => model.revoke(actor('owner'), scene.here.actor))
  await scene.crashPeer()
  await world.settle()
  t.is(scene.peer.core.lanes.waiting, 0)
  for (const kind of ['lane-out', 'out', 'out-content'])
    t.alike(await scene.peer.ledger.list({ ...rangeOf(kind), limit: 10 }), [], kind)
})

test('a node starts though the record of a waiting message is damaged: it reports that, and later messages arrive', async (t) => {
  const scene = await DurableScene.start(t)
  scene.here.core.peers.send = () => {}
  const [bad, good] = [await scene.ask(), await scene.ask()]
  const [first] = await scene.here.ledger.list({ ...rangeOf('out'), limit: 1 })
  await scene.here.ledger.commit([{ key: first?.key ?? '', value: new Uint8Array([1, 9, 9]) }])
  await scene.crashHere()
  t.ok(scene.here.lines.some((line) => line.includes('damaged')))
  await scene.link()
  await scene.world.pass(30_000, 1000)
  t.is(scene.runsOf(good.requestId), 1)
  t.is(scene.runsOf(bad.requestId), 0)
})

test('a node starts though the record of a lane is damaged: it says so, and the lane goes on behind what its receiver has', (t) =>
  damagedLane(t, { arrived: 3, waiting: 0 }))

test('messages on a lane with a damaged record arrive, with later ones', (t) =>
  damagedLane(t, { arrived: 0, waiting: 1 }))

async function damagedLane(
  t: Assert,
  { arrived, waiting }: { readonly arrived: number; readonly waiting: number }
): Promise<void> {
  const scene = await DurableScene.start(t, { concurrency: 9 })
  const { world, here } = scene
  for (let count = 0; count < arrived; count++) {
    await scene.ask()
    await world.pass(3000)
  }
  here.core.peers.send = () => {}
  const asked: Asked[] = []
  for (let count = 0; count < waiting; count++) asked.push(await scene.ask())
  const { ledger } = here
  t.is((await ledger.list({ ...rangeOf('out'), limit: 9 })).length, waiting)
  const [lane] = await ledger.list({ ...rangeOf('lane-out'), limit: 1 })
  await ledger.commit([{ key: lane?.key ?? '', value: new Uint8Array([1]) }])
  await scene.crashHere()
  t.ok(scene.here.lines.some((line) => line.includes('the record of a lane is damaged')))
  asked.push(await scene.ask())
  await scene.link()
  asked.push(await scene.ask())
  await world.pass(30_000, 1000)
  t.alike(
    asked.map(({ requestId }) => scene.runsOf(requestId)),
    asked.map(() => 1)
  )
}

test('a clock that is set forward for a while, and back, takes nothing away before its time; one that stays does', async (t) => {
  const scene = await DurableScene.start(t)
  const { world } = scene
  await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  const isThere = async (): Promise<boolean> => (await recordsOf(scene.peer)).length > 0
  const pass = (): Promise<void> => world.pass(600_000, 10_000)
  scene.peersSkewMs = 30 * 24 * 3_600_000
  await pass()
  t.ok(await isThere())
  scene.peersSkewMs = 0
  await pass()
  await pass()
  t.ok(await isThere())
  scene.peersSkewMs = 30 * 24 * 3_600_000
  await pass()
  t.ok(await isThere())
  await pass()
  t.absent(await isThere())
})
