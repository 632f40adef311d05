import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../../src/kit/errors.js'
import { capability, agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../../support/fake-node.js'
import { forge, forgeControl, request } from '../../../support/forge.js'
import { holds } from '../../../support/holds.js'
import { actor } from '../../../support/membership.js'
import { takeAllReplies } from '../../../support/exchanges.js'

interface Scene {
  readonly world: World
  /** The callee. */
  readonly here: FakeNode
  /** Callers. */
  readonly peer: FakeNode
  readonly other: FakeNode
  readonly agent: FakeAgent
  /** What came to the operator of a node, by type. */
  replies(node: FakeNode): { type: string; payload: unknown }[]
}

async function scene(t: Assert, options: FakeNodeOptions & { readonly agent?: FakeAgent } = {}): Promise<Scene> {
  const world = new World(t)
  const agent = options.agent ?? new FakeAgent(agentDefinition('text', { concurrency: 8 }))
  const here = await world.member('here', { agents: [agent], ...options })
  const peer = await world.member('peer')
  const other = await world.member('other')
  await world.link(here, peer, other)
  const seen = new Map<FakeNode, { type: string; payload: unknown }[]>()
  return {
    world,
    here,
    peer,
    other,
    agent,
    replies: (node) => {
      const list = seen.get(node) ?? []
      if (!seen.has(node)) {
        seen.set(node, list)
        const { exchanges: conversations } = node.core
        const deliver = conversations.deliver.bind(conversations)
        conversations.deliver = (from, header, payload) => {
          list.push({ type: header.type, payload })
          return deliver(from, header, payload)
        }
        takeAllReplies(node)
      }
      return list
    }
  }
}

test('the same request twice runs once and is answered twice, before and after it has ended', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  const payload = request('req_same')
  forge(peer, here, { payload, correlationId: 'thr_1' })
  forge(peer, here, { payload, correlationId: 'thr_2' })
  await world.settle()
  t.is(agent.open.length, 1)
  agent.finish('one result')
  await world.settle()
  t.is(seen.length, 2, 'both threads are answered')
  forge(peer, here, { payload, correlationId: 'thr_3' })
  await world.settle()
  t.is(agent.tasks.length, 1)
  t.alike(
    seen.map((one) => (one.payload as { result: unknown }).result),
    ['one result', 'one result', 'one result']
  )
})

test('however often requests come, each attempt of each sender runs once', async (t) => {
  const step = fc.record({
    from: fc.nat(1),
    id: fc.nat(2),
    attempt: fc.integer({ min: 1, max: 2 }),
    finish: fc.boolean()
  })
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const { world, here, peer, other, agent } = await scene(t)
    const asked = new Set<string>()
    for (const { from, id, attempt, finish } of steps) {
      const sender = [peer, other][from]
      asked.add(`${sender.name}/${id}/${attempt}`)
      forge(sender, here, { payload: request(`req_${id}`, { attempt, input: `${sender.name}/${id}/${attempt}` }) })
      await world.settle()
      if (finish && agent.open.length > 0) agent.finish()
    }
    assert.equal(agent.tasks.length, asked.size)
    assert.deepEqual(new Set(agent.tasks.map((one) => one.input)), asked)
    await here.core.close()
  })
  await holds(t, property, 100)
})

test('a peer cannot cancel the request of another one, and a canceled run is not answered', async (t) => {
  const { world, here, peer, other, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here, { payload: request('req_1') })
  await world.settle()
  forgeControl(other, here, { name: 'cancel', body: { requestId: 'req_1#1' } })
  forgeControl(peer, here, { name: 'cancel', body: { requestId: 'req_1#2' } })
  await world.settle()
  t.is(agent.open.length, 1)
  forgeControl(peer, here, { name: 'cancel', body: { requestId: 'req_1#1' } })
  await world.settle()
  t.is(agent.open.length, 0)
  t.is(seen.length, 0)
  t.is(here.core.tasks.list()[0]?.state, 'canceled')
})

test('a task canceled here is a failure for its caller', async (t) => {
  const { world, here, peer, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  t.ok(here.core.executor.cancelTask(here.core.tasks.list()[0]?.id ?? ''))
  await world.settle()
  t.is((seen[0].payload as { error: { code: string } }).error.code, 'CANCELED')
  t.absent(here.core.executor.cancelTask('task_unknown'))
})

test('more than a peer may have in flight is refused as OVERLOADED; others still get in', async (t) => {
  const { world, here, peer, other, agent, replies } = await scene(t, {
    settings: { maxInFlightPerPeer: 2, maxInFlight: 3 }
  })
  const [first, second] = [replies(peer), replies(other)]
  for (let i = 0; i < 3; i++) forge(peer, here)
  await world.settle()
  t.is(agent.open.length, 2)
  t.alike(
    first.map((one) => (one.payload as { code: string }).code),
    ['OVERLOADED']
  )
  forge(other, here)
  forge(other, here)
  await world.settle()
  t.is(agent.open.length, 3)
  t.is(second.length, 1, 'the node is full')
  agent.finish()
  await world.settle()
  forge(other, here)
  await world.settle()
  t.is(agent.open.length, 3, 'space again')
})

test('a lease ends when its launcher stays away for longer than a lease; another request goes on', async (t) => {
  const { world, here, peer, other, agent } = await scene(t)
  world.net.disconnect(here.id, other.id)
  forge(peer, here, { payload: request('swarm_1.0', { swarm: 'swarm_1', input: 'lease' }) })
  forge(peer, here, { payload: request('req_1', { input: 'request' }) })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  await world.pass(4000, 1000)
  t.is(agent.open.length, 2)
  await world.pass(3000, 1000)
  t.alike(
    agent.open.map((one) => one.task.input),
    ['request']
  )
})

test('a launcher that is back in time keeps its lease', async (t) => {
  const { world, here, peer, agent } = await scene(t)
  forge(peer, here, { payload: request('item_1.0', { swarm: 'swarm_1' }) })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  await world.pass(4000, 1000)
  await world.link(here, peer)
  await world.pass(10_000, 1000)
  t.is(agent.open.length, 1)
})

test('an answer waits for its caller and goes out once when it is back', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  agent.finish('kept')
  await world.settle()
  t.is(here.core.lanes.waiting, 1)
  await world.link(here, peer)
  t.is(here.core.lanes.waiting, 0)
  t.alike(
    seen.map((one) => (one.payload as { result: unknown }).result),
    ['kept']
  )
})

test('an answer that the channel did not take is tried again', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  const { peers } = here.core
  const { send } = peers
  peers.send = (to, message) => {
    if (message.kind === 'reliable') throw new NodeError('OVERLOADED', 'too much waits')
    send.call(peers, to, message)
  }
  agent.finish('kept')
  await world.settle()
  t.is(here.core.lanes.waiting, 1)
  peers.send = send
  await world.pass(3000)
  t.is(here.core.lanes.waiting, 0)
  t.is(seen.length, 1)
})

test('an answer that waited longer than it may live is dropped', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t, { settings: { defaultTtlMs: 60_000 } })
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  agent.finish()
  await world.settle()
  world.clock.advance(60_000)
  await world.link(here, peer)
  t.is(seen.length, 0)
  t.is(here.core.lanes.waiting, 0)
})

test('a revoked caller loses its running work and its waiting answers', async (t) => {
  const { world, here, peer, other, agent } = await scene(t)
  forge(peer, here, { payload: request('req_1', { input: 1 }) })
  forge(peer, here, { payload: request('req_2', { input: 2 }) })
  forge(other, here, { payload: request('req_3', { input: 3 }) })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  agent.finish()
  await world.settle()
  t.is(here.core.lanes.waiting, 1)
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
  await world.settle()
  t.alike(
    agent.open.map((one) => one.task.input),
    [3]
  )
  t.is(here.core.lanes.waiting, 0)
})

test('every caller gets a list of its requests here once a second', async (t) => {
  const { world, here, peer, other } = await scene(t)
  const beats: [string, string, string[]][] = []
  for (const node of [peer, other]) {
    const { reports } = node.core.requests
    const { onHeartbeat } = reports
    reports.onHeartbeat = (from, keys) => {
      beats.push([node.name, from, [...keys].sort()])
      onHeartbeat.call(reports, from, keys)
    }
  }
  forge(peer, here, { payload: request('req_1') })
  forge(peer, here, { payload: request('req_2', { attempt: 3 }) })
  forge(other, here, { payload: request('req_4') })
  await world.settle()
  await world.pass(1000)
  t.alike(
    beats.sort(([a], [b]) => a.localeCompare(b)),
    [
      ['other', here.id, ['req_4#1']],
      ['peer', here.id, ['req_1#1', 'req_2#3']]
    ]
  )
})

test('a notification runs the default capability when its input fits, silently', async (t) => {
  const agent = new FakeAgent(
    agentDefinition('text', {
      capabilities: [
        capability('text.other'),
        capability('text.note', { default: true, inputSchema: { type: 'object', required: ['text'] } })
      ]
    })
  )
  const { world, here, peer, replies } = await scene(t, { agent })
  const seen = replies(peer)
  forge(peer, here, { type: 'notification', payload: { input: { text: 'hi' } } })
  forge(peer, here, { type: 'notification', payload: { input: { nothing: 1 } } })
  await world.settle()
  t.is(agent.tasks.length, 1)
  t.is(agent.tasks[0]?.capability, 'text.note')
  agent.finish()
  await world.settle()
  await world.pass(1000)
  t.is(seen.length, 0)
  const ran = here.core.events.recent().filter((one) => one.type === 'notification')
  t.alike(
    ran.map((one) => one.data['ran']),
    [true, false]
  )
})

test('large payloads of notifications stay out of the events', async (t) => {
  const { world, here, peer } = await scene(t)
  forge(peer, here, { type: 'notification', recipient: `operator@${here.id}`, payload: { input: 'x'.repeat(10_000) } })
  await world.settle()
  const data = here.core.events.recent().at(-1)?.data
  t.is(data?.['payload'], undefined)
  t.ok(Number(data?.['bytes']) > 10_000)
})

test('a task that has to wait for a place says so until it begins', async (t) => {
  const { world, here, peer, agent } = await scene(t, { agent: new FakeAgent(agentDefinition('text')) })
  forge(peer, here)
  await world.settle()
  forge(peer, here)
  await world.settle()
  const waiting = here.core.tasks.list()[0]
  t.is(waiting?.waitingFor, 'slot')
  t.is(waiting?.state, 'submitted')
  t.alike(here.core.executor.counts(), { running: 1, queued: 1 })
  agent.finish()
  await world.settle()
  t.is(here.core.tasks.get(waiting?.id ?? '')?.state, 'working')
})

test('a result too large for a message becomes an error', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  agent.finish({ list: Array.from({ length: 17 }, () => 'x'.repeat(1024 * 1024)) })
  await world.settle()
  t.is(seen[0]?.type, 'response')
  t.is((seen[0].payload as { error: { code: string } }).error.code, 'PAYLOAD_TOO_LARGE')
})

test('the result of an agent that was removed meanwhile still gets to its caller', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  here.source.set([])
  await world.settle()
  agent.open[0].run.progress(50)
  agent.finish('its last words')
  await world.settle()
  t.alike(
    seen.map((one) => one.type),
    ['stream-data', 'response']
  )
  t.is((seen[1].payload as { result: unknown }).result, 'its last words')
})

test('a node that stops ends its runs and informs their waiting callers, but no swarm: that gives its leases away by itself', async (t) => {
  const { world, here, peer, agent, replies } = await scene(t)
  const seen = replies(peer)
  forge(peer, here)
  await world.settle()
  await here.core.executor.stop()
  await world.settle()
  t.is(agent.open.length, 0)
  t.alike(
    seen.map((one) => [one.type, (one.payload as { outcome: string; error: { code: string } }).error.code]),
    [['response', 'PEER_OFFLINE']]
  )
})
