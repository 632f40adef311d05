import test from 'brittle'
import { KEYS } from '../../../../src/domain/reliable/keys.js'
import { DurableScene } from '../../../support/durable-scene.js'

test('an outcome that could not be asked for, since the input could not be read, is asked for later', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await scene.ask({ timeoutMs: 5000 })
  // Until it is off the lane.
  await scene.world.pass(1000)
  scene.losePeersDisk()
  await scene.crashPeer()
  await scene.crashHere()
  const { requestStore: book, lanes } = scene.here.core
  const record = (await book.ofTasks(taskId ?? ''))[0]
  if (record === null) return t.fail('it is on record')
  const key = KEYS.input(book.name(record))
  const value = await book.input(book.name(record))
  await lanes.commit([{ key, value: null }])
  await scene.link()
  await scene.world.pass(60_000, 1000)
  t.is((await scene.task(taskId)).state, 'unknown')
  t.is(scene.begun.length, 1)
  await lanes.commit([{ key, value }])
  await scene.world.pass(60_000, 1000)
  t.is(scene.begun.length, 2, 'it is asked for, and its node does it')
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).state, 'completed')
})

test('a request that waits as long as anybody can name is one that its node takes', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await scene.ask({ timeoutMs: 30 * 86_400_000 })
  await scene.world.settle()
  t.is(scene.begun.length, 1)
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).state, 'completed')
})

test('a request of this very node whose time is over begins anew once the full disk that prevented it has space', async (t) => {
  const scene = await DurableScene.start(t)
  const { id: nodeId, core } = scene.peer
  const { requestId, taskId } = await core.requests.ask({
    sender: { agentId: 'operator', nodeId },
    target: { agentId: 'slow', nodeId },
    capability: 'slow.again',
    input: {},
    description: '',
    timeoutMs: 60_000,
    mayQueue: false
  })
  await scene.world.settle()
  const { clock } = scene.world
  clock.setNow(clock.now() + 70_000)
  scene.fill('peer', true)
  await scene.crashPeer()
  await scene.world.pass(1000, 100)
  t.is((await scene.peer.api().call('tasks.show', { id: taskId ?? '' })).state, 'unknown')
  t.is(scene.runsOf(requestId), 1)
  scene.fill('peer', false)
  await scene.world.pass(60_000, 1000)
  t.is(scene.runsOf(requestId), 2)
  scene.finish()
  await scene.world.settle()
  t.is((await scene.peer.api().call('tasks.show', { id: taskId ?? '' })).state, 'completed')
})
