import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { FRESH_READER, readFrame } from '../../../src/domain/channel/frames.js'
import { decodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { EnvelopeHeader } from '../../../src/domain/envelope/codec.js'
import { MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import type { MessageType } from '../../../src/domain/envelope/envelope.js'
import { TIERS, tierText, type Tier } from '../../../src/domain/routing/tier.js'
import type { AttachedAgent } from '../../../src/node/agents/in-process-agents.js'
import type { A2ALogEvent } from '../../../src/node/observe/observability.js'
import type { MetricName } from '../../../src/ports/telemetry.js'
import { arbA2AEnvelope } from '../../../src/testing.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge, forgeControl, sendFrames } from '../../support/forge.js'
import { holds } from '../../support/holds.js'

type Header = Pick<EnvelopeHeader, 'id' | 'sender' | 'recipient' | 'type'>

interface Mesh {
  readonly world: World
  readonly nodes: readonly FakeNode[]
  readonly programs: readonly AttachedAgent[]
  /** Effective tier by address, as this test made the agents. */
  readonly tiers: ReadonlyMap<string, Tier>
}

/** Two strong nodes and a weak one; on each, a program of every tier that answers requests. */
async function mesh(t: Assert): Promise<Mesh> {
  const world = new World(t)
  const nodes = [
    await world.owner(),
    await world.member('one', { terms: { tier: 0 } }),
    await world.member('weak', { terms: { tier: 2 } })
  ] as const
  await world.link(...nodes)
  const programs: AttachedAgent[] = []
  const tiers = new Map<string, Tier>()
  for (const [index, node] of nodes.entries()) {
    for (const tier of TIERS) {
      const program = await node.core.attach({
        id: `p${tier}`,
        tier,
        onMessage: (message, reply) => answer(message.type, reply)
      })
      programs.push(program)
      tiers.set(program.address, index === 2 ? (Math.max(2, tier) as Tier) : tier)
    }
  }
  await world.settle()
  return { world, nodes, programs, tiers }
}

function answer(type: MessageType, reply: (payload: unknown) => Promise<void>): void {
  if (type === 'request') void reply('done').catch(() => {})
}

interface Sending {
  readonly from: number
  readonly to: number
  readonly type: MessageType
  readonly isJustified: boolean
}

const arbSendings = fc.array(
  fc.record({
    from: fc.nat(11),
    to: fc.nat(11),
    type: fc.constantFrom<MessageType[]>('request', 'notification', 'task-proposal', 'stream-start'),
    isJustified: fc.boolean()
  }),
  { minLength: 1, maxLength: 8 }
)

interface Run {
  /** Messages that went over a link, by who sent them. */
  readonly wire: readonly Header[]
  /** Messages between agents of one node that its rules let pass. */
  readonly here: readonly Header[]
  /** How many were refused before they left. */
  readonly refused: number
}

/** The envelope that a frame carries, over a lane or not; null for what else it is. */
function envelopeOf(frame: Uint8Array): Uint8Array | null {
  const { message } = readFrame(FRESH_READER, frame)
  if (message?.kind === 'envelope') return message.bytes
  return message?.kind === 'reliable' ? message.frame.envelope : null
}

/** Sends them all, within one node notifications only; what the links carried is read from the links themselves. */
async function play({ world, nodes, programs }: Mesh, sendings: readonly Sending[]): Promise<Run> {
  const links = nodes.flatMap((node) => node.links.open)
  const marks = links.map((link) => link.sent.length)
  const here: Header[] = []
  let refused = 0
  for (const { from, to, type: wanted, isJustified } of sendings) {
    const [sender, recipient] = [programs[from], programs[to]]
    const isHere = Math.floor(from / 4) === Math.floor(to / 4)
    const type = isHere ? 'notification' : wanted
    const payload = type === 'task-proposal' ? {} : 'hello'
    const draft = {
      recipient: recipient?.address ?? '',
      type,
      payload,
      ...(isJustified ? { justification: 'because' } : {})
    }
    const sent = await sender?.send(draft).catch(() => null)
    if (sent === null || sent === undefined) refused++
    else if (isHere) here.push(sent)
  }
  await world.settle()
  const wire = links.flatMap((link, index) =>
    link.sent.slice(marks[index]).flatMap((frame) => {
      const bytes = envelopeOf(frame)
      const read = bytes === null ? null : decodeEnvelope(bytes)
      return read?.ok === true ? [read.header] : []
    })
  )
  return { wire, here, refused }
}

function isOf(node: FakeNode, address: string): boolean {
  return address.endsWith(`@${node.id}`)
}

test('Feature: a2a-mcp-protocols, Property 17: Routing event emission', async (t: Assert) => {
  const all = await mesh(t)
  const property = fc.asyncProperty(arbSendings, async (sendings) => {
    const marks = all.nodes.map((node) => node.core.observability.getRecentEvents().at(-1) ?? null)
    const { wire, here, refused } = await play(all, sendings)
    let failures = 0
    for (const [index, node] of all.nodes.entries()) {
      const recent = node.core.observability.getRecentEvents()
      const decisions = recent
        .slice(recent.findLastIndex((one) => same(one, marks[index])) + 1)
        .filter((one) => one.type === 'routing-decision')
      failures += decisions.filter((one) => one.success === false).length
      const passed = decisions.filter((one) => one.success !== false)
      assert.ok(passed.every(({ duration = -1 }) => duration >= 0))
      const expected = [
        ...wire
          .filter((one) => isOf(node, one.sender) || isOf(node, one.recipient))
          .map((one) => routed(one, 'remote')),
        ...here.filter((one) => isOf(node, one.sender)).map((one) => routed(one, 'local'))
      ]
      assert.deepEqual(
        passed.map((one) => `${one.envelopeId} ${one.sender} ${one.recipient} ${one.routingPath}`).sort(),
        expected.sort()
      )
    }
    assert.equal(failures, refused)
  })
  await holds(t, property, 100)
})

function routed({ id, sender, recipient }: Header, path: string): string {
  return `${id} ${sender} ${recipient} ${path}`
}

function same(event: A2ALogEvent, mark: A2ALogEvent | null | undefined): boolean {
  return event === mark
}

test('the messages of a broadcast say that they are of one', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('text')] })
  await world.link(owner, peer)
  await owner.api().call('message.send', { agent: '*', text: 'hello', type: 'notification', all: true })
  await world.settle()
  const decisions = owner.core.observability.getRecentEvents().filter((one) => one.type === 'routing-decision')
  t.alike(decisions.map((one) => `${one.recipient} ${one.routingPath}`).sort(), [
    ...[`operator@${peer.id}`, `text@${owner.id}`, `text@${peer.id}`].sort().map((one) => `${one} broadcast`)
  ])
})

test('the latency of a message is the time it took to be handed to its channel', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [echo('text')] })
  await world.link(owner, peer)
  world.net.disconnect(owner.id, peer.id)
  owner.links.reachable.add(peer.id)
  const sending = owner.core.outbound.send({
    sender: { agentId: 'operator', nodeId: owner.id },
    recipient: { agentId: 'text', nodeId: peer.id },
    type: 'notification',
    payload: { input: 1 }
  })
  world.clock.advance(40)
  await sending
  t.is(owner.core.observability.getMetrics().averageRoutingLatencyMs, 40)
  const timing = owner.core.deps.telemetry.snapshot().timings.find((one) => one.name === 'routing_ms')
  t.is(timing?.sumMs, 40)
})

test('a decision is timed from the arrival of its message, and reported with the time of its end', async (t: Assert) => {
  const world = new World(t)
  const { core } = await world.owner({ agents: [echo('text')] })
  const party = { address: `text@${core.deps.membership.nodeId}`, tier: 0, sandboxId: null } as const
  const since = world.clock.monotonic()
  world.clock.advance(7)
  const about = {
    type: 'request',
    justification: null,
    isReply: false,
    isArriving: true,
    capability: null,
    sideEffect: null
  } as const
  const { verdict, at } = core.accessControl.decide({ ...about, sender: party, target: party }, since)
  t.alike([verdict.allowed, at - since], [true, 7])
  const timing = core.deps.telemetry.snapshot().timings.find((one) => one.name === 'routing_decision_ms')
  t.is(timing?.sumMs, 7)
})

test('Feature: a2a-mcp-protocols, Property 31: Cross-tier audit logging', async (t: Assert) => {
  const all = await mesh(t)
  const property = fc.asyncProperty(arbSendings, async (sendings) => {
    for (const node of all.nodes) node.audit.all.length = 0
    const { wire, here } = await play(all, sendings)
    for (const node of all.nodes) {
      const expected = [
        ...across(
          all,
          wire.filter((one) => isOf(node, one.sender)),
          'sent'
        ),
        ...across(
          all,
          wire.filter((one) => isOf(node, one.recipient)),
          'received'
        ),
        ...across(
          all,
          here.filter((one) => isOf(node, one.sender)),
          'local'
        )
      ]
      const lines = node.audit.of('cross-tier')
      assert.deepEqual(
        lines
          .map(
            (one) => `${one.code} ${one.sender} ${one.recipient} ${one.messageType} ${one.sourceTier} ${one.targetTier}`
          )
          .sort(),
        expected.sort()
      )
      assert.ok(
        lines.every(
          (one) => one.rule !== undefined && (one.code === 'local') === (one.peer === undefined) && one.peer !== node.id
        )
      )
    }
  })
  await holds(t, property, 100)
})

/** What must be on record of messages whose two ends differ in tier. */
function across({ tiers }: Mesh, messages: readonly Header[], code: string): string[] {
  return messages.flatMap(({ sender, recipient, type }) => {
    const [from, to] = [tiers.get(sender), tiers.get(recipient)]
    if (from === undefined || to === undefined) throw new Error('a message of nobody')
    return from === to ? [] : [`${code} ${sender} ${recipient} ${type} ${tierText(from)} ${tierText(to)}`]
  })
}

test('Feature: a2a-mcp-protocols, Property 32: A2A message metrics accuracy', async (t: Assert) => {
  const all = await mesh(t)
  const property = fc.asyncProperty(arbSendings, async (sendings) => {
    for (const node of all.nodes) node.core.observability.resetMetrics()
    const before = all.nodes.map((node) => [byType(node, 'messages_sent'), byType(node, 'messages_received')] as const)
    const { wire, here } = await play(all, sendings)
    for (const [index, node] of all.nodes.entries()) {
      const within = here.filter((one) => isOf(node, one.sender))
      const sent = [...wire.filter((one) => isOf(node, one.sender)), ...within]
      const received = [...wire.filter((one) => isOf(node, one.recipient)), ...within]
      const metrics = node.core.observability.getMetrics()
      assert.equal(metrics.totalMessagesSent, sent.length)
      assert.equal(metrics.totalMessagesReceived, received.length)
      // A message within the node was sent and received, and is one message.
      const once = new Map([...sent, ...received].map((one) => [one.id, one]))
      assert.deepEqual(metrics.messagesByType, counts([...once.values()]))
      assert.deepEqual(minus(byType(node, 'messages_sent'), before[index]?.[0]), counts(sent))
      assert.deepEqual(minus(byType(node, 'messages_received'), before[index]?.[1]), counts(received))
    }
  })
  await holds(t, property, 100)
})

type Counts = Record<MessageType, number>

function counts(messages: readonly Header[]): Counts {
  return Object.fromEntries(
    MESSAGE_TYPES.map((type) => [type, messages.filter((one) => one.type === type).length])
  ) as Counts
}

function byType(node: FakeNode, name: MetricName): Counts {
  return Object.fromEntries(MESSAGE_TYPES.map((type) => [type, node.counted(name, type)])) as Counts
}

function minus(now: Counts, before: Counts | undefined): Counts {
  return Object.fromEntries(MESSAGE_TYPES.map((type) => [type, now[type] - (before?.[type] ?? 0)])) as Counts
}

test('labels of metrics are words of this node, for any messages of a peer', async (t: Assert) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const arbBytes = fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => [Uint8Array.from([0, ...bytes])])
  const property = fc.asyncProperty(
    arbA2AEnvelope(),
    arbBytes,
    fc.jsonValue({ maxDepth: 2 }),
    async (any, bytes, body) => {
      const envelope = { ...any, id: `evil${any.id}`, correlationId: `evil${any.id}`, sender: `evil${any.sender}` }
      forge(peer, here, envelope)
      forge(peer, here, { ...envelope, sender: `operator@${peer.id}`, recipient: `text@${here.id}` })
      sendFrames(peer, here, bytes)
      forgeControl(peer, here, { name: 'heartbeat', body })
      await world.settle()
      if (here.links.open.length === 0) await world.link(here, peer)
      const labels = here.core.deps.telemetry.snapshot().counters.flatMap(({ label }) => label ?? [])
      assert.ok(
        labels.every((label) => /^[a-zA-Z_-]{1,40}$/.test(label)),
        labels.join(' ')
      )
      assert.ok(!labels.some((label) => label.includes('evil')))
    }
  )
  await holds(t, property, 100)
})

test('claims of a peer about itself are safe to show among the events', async (t: Assert) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const evil = '\u001b[31m\nred\u202e'
  forge(peer, here, { id: evil, correlationId: evil, sender: `${evil}@${peer.id}`, recipient: `${evil}@${here.id}` })
  await world.settle()
  const told = here.core.observability.getRecentEvents().filter(({ sender = '' }) => sender.includes('red'))
  t.alike(
    told.map(({ type }) => type),
    ['message-received', 'routing-decision']
  )
  for (const { envelopeId = '', sender = '', recipient = '' } of told) {
    t.is(envelopeId, '[31m red')
    t.absent(/[\p{Cc}\u202e]/u.test(sender + recipient))
  }
  const before = here.core.observability.getRecentEvents().length
  forge(peer, here, { id: evil, correlationId: evil })
  await world.settle()
  const delivered = here.core.observability.getRecentEvents().slice(before)
  t.is(here.counted('messages_delivered', 'request'), 1)
  t.ok(delivered.some(({ type, success }) => type === 'routing-decision' && success === true))
  // The answer goes back along a thread that the peer has named.
  for (const event of delivered) t.absent(/[\p{Cc}\u202e]/u.test(Object.values(event).join('')), event.type)
})
