import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { encodeMessage } from '../../../src/domain/channel/frames.js'
import { encodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { DEFAULT_TIER_RULES } from '../../../src/domain/routing/tier-rules.js'
import { CLAIM_WAIT_MS } from '../../../src/node/messaging/verify.js'
import type { MetricName } from '../../../src/ports/telemetry.js'
import { arbA2AEnvelope } from '../../../src/testing.js'
import { echo, FakeAgent, agentDefinition } from '../../support/fake-agents.js'
import { type FakeNode, SETTINGS, World } from '../../support/fake-node.js'
import { envelope, forge, request, sendFrames } from '../../support/forge.js'
import { holds } from '../../support/holds.js'
import { isOpen } from '../../support/exchanges.js'

interface Pair {
  readonly world: World
  /** L1 with an agent `text`. */
  readonly here: FakeNode
  /** L1 unless told otherwise. */
  readonly peer: FakeNode
  readonly agent: FakeAgent
}

/** A member's node that is written to, and another member that writes. */
async function pair(t: Assert, terms: { here?: object; peer?: object; agent?: object } = {}): Promise<Pair> {
  const world = new World(t)
  const agent = echo('text', terms.agent)
  const here = await world.member('here', { agents: [agent], terms: terms.here ?? {} })
  const peer = await world.member('peer', { agents: [echo('weak', { tier: 3 })], terms: terms.peer ?? {} })
  await world.link(here, peer)
  return { world, here, peer, agent }
}

/** Codes and rules of what was refused, and whether the agent got anything. */
async function refusalOf(
  { world, here, peer, agent }: Pair,
  changes: Partial<A2AEnvelope>
): Promise<{ rule: string; code: string }> {
  const before = agent.tasks.length
  forge(peer, here, changes)
  await world.settle()
  // A claim ahead of the log waits for its entry.
  if (changes.metadata !== undefined) await world.pass(2 * CLAIM_WAIT_MS)
  assert.equal(agent.tasks.length, before, 'nothing ran')
  const event = here.audit.events.at(-1)
  return { rule: event?.rule ?? '', code: event?.code ?? '' }
}

test('an honest request comes in, runs and is answered', async (t) => {
  const { world, here, peer, agent } = await pair(t)
  forge(peer, here, { metadata: { tier: 1 } })
  await world.settle()
  t.is(agent.tasks.length, 1)
  t.is(here.counted('messages_delivered', 'request'), 1)
  t.is(here.counted('messages_sent', 'response'), 1)
  t.alike(here.audit.events, [])
})

test('a sender of another node than the stream is refused as a strike', async (t) => {
  const pairing = await pair(t)
  const { here } = pairing
  const sender = `operator@${here.id}`
  t.alike(await refusalOf(pairing, { sender }), { rule: 'sender: the key of the stream', code: 'FORBIDDEN' })
  t.is(here.audit.events.at(-1)?.kind, 'strike')
  t.alike(here.links.strikes, [{ peer: pairing.peer.id, strike: 'forged' }])
  t.alike(await refusalOf(pairing, { sender: 'nonsense' }), {
    rule: 'sender: the key of the stream',
    code: 'FORBIDDEN'
  })
})

test('a sender without a card is refused, with the reason', async (t) => {
  const pairing = await pair(t)
  const refusal = await refusalOf(pairing, { sender: `ghost@${pairing.peer.id}` })
  t.alike(refusal, { rule: 'sender: a signed card', code: 'FORBIDDEN' })
  t.alike(pairing.here.links.strikes, [], 'cards come by other ways: to be ahead of them is no offence')
  t.is(pairing.here.counted('messages_sent', 'error'), 1)
})

test('a claim of more than certificate and card give is refused; a weaker one is honoured', async (t) => {
  const pairing = await pair(t, { here: { tier: 1 } })
  const { peer, here, world, agent } = pairing
  t.alike(await refusalOf(pairing, { metadata: { tier: 0 } }), { rule: 'claims: as certified', code: 'FORBIDDEN' })
  t.alike(await refusalOf(pairing, { sender: `weak@${peer.id}`, metadata: { tier: 1 } }), {
    rule: 'claims: as certified',
    code: 'FORBIDDEN'
  })
  t.is(here.audit.events.at(-1)?.kind, 'strike')
  t.alike(await refusalOf(pairing, { metadata: { tier: 3 } }), {
    rule: 'escalation: L3 to L1 needs a justification',
    code: 'ESCALATION_REQUIRED'
  })
  forge(peer, here, { metadata: { tier: 3, justification: 'a test' } })
  await world.settle()
  t.is(agent.tasks.length, 1)
})

test('each way to lie counts as much against a peer as it can be meant, being ahead of a card nothing', async (t) => {
  const pairing = await pair(t)
  const { here, peer } = pairing
  const strikes = async (changes: Partial<A2AEnvelope>): Promise<readonly string[]> => {
    const before = here.links.strikes.length
    await refusalOf(pairing, changes)
    return here.links.strikes.slice(before).map((one) => one.strike)
  }
  t.alike(await strikes({ sender: `operator@${here.id}` }), ['forged'])
  t.alike(await strikes({ recipient: `text@${peer.id}` }), ['forged'])
  t.alike(await strikes({ metadata: { tier: 0 } }), ['doubtful'])
  t.alike(await strikes({ sender: `ghost@${peer.id}` }), [])
})

test('a weak agent on a strong node is weak', async (t) => {
  const pairing = await pair(t)
  const refusal = await refusalOf(pairing, { sender: `weak@${pairing.peer.id}`, metadata: { tier: 3 } })
  t.is(refusal.code, 'ESCALATION_REQUIRED')
  t.is(
    (await refusalOf(pairing, { sender: `weak@${pairing.peer.id}` })).code,
    'ESCALATION_REQUIRED',
    'also when it claims nothing'
  )
})

test('a recipient of another node, or none at all, is refused', async (t) => {
  const pairing = await pair(t)
  const { here, peer } = pairing
  t.alike(await refusalOf(pairing, { recipient: `text@${peer.id}` }), {
    rule: 'recipient: an agent of this node',
    code: 'AGENT_NOT_FOUND'
  })
  t.is(here.audit.events.at(-1)?.kind, 'strike')
  t.is((await refusalOf(pairing, { recipient: '*' })).code, 'AGENT_NOT_FOUND')
  t.is((await refusalOf(pairing, { recipient: `nobody@${here.id}` })).code, 'AGENT_NOT_FOUND')
  t.is(here.audit.events.at(-1)?.kind, 'refusal', 'an agent may have gone: no strike')
})

test('a message that is no request for the agent is answered with an error, not run', async (t) => {
  const { world, here, peer, agent } = await pair(t)
  for (const payload of [
    null,
    7,
    { requestId: '', attempt: 1, capability: null, input: {} },
    { ...request('r'.repeat(49)) },
    request('r', { attempt: 0 }),
    request('r', { capability: 'text.unknown' })
  ])
    forge(peer, here, { payload })
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.is(here.counted('messages_sent', 'error'), 6)
})

test('bytes that are no envelope are a strike, and never throw', async (t) => {
  const { world, here, peer } = await pair(t)
  const property = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
    here.core.inbound.receive(peer.id, bytes)
    return Promise.resolve(true)
  })
  await holds(t, property, 300)
  sendFrames(
    peer,
    here,
    encodeMessage({ kind: 'envelope', bytes: new Uint8Array([1, 2, 3]) }, () => 1)
  )
  await world.settle()
  t.is(here.audit.events.at(-1)?.kind, 'strike')
  t.is(here.audit.events.at(-1)?.rule, 'envelope')
  t.is(here.counted('errors', 'inbox'), 0)
})

test('any envelope at all is either let in or on record', async (t) => {
  const { world, here, peer } = await pair(t)
  const property = fc.asyncProperty(arbA2AEnvelope(), fc.boolean(), async (any, isAddressed) => {
    const [received, delivered] = [total(here, 'messages_received'), total(here)]
    const [records, late] = [here.audit.events.length, here.counted('messages_refused', 'late')]
    forge(peer, here, isAddressed ? { ...any, sender: `operator@${peer.id}`, recipient: `text@${here.id}` } : any)
    await world.settle()
    if (any.metadata !== undefined) await world.pass(2 * CLAIM_WAIT_MS, 1000)
    assert.equal(total(here, 'messages_received'), received + 1)
    const answered = total(here) - delivered + (here.counted('messages_refused', 'late') - late)
    assert.equal(here.audit.events.length - records + answered, 1)
  })
  await holds(t, property, 150)
  t.is(here.counted('errors', 'inbox'), 0)
})

function total(node: FakeNode, name: MetricName = 'messages_delivered'): number {
  const { counters } = node.core.deps.telemetry.snapshot()
  return counters.filter((one) => one.name === name).reduce((sum, one) => sum + one.value, 0)
}

test('only the tiers of certificate and card decide who may open: the whole table', async (t) => {
  const tiers: readonly Tier[] = [0, 1, 2, 3]
  const world = new World(t)
  const [owner] = [await world.owner()]
  const agent = new FakeAgent(agentDefinition('text'), () => ({ ok: true, result: null }))
  const nodes = await Promise.all(
    tiers.map((tier) =>
      world.member(`n${tier}`, { agents: tier === 2 ? [agent] : [echo('text')], terms: { tier, admin: false } })
    )
  )
  await world.link(owner, ...nodes)
  for (const from of tiers)
    for (const to of tiers) {
      if (from === to) continue
      for (const type of ['request', 'notification', 'task-proposal'] as const)
        for (const justification of [undefined, 'because']) {
          const rule = DEFAULT_TIER_RULES[from]
          const isEscalation = rule.requiresEscalationJustification && to < from && to <= 1
          const expected = !rule.allowedTargetTiers.includes(to)
            ? 'TIER_VIOLATION'
            : isEscalation && justification === undefined
              ? 'ESCALATION_REQUIRED'
              : null
          const before = nodes[to].audit.events.length
          forge(nodes[from], nodes[to], {
            type,
            metadata: { tier: from, ...(justification === undefined ? {} : { justification }) }
          })
          await world.settle()
          const events = nodes[to].audit.events.slice(before)
          assert.deepEqual(
            events.map((one) => one.code),
            expected === null ? [] : [expected],
            `${type} L${from} to L${to}`
          )
        }
    }
  t.pass('every pair and type')
})

test('a sandboxed sender reaches its sandbox alone', async (t) => {
  const outside = await pair(t, { peer: { sandboxId: 'ci' } })
  const metadata = { tier: 1 as const, sandboxId: 'ci' }
  t.is((await refusalOf(outside, { metadata })).code, 'SANDBOX_VIOLATION')
  t.is(
    (await refusalOf(outside, { metadata: { tier: 1 } })).rule,
    'claims: as certified',
    'it cannot leave its sandbox out'
  )
  t.is((await refusalOf(outside, {})).code, 'SANDBOX_VIOLATION', 'nor say nothing')
  const inside = await pair(t, { here: { sandboxId: 'ci' }, peer: { sandboxId: 'ci' } })
  forge(inside.peer, inside.here, { metadata })
  await inside.world.settle()
  t.is(inside.agent.tasks.length, 1)
})

test('a sender on behalf of a sandboxed caller states it, and is bound by it', async (t) => {
  const pairing = await pair(t)
  t.is((await refusalOf(pairing, { metadata: { tier: 1, sandboxId: 'ci' } })).code, 'SANDBOX_VIOLATION')
})

test('a reply that nobody asked for is refused; one that is only late is no strike', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [new FakeAgent(agentDefinition('slow'))] })
  await world.link(here, peer)
  const operator = { agentId: 'operator', nodeId: here.id }
  forge(peer, here, { type: 'response', correlationId: 'thr_unknown', recipient: `operator@${here.id}` })
  await world.settle()
  t.is(here.audit.events.at(-1)?.rule, 'reply: no open exchange')

  const target = { agentId: 'slow', nodeId: peer.id }
  const question = {
    sender: operator,
    target,
    capability: 'slow.do',
    input: 1,
    description: '',
    timeoutMs: 1000,
    mayQueue: false
  }
  const asked = await here.core.requests.ask(question)
  await world.settle()
  asked.cancel()
  forge(peer, here, {
    type: 'response',
    sender: `slow@${peer.id}`,
    correlationId: asked.correlationId,
    recipient: `operator@${here.id}`
  })
  await world.settle()
  t.is(here.audit.events.length, 1)
  t.is(here.counted('messages_refused', 'late'), 1)
})

test('a peer cannot answer itself: replies on an exchange that it opened, or that nobody waits on, are not delivered', async (t) => {
  const work = new FakeAgent(agentDefinition('text'), () => null)
  for (const replies of ['exchange', 'strict'] as const) {
    const world = new World(t)
    const settings = { rules: { ...SETTINGS.rules, replies } }
    const here = await world.member(`here-${replies}`, { agents: [work], settings })
    const peer = await world.member(`peer-${replies}`)
    await world.link(here, peer)
    forge(peer, here, { correlationId: 'own' })
    await world.settle()
    t.is(here.counted('messages_delivered', 'request'), 1)
    for (const type of ['response', 'error', 'stream-data', 'stream-end', 'task-accept', 'task-reject'] as const) {
      for (let i = 0; i < 10; i++) forge(peer, here, { type, correlationId: 'own', payload: null })
      await world.settle()
      t.is(here.counted('messages_delivered', type), 0, type)
    }
    t.is(here.counted('messages_refused', 'late'), 60)
  }
})

test('the final reply ends its exchange', async (t) => {
  const { world, here } = await pair(t)
  const sender = { agentId: 'operator', nodeId: here.id }
  const target = { agentId: 'weak', nodeId: here.id }
  here.source.set([echo('weak')])
  await world.settle()
  const asked = await here.core.requests.ask({
    sender,
    target,
    capability: null,
    input: 1,
    description: '',
    timeoutMs: 1000,
    mayQueue: false
  })
  await asked.answer
  await world.settle()
  t.absent(
    isOpen(here, { peer: here.id, correlationId: asked.correlationId, own: sender.agentId, other: target.agentId })
  )
})

test('a reply passes along an open exchange against the tiers, and not when replies are strict', async (t) => {
  for (const replies of ['exchange', 'strict'] as const) {
    const world = new World(t)
    const settings = { rules: { ...SETTINGS.rules, replies } }
    const owner = await world.owner({ settings })
    const weak = await world.member('weak', { agents: [echo('text', { tier: 3 })], terms: { tier: 3 }, settings })
    await world.link(owner, weak)
    const reply = owner.api().call('message.call', { agent: 'text@weak', capability: 'text.do', input: 'hello' })
    await world.settle()
    await world.pass(31_000, 1000)
    const { outcome } = await reply
    t.is(outcome, replies === 'exchange' ? 'COMPLETED' : 'UNKNOWN', replies)
    if (replies === 'strict') t.is(weak.audit.events.at(-1)?.code, 'ESCALATION_REQUIRED')
  }
})

test('a notification opens no exchange and gets no answer, also when it is refused', async (t) => {
  const { world, here, peer } = await pair(t)
  forge(peer, here, { type: 'notification', payload: 'hi' })
  forge(peer, here, { type: 'notification', recipient: `nobody@${here.id}` })
  await world.settle()
  t.is(here.counted('messages_delivered', 'notification'), 1)
  t.is(here.counted('messages_sent', 'error'), 0)
  t.absent(isOpen(here, { peer: peer.id, correlationId: envelope(peer, here).id }))
  t.alike(peer.audit.events, [])
})

test('a flood of notifications leaves slots for requests', async (t) => {
  const { world, here, peer, agent } = await pair(t)
  const recipient = `operator@${here.id}`
  for (let i = 0; i < 9000; i++)
    here.core.inbound.receive(peer.id, encodeEnvelope(envelope(peer, here, { type: 'notification', recipient })))
  forge(peer, here)
  await world.settle()
  t.is(agent.tasks.length, 1)
})

test('streams are refused with an answer', async (t) => {
  const { world, here, peer } = await pair(t)
  forge(peer, here, { type: 'stream-start' })
  await world.settle()
  t.is(here.counted('messages_sent', 'error'), 1)
})
