import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import { encodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { RelayedFrame } from '../../../src/domain/channel/relayed.js'
import type { NodeId } from '../../../src/kit/ids.js'
import { type Chain, chain, type Forging, put, relayed } from '../../support/chain.js'
import type { FakeNode } from '../../support/fake-node.js'
import { envelope, forge, request } from '../../support/forge.js'
import { actor } from '../../support/membership.js'

interface Scene extends Chain {
  /** Another neighbour of the last node. */
  readonly d: FakeNode
  /** A message of the first node as `b` would bring it, unless told otherwise. */
  message(changes?: Partial<Forging>): RelayedFrame
}

async function scene(t: Assert, options: Parameters<typeof chain>[1] = {}): Promise<Scene> {
  const links = await chain(t, options)
  const { world, a, b, c } = links
  const d = await world.member('d')
  await world.link(d, c)
  return { ...links, d, message: (changes = {}) => relayed(world, a, { to: c, firstHop: b, hops: [b], ...changes }) }
}

/** What became of what a neighbour brought; by `b` unless told otherwise. */
async function outcome(
  of: Scene,
  frame: RelayedFrame,
  by: FakeNode = of.b
): Promise<{ ran: boolean; kind: string; rule: string; struck: NodeId[] }> {
  const { world, c, agent } = of
  const [ran, events] = [agent.tasks.length, c.audit.events.length]
  c.links.strikes.length = 0
  put(by, c, frame)
  await world.settle()
  const event = c.audit.events.slice(events).at(-1)
  const struck = c.links.strikes.filter((one) => one.strike === 'forged').map((one) => one.peer)
  return { ran: agent.tasks.length > ran, kind: event?.kind ?? '', rule: event?.rule ?? '', struck }
}

/** Is it refused, and is who brought it struck? */
async function isForged(
  of: Scene,
  frame: RelayedFrame,
  { rule, by = of.b }: { rule: string; by?: FakeNode }
): Promise<void> {
  assert.deepEqual(await outcome(of, frame, by), { ran: false, kind: 'strike', rule, struck: [by.id] })
}

const WAY = 'hops: the way it came'
const SIGNED = 'origin: signed by its node'

test('a frame that its node signed for this route is accepted', async (t) => {
  const of = await scene(t)
  t.alike(await outcome(of, of.message()), { ran: true, kind: '', rule: '', struck: [] })
  const { b, d } = of
  t.is((await outcome(of, of.message({ hops: [b, d] }), d)).ran, true, 'also after two nodes')
})

test('nobody can put words into the mouth of another node: a forged origin, an altered body or header', async (t) => {
  const of = await scene(t)
  const { b } = of
  await isForged(of, of.message({ signer: b.actor }), { rule: SIGNED })
  const message = of.message()
  const content = message.content.slice()
  content[content.byteLength - 3] = 0x32
  await isForged(of, { ...message, content }, { rule: SIGNED })
  for (const changes of [{ origin: of.d.id }, { timestamp: message.timestamp + 1 }, { signature: new Uint8Array(64) }])
    await isForged(of, { ...message, ...changes }, { rule: SIGNED })
  t.is((await outcome(of, of.message())).ran, true)
})

test('a signature is good for one mesh, one recipient and one way', async (t) => {
  const of = await scene(t)
  const { b, d } = of
  await isForged(of, of.message({ mesh: actor('another mesh').id }), { rule: SIGNED })
  await isForged(of, of.message({ firstHop: d }), { rule: SIGNED })
  await isForged(of, of.message({ hops: [d] }), { rule: SIGNED, by: d })
  await isForged(of, of.message({ hops: [d, b] }), { rule: SIGNED })
  t.pass('a key before the first, or none of the first, is noticed')
})

test('the last hop is who brings it, and no node is passed twice, nor sender, recipient or reader at all', async (t) => {
  const of = await scene(t)
  const { a, b, c, d } = of
  for (const hops of [[], [b, d], [d, b, d], [b, d, b], [a, b], [c, b], [b, b]])
    await isForged(of, of.message({ hops }), { rule: WAY })
  await isForged(of, of.message({ hops: [b] }), { rule: WAY, by: d })
  await isForged(of, relayed(of.world, c, { to: c, firstHop: b, hops: [b] }), { rule: WAY })
  t.pass('each is a strike')
})

test('eight hops are taken', async (t) => {
  const of = await scene(t)
  const { world, b, c, d } = of
  const between = await Promise.all(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'].map((name) => world.member(name)))
  t.is((await outcome(of, of.message({ hops: [b, ...between.slice(1), d] }), d)).ran, true)
  t.is(
    c.core.observability.getRecentEvents().findLast((one) => one.messageType === 'request' && one.hops !== undefined)
      ?.hops?.length,
    8
  )
})

test('a removed member relays nothing and gets no relayed messages; a relay of its frames is not struck', async (t) => {
  const of = await scene(t)
  const { world, b, d } = of
  const owner = actor('owner')
  const refused = { ran: false, kind: 'refusal', rule: 'hops: members', struck: [] }
  const stranger = { ...d, id: actor('stranger').id, actor: actor('stranger') }
  t.alike(await outcome(of, of.message({ firstHop: stranger, hops: [stranger, b] })), refused)
  const message = of.message({ hops: [b, d] })
  world.log.model.revoke(owner, actor('b'))
  world.log.changed()
  t.alike(await outcome(of, message, d), refused)
  const another = of.message({ firstHop: d, hops: [d] })
  world.log.model.revoke(owner, actor('a'))
  world.log.changed()
  t.alike(await outcome(of, another, d), refused)
})

test('a member excluded for its strikes, or with an ended certificate, cannot enter over others', async (t) => {
  const of = await scene(t)
  const { world, a, c, message } = of
  const refused = { ran: false, kind: 'refusal', rule: 'hops: members', struck: [] }
  c.links.keptOut.add(a.id)
  t.alike(await outcome(of, message()), refused)
  c.links.keptOut.clear()
  t.is((await outcome(of, message())).ran, true)
  const certificate = world.log.model.certificateOf(a.actor)
  const ending = {
    ...certificate,
    serial: certificate.serial + 1,
    issuer: actor('owner').id,
    expiresAt: world.clock.now() + 1000
  }
  world.log.model.recertify(actor('owner'), ending)
  world.log.changed()
  t.is((await outcome(of, message())).ran, true)
  await world.pass(1001)
  t.alike(await outcome(of, message()), refused)
})

test('an envelope outside of a lane counts once; one that its node sends again is another frame', async (t) => {
  const of = await scene(t)
  const { a, c, d, world, agent } = of
  const repeated = { ran: false, kind: 'refusal', rule: 'hops: once', struck: [] }
  const message = of.message()
  t.is((await outcome(of, message)).ran, true)
  t.alike(await outcome(of, message), repeated)
  const note = of.message({ changes: { type: 'notification' as const, payload: { note: 1 } } })
  t.is((await outcome(of, note)).kind, '')
  t.alike(await outcome(of, note), repeated)
  // The same request, as its node sends it again, by another way and over a link that came up meanwhile.
  const [payload, ran] = [request('again'), agent.tasks.length]
  t.is((await outcome(of, of.message({ changes: { payload } }))).ran, true)
  t.is((await outcome(of, of.message({ changes: { payload }, firstHop: d, hops: [d] }), d)).ran, false)
  await world.link(a, c)
  forge(a, c, { payload })
  await world.settle()
  t.is(agent.tasks.length, ran + 1, 'one run, whose answer all get')
})

test('a message of a lane and a control message are taken as over a link, however often they come', async (t) => {
  const of = await scene(t)
  const { a, c, world, agent } = of
  const bytes = encodeEnvelope(envelope(a, c, { metadata: { tier: 1 } }))
  const frame = {
    source: 'operator',
    target: 'text',
    seq: 1,
    base: 1,
    messageId: 'm1',
    requestId: null,
    envelope: bytes
  }
  const message = of.message({ message: { kind: 'reliable', frame } })
  t.alike(await outcome(of, message), { ran: true, kind: '', rule: '', struck: [] })
  t.alike(await outcome(of, message), { ran: false, kind: '', rule: '', struck: [] }, 'its number is known')
  const heartbeat = of.message({
    message: { kind: 'control', name: 'heartbeat', body: { requests: ['r#1'], waiting: [] } }
  })
  t.alike(await outcome(of, heartbeat), { ran: false, kind: '', rule: '', struck: [] })
  t.is(agent.tasks.length, 1)
  await world.pass(300_001, 100_000)
  t.is((await outcome(of, message)).rule, 'hops: in time')
})

test('the origin alone answers for the content of a relayed frame', async (t) => {
  const of = await scene(t)
  const { a, d } = of
  const notRelayed = { kind: 'control', name: 'presence', body: { document: d.id, message: {} } } as const
  t.alike((await outcome(of, of.message({ message: notRelayed }))).struck, [a.id])
  const malformed = { kind: 'control', name: 'heartbeat', body: { requests: 1 } } as const
  t.alike((await outcome(of, of.message({ message: malformed }))).struck, [a.id])
  const hops = { metadata: { tier: 1 as const, hops: [d.id] } }
  t.alike(await outcome(of, of.message({ changes: hops })), {
    ran: false,
    kind: 'strike',
    rule: 'hops: noted by the receiver',
    struck: [a.id]
  })
})

test('a frame signed too long ago, too far ahead, or before this node started is refused', async (t) => {
  const of = await scene(t)
  const { world } = of
  const untimely = { ran: false, kind: 'refusal', rule: 'hops: in time', struck: [] }
  const at = (timestamp: number): Promise<unknown> => outcome(of, of.message({ at: timestamp }))
  const started = world.clock.now()
  t.alike(await at(started - 1), untimely)
  await world.pass(400_000, 100_000)
  t.alike(await at(world.clock.now() - 300_001), untimely)
  t.alike(await at(world.clock.now() + 300_001), untimely)
  t.ok(of.c.audit.events.at(-1)?.reason?.startsWith('the clock of this node is 5 min behind that of the message'))
  t.is((await outcome(of, of.message())).ran, true)
})

test('a neighbour that floods with messages of others is not read for a while, and others are', async (t) => {
  const of = await scene(t)
  const { b, c, d, world, message } = of
  const frame = message()
  for (let i = 0; i < 4100; i++) put(b, c, frame)
  await world.settle()
  t.alike(await outcome(of, message()), {
    ran: false,
    kind: 'refusal',
    rule: 'hops: a rate for each neighbour',
    struck: []
  })
  t.is((await outcome(of, message({ firstHop: d, hops: [d] }), d)).ran, true)
  await world.pass(1000)
  t.is((await outcome(of, message())).ran, true)
})
