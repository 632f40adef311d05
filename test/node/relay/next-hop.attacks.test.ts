import test, { type Assert } from 'brittle'
import { type Chain, chain, put, relayed } from '../../support/chain.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'
import { actor } from '../../support/membership.js'

/** A chain, and beside its middle a member that is preferred to it where two ways are as good. */
async function scene(t: Assert, settings = {}): Promise<Chain & { readonly m: FakeNode; readonly z: FakeNode }> {
  const links = await chain(t, { agent: new FakeAgent(agentDefinition('text')) })
  const { world, a, b, c } = links
  const name = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'].find((one) => actor(one).id < b.id) ?? ''
  const m = await world.member(name, { settings })
  const z = await world.member('z')
  await world.link(m, a)
  await world.link(m, z)
  await world.link(c, z)
  await world.link(m, c)
  return { ...links, m, z }
}

/** `m` brings `c` what `a` has signed for `z`, as if it were the way. */
async function divert({ world, a, c, m, z }: Awaited<ReturnType<typeof scene>>): Promise<void> {
  const changes = { type: 'notification' as const, recipient: `operator@${z.id}`, payload: {} }
  put(m, c, relayed(world, a, { to: z, firstHop: m, hops: [m], changes }))
  await world.settle()
}

test('an answer arrives, for any dead routes that a member offers meanwhile', async (t) => {
  const of = await scene(t)
  const { world, a, b, c, m, agent } = of
  world.net.disconnect(a.id, m.id)
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is(b.counted('messages_passed_on', 'request'), 1)
  await world.link(a, m)
  await divert(of)
  const found = c.core.routes.find(a.id)
  await world.settle()
  t.ok(await found)
  t.is(c.core.routes.next(a.id), m.id, 'for a new message it may be the route')
  // It takes every frame, and relays none.
  m.core.forwarder.pass = () => {}
  agent.finish()
  await world.pass(60_000, 500)
  t.is((await reply).outcome, 'COMPLETED')
  t.ok(b.counted('messages_passed_on', 'response') >= 1)
})

test('a member is not the way to a node because it brings what that node signed', async (t) => {
  const of = await scene(t, { forward: false })
  const { world, a, b, c } = of
  for (let i = 0; i < 3; i++) await divert(of)
  t.is(c.core.routes.next(a.id), null)
  const reply = c.api().call('message.call', { agent: 'text@a', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.is(b.counted('messages_passed_on', 'request'), 1)
})

test('later messages of a thread take any route', async (t) => {
  const { world, a, b, c, m } = await scene(t)
  world.net.disconnect(a.id, m.id)
  const heard: string[] = []
  c.core.subscriptions.onReceive('text', ({ type }) => heard.push(type))
  const thread = {
    sender: { agentId: 'operator', nodeId: a.id },
    recipient: { agentId: 'text', nodeId: c.id },
    correlationId: 'stream',
    payload: {}
  }
  await Promise.all([
    a.core.outbound.send({ ...thread, type: 'stream-start', replies: { ttlMs: 60_000, handler: () => {} } }),
    world.settle()
  ])
  await world.link(a, m)
  a.core.routes.drop(c.id, b.id)
  const found = a.core.routes.find(c.id)
  await world.settle()
  t.ok(await found)
  t.is(a.core.routes.next(c.id), m.id)
  await Promise.all([a.core.outbound.send({ ...thread, type: 'stream-data' }), world.settle()])
  await world.settle()
  t.alike(heard, ['stream-start', 'stream-data'])
  t.is(m.counted('messages_passed_on', 'stream-data'), 1)
})

test('an answer whose neighbour went waits in the ledger, and goes when there is a way again', async (t) => {
  const { world, a, b, c, agent } = await scene(t, { forward: false })
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  world.net.disconnect(b.id, c.id)
  agent.finish()
  await world.pass(3000)
  t.is(c.core.lanes.waiting, 1)
  await world.link(b, c)
  await world.pass(30_000, 1000)
  t.is((await reply).outcome, 'COMPLETED')
  t.is(c.core.lanes.waiting, 0)
})

test('a request takes another neighbour when the one that offered a route relays nothing', async (t) => {
  const { world, a, b, m, agent } = await scene(t)
  const { forwarder: passing } = m.core
  passing.pass = (frame) => passing.refuse(frame, { code: 'PEER_OFFLINE', rule: 'hops: a way', reason: 'a lie' })
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  for (let i = 0; i < 20 && agent.open.length === 0; i++) await world.pass(500)
  agent.finish()
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.is(b.counted('messages_passed_on', 'request'), 1)
})
