import test, { type Assert } from 'brittle'
import type { ChannelMessage } from '../../../src/domain/channel/frames.js'
import { chain } from '../../support/chain.js'
import { agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

/** The peer whose link a node would close for another. */
function spare(node: FakeNode): string | null {
  return node.links.handlers?.spare()?.peer ?? null
}

/** `a` with links to `b` and `c`, in this order, both of them idle. */
async function idle(t: Assert, agent = echo('text')) {
  const world = new World(t)
  const [a, b, c] = [await world.member('a'), await world.member('b', { agents: [agent] }), await world.member('c')]
  await world.link(a, b)
  await world.pass(1000)
  await world.link(a, c)
  await world.pass(20_000)
  return { world, a, b, c, agent }
}

/** Asks `text` of `b`. */
function ask(a: FakeNode): Promise<unknown> {
  return a.api().call('message.call', { agent: 'text@b', capability: 'text.do', input: {}, timeoutMs: 120_000 })
}

test('the link used longest ago is closed; traffic in either direction makes a link the last one', async (t) => {
  const { world, a, b, c } = await idle(t)
  t.is(spare(a), b.id)
  await Promise.all([ask(a), world.settle()])
  t.is(spare(a), c.id)
  t.is(spare(b), null, 'its only link')
  await world.link(b, c)
  t.is(spare(b), null, 'both were used a moment ago')
  await world.pass(10_000)
  t.is(spare(b), a.id)
})

test('keep-alives, pings, cards and searches are no use of a link', async (t) => {
  const { world, a, b } = await idle(t)
  const control = (name: string, body: unknown): ChannelMessage => ({ kind: 'control', name, body }) as ChannelMessage
  await Promise.all([a.core.peers.ping(b.id), world.settle()])
  const idleTalk = [
    control('cards', { cards: [], all: null }),
    control('heartbeat', { requests: [] }),
    control('linked', { id: 'x' }),
    control('way', { id: 'x', to: a.id, isFurther: false }),
    control('lookup', { id: 'x', agentId: 'text', capability: null })
  ]
  for (const message of idleTalk) {
    a.core.peers.send(b.id, message)
    b.core.peers.send(a.id, message)
  }
  await world.settle()
  t.is(spare(a), b.id)
})

test('a link over which a request is under way is never given away, at neither end, and may be once it is answered', async (t) => {
  const { world, a, b, c, agent } = await idle(t, new FakeAgent(agentDefinition('text')))
  await world.link(b, c)
  const answer = ask(a)
  await world.pass(60_000)
  t.is(spare(a), c.id)
  t.is(spare(b), c.id)
  // Now the links to `c` are those that were used last.
  for (const one of [a, b]) one.core.peers.send(c.id, { kind: 'envelope', bytes: new Uint8Array(8) })
  await world.pass(1000)
  t.not(spare(a), b.id)
  t.not(spare(b), a.id)
  await world.pass(60_000)
  agent.finish()
  await Promise.all([answer, world.settle()])
  t.is(spare(b), c.id)
  await world.pass(10_000)
  a.core.peers.send(c.id, { kind: 'envelope', bytes: new Uint8Array(8) })
  t.is(spare(a), b.id)
})

test('links over which an exchange of others is carried are kept for as long as it is open', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { agent })
  const other = await world.member('other')
  await world.link(b, other)
  const answer = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: {}, timeoutMs: 120_000 })
  await world.pass(60_000)
  t.is(spare(b), other.id)
  world.net.disconnect(b.id, other.id)
  t.is(spare(b), null)
  agent.finish()
  await Promise.all([answer, world.settle()])
  await world.pass(10_000)
  t.ok([a.id, c.id].includes(spare(b) ?? ''))
})

test('messages to send, an unanswered ping and a channel of agents keep a link', async (t) => {
  const { world, a, b, c } = await idle(t)
  const [toB] = a.links.open.filter((one) => one.peer === b.id)
  if (toB?.other === null || toB === undefined) return t.fail('no link')
  toB.other.isHeld = true
  const ping = a.core.peers.ping(b.id)
  await world.settle()
  t.is(spare(a), c.id)
  toB.other.isHeld = false
  toB.other.deliver()
  await Promise.all([ping, world.settle()])
  t.is(spare(a), b.id)
  const opening = a.core.channels.openChannel('operator', 'text@b')
  await world.settle()
  const channel = await opening
  t.is(spare(a), c.id)
  await channel.close()
  t.is(spare(a), b.id)
  toB.other.isHeld = true
  for (let at = 0; at < 1100; at++) a.core.peers.send(b.id, { kind: 'control', name: 'linked', body: { id: `q${at}` } })
  t.is(spare(a), c.id)
})

test('a node that still uses a link closed by its other end dials it again at once, others do not', async (t) => {
  const { world, a, b, agent } = await idle(t, new FakeAgent(agentDefinition('text')))
  const toB = () => a.links.open.find((one) => one.peer === b.id)
  const first = toB()
  if (first === undefined) return t.fail('no link')
  world.net.rest(first)
  await world.settle()
  t.alike([a.links.dialled, b.links.dialled], [[], []])
  await world.link(a, b)
  a.links.reachable.add(b.id)
  const answer = ask(a)
  await world.settle()
  const second = toB()
  if (second === undefined) return t.fail('no link')
  world.net.rest(second)
  await world.settle()
  t.alike(a.links.dialled, [b.id])
  t.ok(a.core.peers.isOnline(b.id))
  agent.finish()
  await Promise.all([answer, world.settle()])
  t.pass('and its request is answered')
})
