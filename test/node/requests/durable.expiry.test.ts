import test from 'brittle'
import type { Asked } from '../../../src/node/requests/caller/requests.js'
import { DurableScene } from '../../support/durable-scene.js'

/** A request that is on its way over a link of which nobody has noticed yet that it is dead. */
async function askedInVain(scene: DurableScene, capability: string): Promise<Asked> {
  // The peer has said what its ledger is called.
  await scene.ask()
  await scene.world.pass(1000)
  scene.finish()
  await scene.world.settle()
  const { peers } = scene.here.core
  const { send } = peers
  peers.send = () => {}
  const asked = await scene.ask({ capability, timeoutMs: 6000 })
  await scene.world.pass(4000)
  peers.send = send
  await scene.unlink()
  await scene.world.pass(4000)
  return asked
}

for (const capability of ['slow.again', 'slow.once']) {
  test(`a queued request (${capability}) that did not get there in its time is not begun when its node is back, and has failed`, async (t) => {
    const scene = await DurableScene.start(t)
    const { taskId, requestId } = await askedInVain(scene, capability)
    t.is((await scene.task(taskId)).state, 'unknown', 'it may have got there')
    await scene.link()
    await scene.world.pass(120_000, 1000)
    t.is(scene.runsOf(requestId), 0)
    const { state, error } = await scene.task(taskId)
    t.is(state, 'failed')
    t.is(error?.code, 'PEER_OFFLINE')
    t.ok(error?.message.includes('nothing was begun'), error?.message)
  })
}

test('a request reported as never begun is not sent after a crash of its caller at that moment', async (t) => {
  const scene = await DurableScene.start(t)
  scene.here.core.peers.send = () => {}
  const { taskId, requestId } = await scene.ask({ capability: 'slow.once', timeoutMs: 85 })
  const state = async (): Promise<string> => (await scene.task(taskId)).state
  for (let step = 0; step < 1000 && (await state()) !== 'failed'; step++) await scene.world.pass(10, 10)
  t.is(await state(), 'failed')
  await scene.crashHere()
  await scene.link()
  await scene.world.pass(10_000, 100)
  t.is(scene.runsOf(requestId), 0)
  t.is(await state(), 'failed')
})

test('of a request that may have got to a disk that is lost since nobody says that nothing was begun', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await askedInVain(scene, 'slow.once')
  scene.losePeersDisk()
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(120_000, 1000)
  t.is((await scene.task(taskId)).state, 'unknown')
})

test('a request that got there although its node could not say so is no failure', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.ask()
  await scene.world.pass(1000)
  scene.finish()
  await scene.world.settle()
  const { peers } = scene.peer.core
  peers.send = () => {}
  const { taskId, requestId } = await scene.ask({ capability: 'slow.once', timeoutMs: 6000 })
  await scene.world.pass(4000)
  t.is(scene.runsOf(requestId), 1)
  await scene.unlink()
  await scene.world.pass(4000)
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(120_000, 1000)
  t.is((await scene.task(taskId)).state, 'unknown')
})

test('a request that waits for a place of its agent is not begun when its time is over', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask()
  const late = await scene.ask({ timeoutMs: 6000 })
  await scene.world.pass(10_000, 1000)
  scene.finish()
  await scene.world.pass(5000)
  t.is(scene.runsOf(late.requestId), 0)
  t.is((await scene.task(late.taskId)).state, 'failed')
})
