import test from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import { DurableScene } from '../../../support/durable-scene.js'

test('an end in one commit with a refusal for lack of space, before or behind it, is the end', async (t) => {
  for (const isFirst of [true, false]) {
    const scene = await DurableScene.start(t)
    const { taskId, requestId, correlationId } = await scene.ask()
    await scene.world.settle()
    const { requestStore: book, exchanges: conversations, lanes, requests } = scene.here.core
    const { source, target } = (await book.ofTasks(taskId ?? ''))[0]
    const header = { id: 'msg_1', schemaVersion: 1, timestamp: 0, sender: target, recipient: source, correlationId }
    const done = { requestId, attempt: 1, outcome: 'COMPLETED', result: 'done', error: null }
    const replies = [
      {
        peer: scene.peer.id,
        header: { ...header, type: 'error' as const },
        payload: new NodeError('OVERLOADED', 'no room').toBody()
      },
      { peer: scene.peer.id, header: { ...header, type: 'response' as const }, payload: done }
    ]
    if (!isFirst) replies.reverse()
    await lanes.commit(replies.flatMap((one) => requests.recordReply(one).changes))
    t.is((await book.ofTasks(taskId ?? ''))[0].status, 'completed')
    const thread = {
      sender: { agentId: 'operator', nodeId: scene.here.id },
      recipient: { agentId: 'slow', nodeId: scene.peer.id },
      correlationId
    }
    for (const one of replies) conversations.deliver(thread, one.header, one.payload)
    await scene.world.settle()
    t.is((await book.ofTasks(taskId ?? ''))[0].status, 'completed', 'it is not put back')
    t.is(requests.waitingCount(), 0)
    t.is((await scene.task(taskId)).result, 'done')
  }
})

test('the data of an error from a peer is kept with it only while it is short', async (t) => {
  for (const [data, kept] of [
    [{ rule: 'one' }, { rule: 'one' }],
    ['x'.repeat(1024 * 1024), undefined]
  ]) {
    const scene = await DurableScene.start(t)
    const { taskId, correlationId } = await scene.ask()
    await scene.world.settle()
    const { requestStore: book, lanes, requests } = scene.here.core
    const { source, target } = (await book.ofTasks(taskId ?? ''))[0]
    const header = { id: 'msg_1', schemaVersion: 1, timestamp: 0, sender: target, recipient: source, correlationId }
    const payload = { code: 'TASK_FAILED', message: 'no luck', data }
    await lanes.commit(
      requests.recordReply({ peer: scene.peer.id, header: { ...header, type: 'error' as const }, payload }).changes
    )
    const { error } = (await book.ofTasks(taskId ?? ''))[0]
    t.is(error?.message, 'no luck')
    t.alike(error?.data, kept)
  }
})
