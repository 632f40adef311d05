import test, { type Assert } from 'brittle'
import type { Task } from '../../../../src/domain/task/task.js'
import type { Asked } from '../../../../src/node/requests/caller/requests.js'
import { agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../../support/fake-node.js'
import { addressText } from '../../../../src/domain/card/card.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { isRecord } from '../../../../src/kit/json.js'
import { type RequestScene, requestScene } from '../../../support/request-scene.js'
import { isOpen } from '../../../support/exchanges.js'
import { NodeClock } from '../../../simulation/node-clock.js'

interface Scene extends Omit<RequestScene, 'task'> {
  /** The caller's task of a request: state, and what it waits for. */
  task(asked: Asked): readonly (Task['state'] | Task['waitingFor'])[]
}

async function scene(t: Assert, settings: FakeNodeOptions['settings'] = {}, isIdempotent = true): Promise<Scene> {
  const one = await requestScene(t, { timeoutMs: 3_600_000, concurrency: 400, settings, isIdempotent })
  return {
    ...one,
    task: (asked) => {
      const task = one.task(asked)
      return task === undefined ? [] : [task.state, task.waitingFor]
    }
  }
}

/** Its heartbeats come no more, until the function that is returned is called. */
function silence({ core: { peers } }: FakeNode): () => void {
  const { send } = peers
  peers.send = (to, message) => {
    if (message.kind !== 'control' || message.name !== 'heartbeat') send.call(peers, to, message)
  }
  return () => {
    peers.send = send
  }
}

test('a request is working only while heartbeats say so, and a peer that has it still does not do it twice', async (t) => {
  const { world, peer, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  t.alike(task(asked), ['working', null])
  const speak = silence(peer)
  await world.pass(7000, 1000)
  t.alike(task(asked), ['submitted', null])
  await world.pass(60_000, 1000)
  speak()
  await world.pass(1000)
  t.alike(task(asked), ['working', null])
  t.is(agent.tasks.length, 1)
  agent.finish('once')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'once' })
})

test('a request whose peer ended while it had it is taken up again by that peer', async (t) => {
  const { world, agent, ask, task, restart } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  t.alike(task(asked), ['working', null])
  const young = await restart(7000)
  await world.pass(1000)
  t.is(young.tasks[0]?.requestId, agent.tasks[0]?.requestId)
  t.is(young.tasks.length, 1)
  t.alike(task(asked), ['working', null])
  young.finish('after all')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'after all', run: 2 })
})

test('while the peer is away its request waits for it and is not working', async (t) => {
  const { world, here, peer, ask, task } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  world.net.disconnect(here.id, peer.id)
  await world.pass(7000, 1000)
  t.alike(task(asked), ['submitted', 'peer'])
  asked.cancel()
})

test('an answer that was lost on its way is asked for again, and the work is not repeated', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  here.links.open[0].isHeld = true
  agent.finish('kept there')
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  await world.link(here, peer)
  await world.pass(8000, 1000)
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'kept there' })
  t.is(agent.tasks.length, 1)
})

test('the lease of a swarm is not asked again: the swarm gives it to another', async (t) => {
  const { world, ask, restart } = await scene(t)
  const asked = await ask({
    lease: { swarm: 'swarm_1', requestId: 'swarm_1.0', attempt: 1, isQuery: false, changes: () => [] }
  })
  await world.pass(1000)
  const young = await restart(1000)
  await world.pass(30_000, 1000)
  t.is(young.tasks.length, 0)
  asked.cancel()
})

test('requests that waited for their peer are sent as it has places, and all are done', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const asked = await Promise.all(Array.from({ length: 300 }, () => ask({ mayQueue: true })))
  await world.link(here, peer)
  t.is(agent.open.length, 128)
  t.is(here.core.requests.waitingCount(), 172)
  for (let done = 0; done < 300; done++) {
    agent.finish()
    if (done % 20 === 19) await world.settle()
  }
  const answers = await Promise.all(asked.map((one) => one.answer))
  t.alike(new Set(answers.map((one) => one.outcome)), new Set(['COMPLETED']))
  t.is(agent.tasks.length, 300)
})

test('a request refused by a full peer waits and is tried again, when it may wait', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t, { maxInFlightPerPeer: 2 })
  const asked = []
  for (let i = 0; i < 3; i++) asked.push(await ask({ mayQueue: true }))
  await world.settle()
  t.is(agent.open.length, 2)
  t.is(here.core.requests.waitingCount(), 1)
  t.alike(task(asked[2]), ['submitted', 'slot'])
  await world.pass(5000)
  t.is(agent.tasks.length, 2)
  agent.finish()
  await world.pass(8000, 1000)
  t.is(agent.tasks.length, 3)
  agent.finish()
  agent.finish()
  t.alike(
    (await Promise.all(asked.map((one) => one.answer))).map((one) => one.outcome),
    ['COMPLETED', 'COMPLETED', 'COMPLETED']
  )
  t.alike(
    asked.filter((one) =>
      isOpen(here, { peer: peer.id, correlationId: one.correlationId, own: 'operator', other: 'text' })
    ),
    []
  )
})

test('a request without a place in its time has failed with the reason; one that may not wait fails at once', async (t) => {
  const { world, agent, ask } = await scene(t, { maxInFlightPerPeer: 1 })
  await ask()
  const [patient, hasty] = [await ask({ mayQueue: true, timeoutMs: 10_000 }), await ask()]
  const code = async ({ answer }: Asked): Promise<string> => {
    const one = await answer
    return one.outcome === 'FAILED' ? one.error.code : one.outcome
  }
  t.is(await code(hasty), 'OVERLOADED')
  await world.pass(10_000, 1000)
  t.is(await code(patient), 'OVERLOADED')
  t.is(agent.tasks.length, 1)
})

test('a request whose agent had no place may be asked again', async (t) => {
  const { world, peer, agent, ask } = await scene(t)
  const { agents } = peer.core
  const { run } = agents
  agents.run = () => Promise.resolve({ ok: false, code: 'OVERLOADED', message: 'too many tasks wait for this agent' })
  const asked = await ask({ mayQueue: true })
  await world.settle()
  agents.run = run
  await world.pass(2000)
  agent.finish('found one')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'found one' })
})

test('nothing that waits goes out to a peer that was put out, or when the node stops', async (t) => {
  for (const end of ['revoked', 'stopped']) {
    const { world, here, peer, agent, ask } = await scene(t, { maxInFlightPerPeer: 1 })
    const asked = [await ask({ mayQueue: true }), await ask({ mayQueue: true })]
    await world.settle()
    await world.pass(500)
    t.is(here.core.requests.waitingCount(), 1)
    const sent = here.counted('messages_sent', 'request')
    if (end === 'revoked') here.core.requests.onRevoked(peer.id)
    else await here.core.requests.stop()
    await world.pass(2000)
    await Promise.all(asked.map((one) => one.answer))
    t.is(here.counted('messages_sent', 'request'), sent, end)
    t.is(agent.tasks.length, 1)
  }
})

test('a request whose time is over is asked for again soon, also when the wall clock was put back meanwhile', async (t) => {
  const world = new World(t)
  let skewMs = 0
  const clock = new NodeClock(world.clock, () => skewMs)
  const here = await world.member('here', { parts: { clock } })
  const peer = await world.member('peer', { agents: [new FakeAgent(agentDefinition('slow'))] })
  await world.link(here, peer)
  const asked = await here.core.requests.ask({
    sender: { agentId: 'operator', nodeId: here.id },
    target: { agentId: 'slow', nodeId: peer.id },
    capability: 'slow.do',
    input: { a: 1 },
    description: '',
    timeoutMs: 5000,
    mayQueue: false
  })
  skewMs = -2_500_000
  await world.pass(6000)
  t.is((await asked.answer).outcome, 'UNKNOWN')
  const record = await here.core.requestStore.asked(asked.requestId)
  t.ok((record?.retryAt ?? Number.POSITIVE_INFINITY) <= clock.now() + 5000)
})

test('a word of the peer that it did not do one copy of a request does not end it while another is under way', (t) =>
  deniedOnce(t, new NodeError('PEER_OFFLINE', 'it stops')))

test('a word of a neighbour that it did not carry one copy of a request on does not end it while another is under way', (t) =>
  deniedOnce(t, new NodeError('FORBIDDEN', 'too old', { data: { via: 'n' } })))

for (const [code, isAgain] of [
  ['PEER_OFFLINE', true],
  ['OVERLOADED', false]
] as const) {
  test(`a request that its peer gave back with ${code} ${isAgain ? 'may have begun' : 'has not begun'}, and is sent again as such`, async (t) => {
    const { world, here, peer, ask } = await scene(t)
    const { outbound: outbox } = here.core
    const send = outbox.send.bind(outbox)
    const said: unknown[] = []
    outbox.send = (draft) => {
      if (isRecord(draft.payload)) said.push(draft.payload.isAgain)
      return send(draft)
    }
    const asked = await ask({ mayQueue: true })
    await world.settle()
    deliverError(here, peer, asked, new NodeError(code, 'not now'))
    await world.pass(10_000, 1000)
    t.alike(said, [false, isAgain])
    asked.cancel()
  })
}

test('of a request that a stopping node gave back nobody says that nothing was begun, when it never gets there again', async (t) => {
  const { world, here, peer, agent, ask } = await requestScene(t, { timeoutMs: 6000, concurrency: 1 })
  await ask()
  await world.settle()
  agent.finish()
  await world.pass(1000)
  const asked = await ask({ mayQueue: true })
  await world.settle()
  deliverError(here, peer, asked, new NodeError('PEER_OFFLINE', 'it stops'))
  const { peers } = here.core
  const { send } = peers
  peers.send = () => {}
  await world.pass(5000, 1000)
  peers.send = send
  world.net.disconnect(here.id, peer.id)
  await world.pass(5000, 1000)
  await world.link(here, peer)
  await world.pass(120_000, 1000)
  const { state, error } = await here.api().call('tasks.show', { id: asked.taskId ?? '' })
  t.alike([state, error?.message], ['failed', 'it stops'])
})

test('a request with one copy at a node that stopped, and no other copy delivered, ends with the answer of that node', async (t) => {
  const { world, here, peer, ask } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  const speak = silence(peer)
  await world.pass(7000, 1000)
  speak()
  deliverError(here, peer, asked, new NodeError('PEER_OFFLINE', 'it stops'))
  here.core.requests.onUndelivered(peer.id, [asked.requestId])
  const answer = await asked.answer
  t.alike([answer.outcome, 'error' in answer && answer.error.message], ['FAILED', 'it stops'])
})

test('a request that may not be repeated, of which its peer was asked how it stands, is sent again when that peer says that it had no place for it', async (t) => {
  const { world, here, peer, ask, task, agent } = await scene(t, {}, false)
  const asked = await ask({ mayQueue: true })
  await world.pass(1000)
  const speak = silence(peer)
  await world.pass(7000, 1000)
  deliverError(here, peer, asked, new NodeError('OVERLOADED', 'too many tasks are in flight on this node'))
  t.alike(task(asked), ['submitted', 'slot'])
  speak()
  await world.pass(5000, 1000)
  t.alike(task(asked), ['working', null])
  // What the peer said to the query, which came late: it had forgotten what it refused.
  deliverUnknown(here, peer, asked)
  t.alike(task(asked), ['working', null])
  agent.finish('once')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'once' })
})

async function deniedOnce(t: Assert, error: NodeError): Promise<void> {
  const { world, here, peer, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.pass(1000)
  const speak = silence(peer)
  await world.pass(7000, 1000)
  speak()
  deliverError(here, peer, asked, error)
  await world.pass(2000)
  t.alike(task(asked), ['working', null])
  agent.finish('once')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'once' })
}

function deliverUnknown(here: FakeNode, peer: FakeNode, asked: Asked): void {
  const error = new NodeError('TIMEOUT', 'the node has no trace of it').toBody()
  deliver(here, peer, asked, {
    type: 'response',
    payload: { requestId: asked.requestId, attempt: 1, outcome: 'UNKNOWN', error }
  })
}

function deliverError(here: FakeNode, peer: FakeNode, asked: Asked, error: NodeError): void {
  deliver(here, peer, asked, { type: 'error', payload: error.toBody() })
}

function deliver(
  here: FakeNode,
  peer: FakeNode,
  asked: Asked,
  { type, payload }: { readonly type: 'response' | 'error'; readonly payload: unknown }
): void {
  const { correlationId } = asked
  const [sender, recipient] = [
    { agentId: 'operator', nodeId: here.id },
    { agentId: 'slow', nodeId: peer.id }
  ]
  const header = {
    id: 'msg_1',
    schemaVersion: 1,
    timestamp: 0,
    sender: addressText(recipient),
    recipient: addressText(sender),
    correlationId
  }
  here.core.exchanges.deliver({ sender, recipient, correlationId }, { ...header, type }, payload)
}
