import test, { type Assert } from 'brittle'
import type { RequestRecord } from '../../../src/domain/reliable/records.js'
import { DurableScene } from '../../support/durable-scene.js'
import type { FakeNode } from '../../support/fake-node.js'

async function recordAt({ core }: FakeNode): Promise<RequestRecord | undefined> {
  const [record] = await core.requestStore.lasting(1)
  return record
}

test('repeatable work that had begun, with its time over, ends as unknown at both ends: neither reports that nothing was done', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ timeoutMs: 30_000 })
  await scene.world.pass(1000)
  t.is(scene.runsOf(requestId), 1)
  await scene.crashPeer('', 60_000)
  await scene.link()
  await scene.world.pass(60_000, 1000)
  const { state, error } = await scene.task(taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.startsWith('it had begun'), error?.message)
  t.ok(error?.retryable, 'it may be repeated')
  const there = await recordAt(scene.peer)
  t.is(there?.status, 'unknown')
  t.ok(there?.error?.message.startsWith('it had begun'), there?.error?.message)
  t.is(scene.runsOf(requestId), 1, 'it is not begun again')
})

test('work begun before its node was killed and lost its disk is not reported as not done, when it comes too late a second time', (t) =>
  lateAgain(t, 'crashPeer'))

test('work begun before its node stopped and lost its disk is not reported as not done, when it comes too late a second time', (t) =>
  lateAgain(t, 'restartPeer'))

async function lateAgain(t: Assert, how: 'crashPeer' | 'restartPeer'): Promise<void> {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ timeoutMs: 30_000 })
  await scene.world.pass(1000)
  t.is(scene.runsOf(requestId), 1)
  scene.losePeersDisk()
  await scene[how]()
  await scene.link()
  await scene.world.pass(1000)
  const release = scene.hold('peer', 'next commit')
  await scene.world.pass(60_000, 1000)
  release()
  await scene.world.pass(60_000, 1000)
  const { state, error } = await scene.task(taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.includes('it may have begun'), error?.message)
}

test('unrepeatable work that waited for a place when its node was killed was not begun when its time is over', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask({ capability: 'slow.once' })
  const second = await scene.ask({ capability: 'slow.once', timeoutMs: 30_000 })
  await scene.world.pass(1000)
  t.is(scene.runsOf(second.requestId), 0)
  await scene.crashPeer('', 60_000)
  await scene.link()
  await scene.world.pass(60_000, 1000)
  const { state, error } = await scene.task(second.taskId)
  t.is(state, 'failed')
  t.ok(error?.message.includes('nothing was done'), error?.message)
})

test('repeatable work begins before that is on record, so it is not reported as not done when its node ended meanwhile', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask()
  const second = await scene.ask({ timeoutMs: 30_000 })
  await scene.world.pass(1000)
  await scene.crashPeer('', 60_000)
  await scene.link()
  await scene.world.pass(60_000, 1000)
  const { state, error } = await scene.task(second.taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.includes('it may have begun'), error?.message)
})

test('of a request of this very node that was with its agent nobody says after a restart that it was not sent', async (t) => {
  const scene = await DurableScene.start(t)
  const { peer } = scene
  const { taskId } = await peer.core.requests.ask({
    sender: { agentId: 'operator', nodeId: peer.id },
    target: { agentId: 'slow', nodeId: peer.id },
    capability: 'slow.again',
    input: {},
    description: '',
    timeoutMs: 30_000,
    mayQueue: true
  })
  await scene.world.pass(1000)
  await scene.crashPeer('', 60_000)
  await scene.world.pass(2000)
  const shown = (): Promise<{ state: string }> => scene.peer.api().call('tasks.show', { id: taskId ?? '' })
  t.is((await shown()).state, 'unknown')
  scene.finish()
  await scene.world.settle()
  t.is((await shown()).state, 'completed')
})

test('of a request that a stopping node gave back nobody says after a restart of its caller that nothing was sent', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ timeoutMs: 30_000 })
  await scene.world.pass(1000)
  await scene.restartPeer()
  await scene.link()
  t.is((await recordAt(scene.here))?.tries, 0, 'its node has given it back')
  await scene.crashHere()
  t.is(scene.runsOf(requestId), 1)
  await scene.world.pass(60_000, 1000)
  const { state, error } = await scene.task(taskId)
  t.alike([state, error?.message], ['failed', 'the node that had it was stopped, which ended the work'])
})

test('a run after a kill, or after a stop, is a further attempt of the same task, as both nodes show it, also after their restarts', async (t) => {
  for (const end of ['crashPeer', 'restartPeer'] as const) {
    const scene = await DurableScene.start(t)
    const { taskId, requestId } = await scene.ask()
    await scene.world.pass(1000)
    await scene[end]()
    await scene.link()
    await scene.world.pass(10_000, 1000)
    t.alike(
      scene.begun.map((one) => [one.requestId, one.attempt]),
      [
        [requestId, 1],
        [requestId, 2]
      ],
      end
    )
    t.is(scene.begun[0]?.taskId, scene.begun[1]?.taskId)
    const attempts = async (): Promise<number[]> => {
      const ids = [
        [scene.here, taskId],
        [scene.peer, scene.begun[0]?.taskId]
      ] as const
      return await Promise.all(
        ids.map(async ([node, id]) => (await node.api().call('tasks.show', { id: id ?? '' })).attempt)
      )
    }
    t.is((await attempts())[1], 2)
    scene.finish()
    await scene.world.settle()
    t.is((await scene.task(taskId)).state, 'completed')
    t.alike(await attempts(), [2, 2])
    await scene.crashHere()
    await scene.crashPeer()
    t.alike(await attempts(), [2, 2])
  }
})

test('a request that ended as unknown at a restart is in the list of tasks, then and after the next one', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.ask({ capability: 'slow.once' })
  await scene.world.pass(1000)
  const states = async (): Promise<string[]> =>
    (await scene.peer.api().call('tasks.list', {})).tasks.map(({ state }) => state)
  await scene.crashPeer()
  t.alike(await states(), ['unknown'])
  await scene.crashPeer()
  t.alike(await states(), ['unknown'])
})
