import test, { type Assert } from 'brittle'
import type { EnvelopeHeader } from '../../src/domain/envelope/header.js'
import { type Chain, chain } from '../support/chain.js'
import { isOpen } from '../support/exchanges.js'
import { agentDefinition, FakeAgent } from '../support/fake-agents.js'
import type { FakeNode } from '../support/fake-node.js'

const DAY_MS = 86_400_000

/** A chain whose last node has work that ends when the test says so. */
async function scene(t: Assert): Promise<Chain> {
  const agent = new FakeAgent(agentDefinition('text', { concurrency: 2000 }))
  return chain(t, { agent, settings: { c: { maxInFlightPerPeer: 2000 } } })
}

/** Asks the last node, and notes what becomes of it. */
function ask({ a }: Chain, outcomes: string[], timeoutMs = 1_000_000): void {
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1, timeoutMs })
  void reply.then((one) => outcomes.push(one.error?.code ?? one.outcome))
}

/** A hop that carries no response on, as long as it is told so; the headers of those that it was given. */
function refusing(hop: FakeNode, refuses: () => boolean): EnvelopeHeader[] {
  const { passing } = hop.core
  const pass = passing.pass.bind(passing)
  const refused: EnvelopeHeader[] = []
  passing.pass = (passenger, luggage) => {
    if (passenger.header.type !== 'response' || !refuses()) return pass(passenger, luggage)
    refused.push(passenger.header)
    passing.refuse(passenger.header, { code: 'OVERLOADED', rule: 'no room', reason: 'no room' })
  }
  return refused
}

test('more answers at once than a hop carries all arrive', async (t) => {
  const links = await scene(t)
  const { world, b, c, agent } = links
  const outcomes: string[] = []
  for (let i = 0; i < 700; i++) {
    if (i % 50 === 49) await world.pass(1000)
    ask(links, outcomes)
  }
  await world.settle()
  t.is(agent.open.length, 700)
  while (agent.open.length > 0) agent.finish()
  await world.pass(60_000, 1000)
  t.alike(new Set(outcomes), new Set(['COMPLETED']))
  t.is(outcomes.length, 700)
  t.is(b.counted('messages_passed_on', 'response'), 700)
  t.is(c.core.work.unsentCount(), 0)
})

test('an answer that a hop refuses for lack of room is sent again, less and less often, under an id of its own', async (t) => {
  const links = await scene(t)
  const { world, b, c, agent } = links
  const outcomes: string[] = []
  let isFull = true
  const refused = refusing(b, () => isFull)
  ask(links, outcomes)
  await world.settle()
  agent.finish()
  await world.pass(130_000, 1000)
  t.ok(refused.length >= 7 && refused.length <= 9, `${refused.length} tries in two minutes`)
  t.is(new Set(refused.map(({ id }) => id)).size, refused.length, 'what came before would not be taken')
  t.absent(
    c.core.events.recent().some((one) => one.type === 'delivery-failed'),
    'nothing has failed yet'
  )
  isFull = false
  await world.pass(61_000, 1000)
  t.alike(outcomes, ['COMPLETED'])
})

test('a hop that refuses answers for ever does not keep them alive, nor their exchange', async (t) => {
  const links = await scene(t)
  const { world, a, b, c, agent } = links
  const refused = refusing(b, () => true)
  ask(links, [])
  await world.settle()
  agent.finish()
  await world.settle()
  const correlationId = refused[0]?.correlationId ?? ''
  t.ok(isOpen(c, { peer: a.id, correlationId }), 'it may be answered yet')
  // Fewer steps: the hop answers within each.
  await world.pass(DAY_MS - 60_000, 60_000)
  t.is(c.core.work.unsentCount(), 1)
  await world.pass(120_000, 1000)
  t.is(c.core.work.unsentCount(), 0)
  t.absent(isOpen(c, { peer: a.id, correlationId }))
  t.ok(refused.length < DAY_MS / 50_000, `${refused.length} tries in a day`)
})

test('only the hop that was given an answer can have it sent again, and once', async (t) => {
  const links = await scene(t)
  const { world, a, b, c, agent } = links
  const other = await world.member('other')
  await world.link(other, c)
  const outcomes: string[] = []
  ask(links, outcomes)
  await world.settle()
  agent.finish()
  await world.settle()
  const answer = a.core.observability.getRecentEvents().find((one) => one.type === 'message-received' && one.messageType === 'response')
  const word = { origin: c.id, to: a.id, id: answer?.envelopeId ?? '', code: 'OVERLOADED' as const, rule: 'x', left: 1 }
  other.core.peers.send(c.id, { kind: 'control', name: 'undelivered', body: word })
  b.core.peers.send(c.id, { kind: 'control', name: 'undelivered', body: { ...word, to: other.id } })
  await world.pass(3000)
  t.is(b.counted('messages_received', 'response'), 1)
  for (let i = 0; i < 3; i++) b.core.peers.send(c.id, { kind: 'control', name: 'undelivered', body: word })
  await world.pass(3000)
  t.is(b.counted('messages_received', 'response'), 2, 'its own hop may say so once')
  t.alike(outcomes, ['COMPLETED'])
})

test('an answer that the second hop refuses comes again along the exchange of the first', async (t) => {
  const links = await scene(t)
  const { world, b, c, agent } = links
  const d = await world.member('d')
  world.net.disconnect(b.id, c.id)
  await world.link(b, d)
  await world.link(d, c)
  let isFull = true
  const refused = refusing(b, () => isFull)
  const outcomes: string[] = []
  ask(links, outcomes)
  await world.settle()
  agent.finish()
  await world.pass(3000)
  t.ok(refused.length >= 2, 'the first hop has carried it again')
  isFull = false
  await world.pass(60_000, 1000)
  t.alike(outcomes, ['COMPLETED'])
  t.alike(d.audit.of('refusal'), [])
})

test('an answer that took longer than its way is remembered looks for a way anew', async (t) => {
  const links = await scene(t)
  const { world, agent } = links
  const outcomes: string[] = []
  ask(links, outcomes)
  await world.settle()
  await world.pass(600_000, 10_000)
  agent.finish()
  await world.pass(10_000, 1000)
  t.alike(outcomes, ['COMPLETED'])
})
