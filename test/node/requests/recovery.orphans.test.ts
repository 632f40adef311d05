import test from 'brittle'
import { encodePayload } from '../../../src/domain/envelope/codec.js'
import { rangeOf } from '../../../src/domain/reliable/keys.js'
import { chain } from '../../support/chain.js'
import { DurableScene } from '../../support/durable-scene.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'

/** The messages of lanes go from the ledger, as when a build before lost them: their requests stay. */
async function loseMessages({ ledger }: FakeNode): Promise<void> {
  const messages = await ledger.list({ ...rangeOf('out'), limit: 100 })
  const contents = await ledger.list({ ...rangeOf('out-content'), limit: 100 })
  await ledger.commit([...messages, ...contents].map(({ key }) => ({ key, value: null })))
}

async function problemCodes(node: FakeNode): Promise<string[]> {
  return (await node.api().call('node.status', {})).problems.map(({ code }) => code)
}

test('requests that a build before left without a message of a lane are asked for again after the start, once their node is linked', async (t) => {
  const scene = await DurableScene.start(t)
  const { world, peer } = scene
  // Sent into a link that is dead, so that nothing arrives.
  scene.here.core.peers.send = () => {}
  const [again, once] = [await scene.ask(), await scene.ask({ capability: 'slow.once' })]
  await scene.unlink()
  await scene.crashHere()
  await scene.here.core.close()
  await loseMessages(scene.here)
  scene.here = await world.start(scene.here.actor, { store: scene.here.store, ledger: scene.here.ledger })
  t.is(scene.here.core.lanes.waiting, 0, 'no lane has them')
  await scene.link()
  await world.pass(10_000, 1000)
  t.is(scene.runsOf(again.requestId), 1)
  scene.finish()
  await world.pass(2000, 1000)
  t.is((await scene.task(again.taskId)).state, 'completed')
  t.is((await scene.task(once.taskId)).state, 'unknown', 'it may not be repeated, so it was only asked after')
  t.is(scene.runsOf(once.requestId), 0)
  t.alike(await problemCodes(scene.here), [])
  t.is(peer.lines.length, 0)
})

test('a request that only the ledger knows is reported as an orphan, and sent again', async (t) => {
  const scene = await DurableScene.start(t)
  const { world, here } = scene
  await scene.unlink()
  const { requestId } = await scene.ask()
  const record = await here.core.requestStore.asked(requestId)
  if (record === null) throw new Error('it is not recorded')
  // The same request under another id, as a fault of this node could leave it: no part of the process has it.
  const orphan = { ...record, requestId: 'req_orphan', taskId: 'task_orphan', correlationId: 'thr_orphan', tries: 1 }
  await here.ledger.commit(here.core.requestStore.changes(null, orphan, { input: encodePayload({ a: 1 }) }))
  t.alike(await problemCodes(here), [])
  await world.pass(125_000, 5000)
  t.alike(await problemCodes(here), ['REQUEST_ORPHANED'])
  t.ok(here.core.events.recent().some(({ data }) => data['code'] === 'REQUEST_ORPHANED'))
  await scene.link()
  await world.pass(30_000, 1000)
  t.is(scene.runsOf('req_orphan'), 1)
  await world.pass(125_000, 5000)
  t.alike(await problemCodes(here), [], 'it waits now')
  t.is(scene.runsOf(requestId), 1)
})

test('a submitted task names what it waits for: a path, the acknowledgement, a place of its agent', async (t) => {
  const agent = new FakeAgent(agentDefinition('text', { concurrency: 1 }))
  const { world, a, b, c } = await chain(t, { agent })
  const ask = async (): Promise<string> => {
    const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1, wait: false })
    await world.settle()
    return (await reply).taskId ?? ''
  }
  const waitsFor = async (id: string): Promise<string> => {
    const { state, waitingFor } = await a.api().call('tasks.show', { id })
    return `${state} ${waitingFor}`
  }
  const first = await ask()
  await world.pass(1000)
  t.is(await waitsFor(first), 'working null')
  const second = await ask()
  t.is(await waitsFor(second), 'submitted slot')
  for (const link of b.links.open) if (link.peer === c.id) link.isHeld = true
  const third = await ask()
  t.is(await waitsFor(third), 'submitted ack')
  for (const [one, other] of [
    [a, b],
    [b, c]
  ] as const)
    world.net.disconnect(one.id, other.id)
  const fourth = await ask()
  await world.pass(3000)
  t.is(await waitsFor(fourth), 'submitted peer')
  t.is(await waitsFor(third), 'submitted peer')
})

test('a request that its lane still delivers is not sent again for the silence of its node, also after a restart of its caller', async (t) => {
  const scene = await DurableScene.start(t)
  const release = scene.hold('peer', 'now')
  const { taskId, requestId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.pass(20_000, 1000)
  t.is(scene.here.core.lanes.waiting, 1, 'one message of it')
  await scene.crashHere()
  await scene.link()
  await scene.world.pass(20_000, 1000)
  t.is(scene.here.core.lanes.waiting, 1)
  release()
  await scene.world.pass(10_000, 1000)
  t.is(scene.runsOf(requestId), 1)
  scene.finish()
  await scene.world.pass(2000, 1000)
  t.is((await scene.task(taskId)).state, 'completed')
})

test('a request is asked for again once while its node says nothing, and not again before that message arrives', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  const { taskId, requestId } = await scene.ask()
  await world.settle()
  t.is(scene.runsOf(requestId), 1)
  const { peers } = peer.core
  const send = peers.send.bind(peers)
  peers.send = () => {}
  await world.pass(60_000, 1000)
  t.is(here.core.lanes.waiting, 1)
  peers.send = send
  await world.pass(70_000, 1000)
  t.is(here.core.lanes.waiting, 0)
  scene.finish()
  await world.pass(2000, 1000)
  t.is((await scene.task(taskId)).state, 'completed')
  t.is(scene.runsOf(requestId), 1)
})
