import test, { type Assert } from 'brittle'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { Message } from '../../../src/domain/gateway/message.js'
import type { InProcessReply } from '../../../src/node/agents/in-process-agents.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { AgentRun, AgentTask } from '../../../src/ports/agent-runtime.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { failsWith } from '../../support/fails.js'
import { capability, echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { isOpen } from '../../support/exchanges.js'

async function pair(t: Assert): Promise<{ world: World; here: FakeNode; peer: FakeNode }> {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  return { world, here, peer }
}

test('a program has a signed card that every node knows, until it is closed', async (t) => {
  const { world, here, peer } = await pair(t)
  const agent = await here.core.attach({
    id: 'bot',
    description: 'A program.',
    tier: 2,
    capabilities: [capability('bot.do')],
    run: () => 1
  })
  t.is(agent.address, `bot@${here.id}`)
  await world.settle()
  const card = peer.core.registry.getByAddress(agent.address)
  t.is(card?.description, 'A program.')
  t.is(card?.tier, 2)
  t.alike(
    (await peer.api().call('agents.list', {})).agents.map((one) => one.address),
    ['bot@here']
  )
  await agent.close()
  await agent.close()
  await world.settle()
  t.absent(peer.core.registry.getByAddress(agent.address))
})

test('notifications go to the program with a way to answer, and back again', async (t) => {
  const { world, here, peer } = await pair(t)
  const heard: A2AEnvelope[] = []
  const bot = await here.core.attach({ id: 'bot', onMessage: (message) => heard.push(message) })
  const echoed = await peer.core.attach({
    id: 'echo',
    onMessage: (message, reply) => void reply({ heard: message.payload })
  })
  await world.settle()
  const sent = await bot.send({ recipient: echoed.address, type: 'notification', payload: 'hi' })
  await world.settle()
  t.is(heard.length, 1)
  t.is(heard[0].type, 'notification')
  t.is(heard[0].sender, echoed.address)
  t.is(heard[0].correlationId, sent.id)
  t.alike(heard[0].payload, { heard: 'hi' })
  t.alike(here.audit.events, [])
})

test('a request to a program that runs tasks is queued, checked and answered like any other', async (t) => {
  const { world, here, peer } = await pair(t)
  const doubled = capability('bot.double', {
    inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
  })
  await here.core.attach({
    id: 'bot',
    capabilities: [doubled],
    run: (task) => ({ n: (task.input as { n: number }).n * 2 })
  })
  await world.settle()
  const reply = peer.api().call('message.call', { agent: 'bot@here', capability: 'bot.double', input: { n: 21 } })
  await world.settle()
  t.alike((await reply).payload, { n: 42 })
  const refused = peer.api().call('message.call', { agent: 'bot@here', capability: 'bot.double', input: { n: 'x' } })
  await world.settle()
  t.is((await refused).error?.code, 'INVALID_INPUT')
})

test('an error of a program is the failure of its task; an abort reaches it', async (t) => {
  const { world, here, peer } = await pair(t)
  let aborted = false
  await here.core.attach({
    id: 'bot',
    capabilities: [capability('bot.fail'), capability('bot.wait')],
    run: (task, run) => {
      if (task.capability === 'bot.fail') throw new Error('no luck')
      return new Promise((resolve) => {
        run.signal.addEventListener('abort', () => {
          aborted = true
          resolve(null)
        })
      })
    }
  })
  await world.settle()
  const failed = peer.api().call('message.call', { agent: 'bot@here', capability: 'bot.fail', input: {} })
  await world.settle()
  t.is((await failed).error?.message, 'no luck')
  const { taskId } = await peer
    .api()
    .call('message.call', { agent: 'bot@here', capability: 'bot.wait', input: {}, wait: false })
  await world.settle()
  await peer.api().call('tasks.cancel', { id: taskId ?? '' })
  await world.settle()
  t.ok(aborted)
})

test('a result of a program without a JSON form is the failure of its task, and a report of that kind is none', async (t) => {
  const world = new World(t)
  const here = await world.owner()
  const gateway = new TaskService(here.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const circle: { self?: unknown } = {}
  circle.self = circle
  const given: readonly unknown[] = [5n, { a: [circle] }]
  const run = ({ input }: AgentTask, { progress }: AgentRun): unknown => {
    for (const report of given) progress(report)
    return given[(input as { at: number }).at] ?? { bytes: new Uint8Array(2) }
  }
  await here.core.attach({ id: 'bot', capabilities: [capability('bot.do')], run })
  await world.settle()
  const by: Principal = {
    kind: 'token',
    name: 'token test',
    id: 'tok_a',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send']
  }
  const states: string[] = []
  for (const at of [0, 1, 2]) {
    const message: Message = { messageId: `m${at}`, role: 'user', parts: [{ data: { at } }] }
    const sent = gateway.send(by, { message, agent: 'bot', skill: null, mayAnswer: false, wait: true })
    await world.settle()
    const reply = await sent
    if (reply.kind === 'task') states.push(`${reply.snapshot.task.state} after ${reply.snapshot.task.generation}`)
  }
  t.alike(states, ['failed after 3', 'failed after 3', 'completed after 4'])
})

test('a program without tasks answers requests itself', async (t) => {
  const { world, here, peer } = await pair(t)
  let answer: InProcessReply = () => Promise.resolve()
  await here.core.attach({ id: 'bot', onMessage: (_message, reply) => (answer = reply) })
  await world.settle()
  const reply = peer.api().call('message.send', { agent: 'bot@here', text: 'what?' })
  await world.settle()
  await answer({ that: 'is it' })
  await world.settle()
  t.alike((await reply).payload, { that: 'is it' })
  await failsWith(t, 'TIER_VIOLATION', () => answer('twice'))
})

test('a program sends requests to others and receives their replies, until the last one', async (t) => {
  const { world, here, peer } = await pair(t)
  peer.source.set([echo('text')])
  const heard: A2AEnvelope[] = []
  const bot = await here.core.attach({ id: 'bot', onMessage: (message) => heard.push(message) })
  await world.settle()
  const payload = { requestId: 'req_1', attempt: 1, capability: 'text.do', input: { a: 1 } }
  const sent = await bot.send({ recipient: 'text@peer', type: 'request', payload })
  await world.settle()
  t.is(heard.length, 1)
  t.is(heard[0].type, 'response')
  t.is(heard[0].correlationId, sent.id)
  t.alike((heard[0].payload as { result: unknown }).result, { a: 1 })
  t.absent(isOpen(here, { peer: peer.id, correlationId: sent.id, own: 'bot', other: 'text' }))
})

test('a program sends as itself: as weak as its card says', async (t) => {
  const { world, here, peer } = await pair(t)
  peer.source.set([echo('text')])
  const weak = await here.core.attach({ id: 'weak', tier: 3 })
  const strong = await here.core.attach({ id: 'strong', tier: 0 })
  await world.settle()
  const message = { recipient: `text@${peer.id}`, type: 'notification' as const, payload: {} }
  await failsWith(t, 'ESCALATION_REQUIRED', () => weak.send(message))
  await weak.send({ ...message, justification: 'needed' })
  t.is((await strong.send(message)).metadata?.tier, 1, 'never stronger than the certificate')
  await failsWith(t, 'AGENT_NOT_FOUND', () => strong.send({ ...message, recipient: 'nobody@peer' }))
  await weak.close()
  await failsWith(t, 'AGENT_NOT_FOUND', () => weak.send({ ...message, justification: 'needed' }))
})

test('an id is taken once, a card must be valid, and capabilities need somebody to run them', async (t) => {
  const { here } = await pair(t)
  here.source.set([echo('text')])
  const bot = await here.core.attach({ id: 'bot' })
  for (const id of ['bot', 'text', 'operator']) await failsWith(t, 'USAGE', () => here.core.attach({ id }))
  for (const id of ['Not An Id', '.', '..']) await failsWith(t, 'INVALID_CARD', () => here.core.attach({ id }))
  await failsWith(t, 'INVALID_CARD', () =>
    here.core.attach({ id: 'x', run: () => 1, capabilities: [capability('a b')] })
  )
  await failsWith(t, 'INVALID_CARD', () =>
    here.core.attach({
      id: 'x',
      run: () => 1,
      capabilities: [capability('x.do', { inputSchema: { type: 'nonsense' } })]
    })
  )
  await failsWith(t, 'USAGE', () => here.core.attach({ id: 'x', capabilities: [capability('x.do')] }))
  t.absent(here.core.agents.has('x'))
  await bot.close()
  await (await here.core.attach({ id: 'bot' })).close()
})

test('a program that throws on a message does no harm', async (t) => {
  const { world, here, peer } = await pair(t)
  let calls = 0
  await here.core.attach({
    id: 'bot',
    onMessage: () => {
      calls++
      throw new Error('oops')
    }
  })
  const sender = await peer.core.attach({ id: 'sender' })
  await world.settle()
  for (let i = 0; i < 2; i++) await sender.send({ recipient: `bot@${here.id}`, type: 'notification', payload: i })
  await world.settle()
  t.is(calls, 2)
  t.ok(here.lines.some((line) => line.includes('a program did not take its message')))
})

test('a card that could not be kept leaves no program behind', async (t) => {
  const { here } = await pair(t)
  here.store.fault = new Error('full')
  await t.exception(here.core.attach({ id: 'bot' }))
  here.store.fault = null
  t.absent(here.core.agents.has('bot'))
  t.ok(await here.core.attach({ id: 'bot' }))
})

test('a program in a sandbox of its own sends nothing to an agent outside', async (t) => {
  const { world, here, peer } = await pair(t)
  const boxed = await here.core.attach({ id: 'boxed', sandboxId: 'ci' })
  peer.source.set([echo('text')])
  await world.settle()
  await failsWith(t, 'SANDBOX_VIOLATION', () =>
    boxed.send({ recipient: 'text@peer', type: 'notification', payload: 1 })
  )
})
