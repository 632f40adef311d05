import test, { type Assert } from 'brittle'
import type { Asked } from '../../../../src/node/requests/caller/requests.js'
import { DurableScene } from '../../../support/durable-scene.js'

/** A request that is canceled while the answer to it is written. */
async function canceledAtItsAnswer(t: Assert): Promise<{ scene: DurableScene; asked: Asked; release: () => void }> {
  const scene = await DurableScene.start(t)
  // The lane of the answers is open.
  await scene.ask()
  await scene.world.pass(1000)
  scene.finish()
  await scene.world.pass(1000)
  const asked = await scene.ask()
  await scene.world.pass(1000)
  const release = scene.hold('here', 'now')
  scene.finish()
  await scene.world.settle()
  asked.cancel()
  await scene.world.settle()
  return { scene, asked, release }
}

test('a request that is canceled while its answer is written ends by that answer', async (t) => {
  const { scene, asked, release } = await canceledAtItsAnswer(t)
  t.is(scene.here.core.tasks.get(asked.taskId ?? '')?.state, 'working', 'nothing is reported before it is durable')
  release()
  await scene.world.settle()
  t.is((await asked.answer).outcome, 'COMPLETED')
  t.is((await scene.task(asked.taskId)).state, 'completed')
})

test('a request that is canceled while its answer is written ends as canceled when the disk refuses the answer, once it has space', async (t) => {
  const { scene, asked, release } = await canceledAtItsAnswer(t)
  scene.fill('here', true)
  release()
  await scene.world.settle()
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'CANCELED')
  scene.fill('here', false)
  await scene.world.pass(20_000, 1000)
  await scene.crashHere()
  await scene.link()
  await scene.world.pass(20_000, 1000)
  t.is((await scene.task(asked.taskId)).state, 'canceled')
})
