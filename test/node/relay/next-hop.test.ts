import test from 'brittle'
import { decodeWhole } from '../../../src/domain/channel/frames.js'
import { relayedId } from '../../../src/domain/channel/relayed.js'
import { chain } from '../../support/chain.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'

const question = { agent: 'text@c', capability: 'text.do', input: { x: 1 } }

/** What the first node asks the last. */
function call(a: FakeNode, changes: object = {}) {
  return a.api().call('message.call', { ...question, ...changes })
}

test('a request reaches a node without a link through a neighbour of both, and its answer comes back', async (t) => {
  const { world, a, b, c, agent } = await chain(t)
  const reply = call(a)
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.alike((await reply).payload, { x: 1 })
  t.is(agent.tasks.length, 1)
  t.is(b.counted('messages_passed_on', 'request'), 1)
  t.is(b.counted('messages_passed_on', 'response'), 1)
  t.is(b.counted('messages_delivered', 'request'), 0, 'the relay takes nothing for itself')
  t.alike(
    [a, b, c].flatMap((one) => one.audit.events),
    []
  )
  const peers = (await a.api().call('peers.list', { all: true })).peers
  t.is(peers.find((one) => one.name === 'c')?.status, 'offline', 'online means linked')
})

test('the events of a relayed message name its hops', async (t) => {
  const { world, a, b, c } = await chain(t)
  void call(a)
  await world.settle()
  const decided = c.core.observability
    .getRecentEvents()
    .filter((one) => one.type === 'routing-decision' && one.messageType === 'request')
  t.alike(
    decided.map((one) => one.hops),
    [[b.id]]
  )
})

test('bytes of a payload come through as they were sent', async (t) => {
  const { world, a, agent } = await chain(t)
  const bytes = new Uint8Array(200_000).map((_, at) => at % 251)
  const reply = call(a, { input: { bytes } })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.alike(agent.tasks[0]?.input, { bytes })
})

test('progress comes back by the way of the answer, and a notification goes one way', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { agent })
  const reply = call(a)
  await world.settle()
  agent.open[0]?.run.progress({ percent: 50 })
  await world.settle()
  t.is(b.counted('messages_passed_on', 'stream-data'), 1)
  agent.finish()
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  await a.core.outbound.send({
    sender: { agentId: 'operator', nodeId: a.id },
    recipient: { agentId: 'text', nodeId: c.id },
    type: 'notification',
    payload: { note: 1 }
  })
  await world.settle()
  t.is(c.counted('messages_delivered', 'notification'), 1)
})

test('with a link of their own messages go by it', async (t) => {
  const { world, a, b, c } = await chain(t)
  await Promise.all([call(a), world.settle()])
  await world.link(a, c)
  await Promise.all([call(a), world.settle()])
  t.is(b.counted('messages_passed_on', 'request'), 1)
  t.is(
    c.core.observability.getRecentEvents().filter((one) => one.hops !== undefined && one.messageType === 'request')
      .length,
    1
  )
})

test('a neighbour that relays nothing is no route, and the node learns that the other is away', async (t) => {
  const { world, a } = await chain(t, { settings: { b: { forward: false } } })
  const asking = failsWith(t, 'PEER_OFFLINE', () => call(a))
  await world.settle()
  await asking
})

test('a message that a neighbour refuses to relay fails at once, with its reason', async (t) => {
  const { world, a, b, c } = await chain(t, { policy: { b: 'rules:\n  - decision: deny\n    to: {node: c}\n' } })
  const reply = call(a)
  await world.settle()
  t.is((await reply).error?.code, 'POLICY_DENIED')
  t.ok((await reply).error?.message.includes('policy.yaml'), (await reply).error?.message)
  t.is(b.audit.of('refusal').at(-1)?.code, 'POLICY_DENIED')
  t.is(c.counted('messages_received', 'request'), 0)
  t.ok(a.core.events.recent().some((one) => one.type === 'delivery-failed' && one.data['via'] === 'b'))
})

test('only the neighbour that was given a message can say that it is not carried on', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { agent })
  const other = await world.member('other')
  await world.link(a, other)
  const sent: string[] = []
  const { originSignature: forwarded } = b.core
  const accept = forwarded.accept.bind(forwarded)
  forwarded.accept = (peer, frame) => {
    if (frame.origin === a.id) sent.push(relayedId(frame))
    return accept(peer, frame)
  }
  const reply = call(a)
  await world.settle()
  const word = { origin: a.id, to: c.id, id: sent.at(-1) ?? '', code: 'POLICY_DENIED' as const, rule: 'x', left: 1 }
  other.core.peers.send(a.id, { kind: 'control', name: 'undelivered', body: word })
  b.core.peers.send(a.id, { kind: 'control', name: 'undelivered', body: { ...word, id: 'another' } })
  await world.settle()
  agent.finish()
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('a hop that dies under way leaves the request to its timeout', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { agent })
  const reply = call(a, { timeoutMs: 5000 })
  await world.settle()
  t.is(agent.tasks.length, 1)
  world.net.disconnect(a.id, b.id)
  world.net.disconnect(b.id, c.id)
  agent.finish()
  await world.pass(5000)
  t.alike([(await reply).outcome, (await reply).error?.code], ['UNKNOWN', 'TIMEOUT'])
  const again = failsWith(t, 'PEER_OFFLINE', () => call(a))
  await world.settle()
  await again
  await world.link(a, b)
  await world.link(b, c)
  await world.pass(20_000)
  t.is(a.core.tasks.list().at(-1)?.state, 'completed', 'a late answer counts')
  t.is(agent.tasks.length, 1)
})

test('a request whose hop dies before it arrives goes by another one', async (t) => {
  const { world, a, b, c, agent } = await chain(t)
  await Promise.all([call(a), world.settle()])
  world.net.disconnect(b.id, c.id)
  const reply = call(a)
  await world.settle()
  t.is(a.core.lanes.waiting, 1)
  const d = await world.member('d')
  await world.link(a, d)
  await world.link(d, c)
  await world.pass(5000)
  t.is((await reply).outcome, 'COMPLETED')
  t.is(agent.tasks.length, 2)
  t.ok(d.counted('messages_passed_on', 'request') >= 1)
})

test('a request over a neighbour is sent until its node has it, for any loss: the message, its acknowledgement, the answer', async (t) => {
  for (const lost of ['request', 'ack', 'response'] as const) {
    const agent = new FakeAgent(agentDefinition('text'))
    const { world, a, b, c } = await chain(t, { agent })
    const { forwarder: passing } = b.core
    const pass = passing.pass.bind(passing)
    let left = 3
    passing.pass = (frame) => {
      const message = decodeWhole(frame.content)
      const isAnswer = frame.origin === c.id
      const kind = typeof message === 'string' ? 'none' : message.kind
      const is = {
        request: !isAnswer && kind === 'reliable',
        ack: isAnswer && kind === 'control',
        response: isAnswer && kind === 'reliable'
      }
      if (is[lost] && left-- > 0) return
      pass(frame)
    }
    const reply = call(a, { wait: false })
    await world.settle()
    const { taskId } = await reply
    for (let i = 0; i < 60 && agent.open.length === 0; i++) await world.pass(1000, 500)
    agent.finish('done')
    for (let i = 0; i < 60 && a.core.tasks.get(taskId ?? '')?.state !== 'completed'; i++) await world.pass(1000, 500)
    t.is(a.core.tasks.get(taskId ?? '')?.state, 'completed', `${lost} lost`)
    t.is(agent.tasks.length, 1, 'once')
    t.alike([a.core.lanes.waiting, c.core.lanes.waiting], [0, 0])
  }
})

test('a request that nobody waits for goes by a way too', async (t) => {
  const { world, a, agent } = await chain(t)
  const reply = call(a, { wait: false })
  await world.settle()
  await reply
  t.is(agent.tasks.length, 1)
})

test('two nodes on the way carry a message and its answer as well', async (t) => {
  const { world, a, b, c, agent } = await chain(t)
  world.net.disconnect(b.id, c.id)
  const d = await world.member('d', { agents: [echo('other')] })
  await world.link(b, d)
  await world.link(d, c)
  const reply = call(a)
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.is(agent.tasks.length, 1)
  t.is(b.counted('messages_passed_on', 'response'), 1)
  t.is(d.counted('messages_passed_on', 'request'), 1)
  world.net.disconnect(d.id, c.id)
  const later = call(a)
  await world.settle()
  t.ok(a.core.routes.next(c.id) === null, 'also the second one informs its sender')
  await world.link(d, c)
  await world.pass(10_000)
  t.is((await later).outcome, 'COMPLETED')
})
