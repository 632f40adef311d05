import test, { type Assert } from 'brittle'
import { WHOLE_ANSWER_MS } from '../../../src/node/gateway/task-intake.js'
import type { GatewayReply, GatewaySend } from '../../../src/ports/gateway.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { ALICE, gatewayOf, request, says, taskOf } from '../../support/gateway.js'

const ANSWER = { a2a: { message: 'hello' } }

async function scene(t: Assert) {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const gateway = await gatewayOf(t, await world.owner({ agents: [slow] }))
  const replies: GatewayReply[] = []
  const stream = async (more: Partial<GatewaySend> = {}, message = says('hi')): Promise<void> => {
    void gateway.send(ALICE, request(message, { mayAnswer: true, ...more })).then((reply) => replies.push(reply))
    await world.settle()
  }
  return { world, slow, gateway, replies, stream }
}

test('an answer that is one message ends a stream with that message, and once more when it is repeated', async (t: Assert) => {
  const { world, slow, replies, stream } = await scene(t)
  const message = says('hi')
  await stream({}, message)
  t.is(replies.length, 0, 'a stream waits for the first output')
  slow.finish(ANSWER)
  await world.settle()
  await stream({}, message)
  t.is(slow.tasks.length, 1)
  const [first, again] = replies.map((reply) => (reply.kind === 'message' ? reply.message : null))
  t.alike([first?.parts, first?.role, first?.taskId], [[{ text: 'hello' }], 'agent', undefined])
  t.ok(first?.contextId)
  t.alike(again, first)
})

test('a stream begins with a task once its agent reports, sends an artifact, asks or fails', async (t: Assert) => {
  const outputs: ((agent: FakeAgent) => void)[] = [
    (agent) => agent.open[0]?.run.progress('thinking'),
    (agent) => agent.open[0]?.run.progress({ a2a: { artifact: { artifactId: 'a', parts: [{ text: 'a' }] } } }),
    (agent) => agent.finish({ text: 'a plain result' }),
    (agent) => agent.finish({ a2a: { ...ANSWER.a2a, artifacts: [{ artifactId: 'a', parts: [{ text: 'a' }] }] } }),
    (agent) => agent.finish({ a2a: { state: 'input-required', message: 'Which?' } }),
    (agent) => agent.finish({ a2a: { state: 'rejected', message: 'No.' } })
  ]
  for (const [at, output] of outputs.entries()) {
    const { world, slow, gateway, replies, stream } = await scene(t)
    await stream()
    output(slow)
    await world.settle()
    const [reply] = replies
    if (reply === undefined) throw new Error(`no reply to output ${at}`)
    const { task, artifacts, history } = taskOf(reply)
    t.alike([artifacts.length, history.length], [0, 1], 'the output follows as events')
    const events: string[] = []
    const end = (async () => {
      for await (const { type } of gateway.follow(ALICE, task.id, { after: task.generation, untilRest: true }))
        events.push(type)
    })()
    if (at < 2) slow.finish(ANSWER)
    await world.settle()
    await end
    t.ok(events.length > 0)
  }
})

test('a stream begins with a task at once for a webhook, a task that goes on, and a client that asks for one', async (t: Assert) => {
  const { world, slow, replies, stream } = await scene(t)
  await stream({ mayAnswer: false })
  await stream({ push: { target: { url: 'https://example.com' }, version: '1.0' } })
  t.alike(
    replies.map(({ kind }) => kind),
    ['task', 'task']
  )
  slow.finish({ a2a: { state: 'input-required', message: 'Which?' } })
  await world.settle()
  const [reply] = replies
  await stream({}, says('this', { taskId: reply === undefined ? '' : taskOf(reply).task.id }))
  t.is(replies[2]?.kind, 'task')
})

test('a stream waits for the first output for two seconds, then begins with a task that can be canceled', async (t: Assert) => {
  const { world, gateway, replies, stream } = await scene(t)
  await stream()
  await world.pass(WHOLE_ANSWER_MS - 1)
  t.is(replies.length, 0)
  await world.pass(2)
  const [reply] = replies
  const id = reply === undefined ? '' : taskOf(reply).task.id
  const canceled = gateway.cancel(ALICE, id)
  await world.settle()
  t.is((await canceled).task.state, 'canceled')
})
