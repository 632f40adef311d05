import test, { type Assert } from 'brittle'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { decodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { OutboundDraft } from '../../../src/node/messaging/outbound.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, SETTINGS, World } from '../../support/fake-node.js'
import { isOpen } from '../../support/exchanges.js'

async function pair(t: Assert): Promise<{ world: World; here: FakeNode; peer: FakeNode; draft: OutboundDraft }> {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('text'), echo('weak', { tier: 3 })] })
  await world.link(here, peer)
  const draft: OutboundDraft = {
    sender: { agentId: 'operator', nodeId: here.id },
    recipient: { agentId: 'text', nodeId: peer.id },
    type: 'notification',
    payload: { input: 1 }
  }
  return { world, here, peer, draft }
}

/** Envelopes that left a node. */
function sent(node: FakeNode): A2AEnvelope[] {
  return node.links.open.flatMap((link) =>
    link.sent.flatMap((frame) => {
      const read = frame[0] === 0 ? decodeEnvelope(frame.subarray(1)) : null
      if (read === null || !read.ok) return []
      const payload = read.payload()
      return [{ ...read.header, payload: payload.ok ? payload.value : undefined }]
    })
  )
}

test('a message is stamped: id, version, time, and the tier of its sender', async (t) => {
  const { world, here, draft } = await pair(t)
  const envelope = await here.core.outbound.send({ ...draft, correlationId: 'thr_1', justification: 'why' })
  t.is(envelope.schemaVersion, 1)
  t.is(envelope.timestamp, world.clock.now())
  t.is(envelope.sender, `operator@${here.id}`)
  t.is(envelope.correlationId, 'thr_1')
  t.alike(envelope.metadata, { tier: 1, justification: 'why' })
  t.alike(sent(here), [envelope], 'and leaves as it is')
  t.not((await here.core.outbound.send(draft)).id, envelope.id)
})

test('nobody can send as an agent that is not there, or to one that nobody knows', async (t) => {
  const { here, peer, draft } = await pair(t)
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    here.core.outbound.send({ ...draft, sender: { agentId: 'ghost', nodeId: here.id } })
  )
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    here.core.outbound.send({ ...draft, recipient: { agentId: 'ghost', nodeId: peer.id } })
  )
  t.is(sent(here).length, 0)
})

test('a message refused by the rules never leaves, and is on record here', async (t) => {
  const { here, peer, draft } = await pair(t)
  const error = await failsWith(t, 'TIER_VIOLATION', () =>
    here.core.outbound.send({ ...draft, recipient: { agentId: 'weak', nodeId: peer.id } })
  )
  t.alike(error.data, { rule: 'tier: L1 may open to L0, L1' })
  t.is(sent(here).length, 0)
  const [event] = here.audit.events
  t.is(event?.rule, 'tier: L1 may open to L0, L1')
  t.is(event?.recipient, `weak@${peer.id}`)
  t.alike(
    [event?.peer, event?.sourceTier, event?.targetTier],
    [peer.id, 'L1', 'L3'],
    'whom it was for, and their tiers'
  )
  t.is(here.counted('routing_decisions', 'TIER_VIOLATION'), 1)
  const shown = here.core.events.recent().find((one) => one.type === 'refusal')
  t.alike(shown?.data, {
    code: 'TIER_VIOLATION',
    rule: 'tier: L1 may open to L0, L1',
    sender: 'operator@here',
    recipient: 'weak@peer'
  })
})

test('a message for somebody weaker is as weak as that one, and says so', async (t) => {
  const { world, here, draft } = await pair(t)
  const onBehalfOf = { maxTier: 3 as const, sandboxId: null }
  await failsWith(t, 'ESCALATION_REQUIRED', () => here.core.outbound.send({ ...draft, onBehalfOf }))
  const envelope = await here.core.outbound.send({ ...draft, onBehalfOf, justification: 'asked to' })
  t.is(envelope.metadata?.tier, 3)
  await failsWith(t, 'SANDBOX_VIOLATION', () =>
    here.core.outbound.send({ ...draft, onBehalfOf: { maxTier: 1, sandboxId: 'ci' } })
  )
  await world.settle()
  t.is(here.counted('messages_sent', 'notification'), 1)
})

test('asking the rules changes nothing and leaves no record', async (t) => {
  const { here, peer, draft } = await pair(t)
  t.is(here.core.outbound.verdict(draft).allowed, true)
  t.is(here.core.outbound.verdict({ ...draft, recipient: { agentId: 'weak', nodeId: peer.id } }).allowed, false)
  t.alike(here.audit.events, [])
  t.is(here.counted('routing_decisions', 'TIER_VIOLATION'), 0)
})

test('a peer without a link is dialled; one that cannot be reached is offline', async (t) => {
  const { world, here, peer, draft } = await pair(t)
  world.net.disconnect(here.id, peer.id)
  await failsWith(t, 'PEER_OFFLINE', () => here.core.outbound.send(draft))
  here.links.reachable.add(peer.id)
  await here.core.outbound.send(draft)
  t.is(sent(here).length, 1)
})

test('a message too large for an envelope is refused before it opens an exchange', async (t) => {
  const { here, peer, draft } = await pair(t)
  const payload = { bytes: new Uint8Array(17 * 1024 * 1024) }
  const replies = { ttlMs: 1000, handler: () => {} }
  await failsWith(t, 'PAYLOAD_TOO_LARGE', () =>
    here.core.outbound.send({ ...draft, type: 'request', correlationId: 'thr_1', payload, replies })
  )
  t.absent(
    isOpen(here, { peer: peer.id, correlationId: 'thr_1', own: draft.sender.agentId, other: draft.recipient.agentId })
  )
})

test('a check that refuses a message counts as an error, for any reason', async (t) => {
  const { here, peer, draft } = await pair(t)
  const { observability } = here.core
  for (const [agentId, code] of [
    ['weak', 'TIER_VIOLATION'],
    ['ghost', 'AGENT_NOT_FOUND']
  ] as const) {
    const before = observability.getMetrics().errorCount
    await failsWith(t, code, () =>
      Promise.resolve().then(() => here.core.outbound.check({ ...draft, recipient: { agentId, nodeId: peer.id } }))
    )
    t.is(observability.getMetrics().errorCount - before, 1, code)
  }
  here.core.outbound.check(draft)
  t.is(observability.getMetrics().totalMessagesSent, 0, 'a check sends nothing')
})

test('an exchange that could not begin is closed again', async (t) => {
  const { world, here, peer, draft } = await pair(t)
  const link = here.links.open[0]
  link.closed = true
  const replies = { ttlMs: 1000, handler: () => {} }
  const sending = failsWith(t, 'DELIVERY_FAILED', () =>
    here.core.outbound.send({ ...draft, type: 'request', correlationId: 'thr_1', replies })
  )
  await world.pass(2000)
  await sending
  t.absent(
    isOpen(here, { peer: peer.id, correlationId: 'thr_1', own: draft.sender.agentId, other: draft.recipient.agentId })
  )
})

test('a message for an agent of this node takes the same inbound pipeline', async (t) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('text'), () => ({ ok: true, result: null }))
  const here = await world.member('here', { agents: [agent, echo('weak', { tier: 3 })] })
  const sender = { agentId: 'operator', nodeId: here.id }
  await here.core.outbound.send({
    sender,
    recipient: { agentId: 'text', nodeId: here.id },
    type: 'notification',
    payload: { input: 7 }
  })
  await world.settle()
  t.is(agent.tasks[0]?.input, 7)
  await failsWith(t, 'TIER_VIOLATION', () =>
    here.core.outbound.send({
      sender,
      recipient: { agentId: 'weak', nodeId: here.id },
      type: 'notification',
      payload: {}
    })
  )
})

test('a reply to an agent without a card passes along its exchange, but not when replies are strict', async (t) => {
  for (const replies of ['exchange', 'strict'] as const) {
    const world = new World(t)
    const here = await world.member('here', { settings: { rules: { ...SETTINGS.rules, replies } } })
    const peer = await world.member('peer')
    await world.link(here, peer)
    const reply = {
      sender: { agentId: 'operator', nodeId: here.id },
      recipient: { agentId: 'ghost', nodeId: peer.id },
      type: 'error' as const,
      payload: {},
      correlationId: 'thr_1'
    }
    here.core.exchanges.letIn(reply, 1000)
    if (replies === 'exchange') t.ok(await here.core.outbound.send(reply))
    else await failsWith(t, 'AGENT_NOT_FOUND', () => here.core.outbound.send(reply))
  }
})

test('refusals in a flood are all on record, but do not fill the events', async (t) => {
  const { world, here, peer, draft } = await pair(t)
  const refused = { ...draft, recipient: { agentId: 'weak', nodeId: peer.id } }
  for (let i = 0; i < 50; i++) await here.core.outbound.send(refused).catch(() => {})
  const shown = (): number => here.core.events.recent().filter((one) => one.type === 'refusal').length
  t.is(here.audit.events.length, 50)
  t.is(shown(), 20)
  world.clock.advance(1000)
  await here.core.outbound.send(refused).catch(() => {})
  t.is(shown(), 21)
  t.is(here.core.events.recent().at(-1)?.data['notShownBefore'], 30)
})

test('a call to any agent with a capability that may not be sent to one is refused on record: audit, metric and event', async (t) => {
  const { here, peer } = await pair(t)
  await failsWith(t, 'TIER_VIOLATION', () =>
    here.api().call('message.call', { agent: null, capability: 'weak.do', input: {} })
  )
  const [line, ...others] = here.audit.of('refusal')
  t.alike([line?.code, line?.recipient, others.length], ['TIER_VIOLATION', `weak@${peer.id}`, 0])
  t.is(here.counted('messages_refused', 'TIER_VIOLATION'), 1)
  t.is(here.core.events.recent().filter((one) => one.type === 'refusal').length, 1)
})

test('a request that would wait for its peer and is refused by the rules is on record once', async (t) => {
  const { world, here, peer } = await pair(t)
  world.net.disconnect(here.id, peer.id)
  const call = { agent: 'weak@peer', capability: 'weak.do', input: {}, wait: false }
  await failsWith(t, 'TIER_VIOLATION', () => here.api().call('message.call', call))
  t.alike(
    here.audit.of('refusal').map(({ recipient }) => recipient),
    [`weak@${peer.id}`]
  )
})

test('agents that the rules keep out of a swarm are refused on record, each once a swarm and each time it is invited', async (t) => {
  const world = new World(t)
  const shared = [capability('x.do')]
  const here = await world.member('here', {
    agents: [new FakeAgent(agentDefinition('text', { capabilities: shared }))]
  })
  const peer = await world.member('peer', { agents: [echo('weak', { tier: 3, capabilities: shared })] })
  await world.link(here, peer)
  const { id } = await here.api().call('swarm.start', { goal: 'g', capability: 'x.do', strategy: 'each', input: {} })
  const seen = (): string[] =>
    here.audit.of('refusal').map(({ recipient, messageType }) => `${messageType} ${recipient}`)
  const line = `task-proposal weak@${peer.id}`
  t.alike(seen(), [line])
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => here.core.swarms.invite(id, `weak@${peer.id}`))
  t.alike(seen(), [line, line])
  await world.pass(1500)
  t.alike(seen(), [line, line])
})
