import test from 'brittle'
import { decide } from '../../../src/domain/routing/decide.js'
import { TIERS, type Tier } from '../../../src/domain/routing/tier.js'
import { DEFAULT_TIER_RULES } from '../../../src/domain/routing/tier-rules.js'
import { relayed, type Chain, chain, put } from '../../support/chain.js'
import type { RelayedFrame } from '../../../src/domain/channel/relayed.js'
import type { FakeNode } from '../../support/fake-node.js'
import { request } from '../../support/forge.js'

/** What the first node asks the last, past its own rules; the code with which it is refused on the way, or null. */
async function codeOnTheWay({ world, a, b, c }: Chain, changes: object = {}): Promise<string | null> {
  const before = b.audit.of('refusal').length
  put(a, b, relayed(world, a, { to: c, firstHop: b, hops: [], changes }))
  await world.settle()
  return b.audit.of('refusal')[before]?.code ?? null
}

/** The same, brought by a hop that keeps no rules: the code with which the last node refuses it. */
async function codeAtTheEnd({ world, a, b, c }: Chain, changes: object = {}): Promise<string | null> {
  const before = c.audit.of('refusal').length
  put(b, c, relayed(world, a, { to: c, firstHop: b, hops: [b], changes }))
  await world.settle()
  return c.audit.of('refusal')[before]?.code ?? null
}

test('a message is as weak as the weaker of its sender and its hop: every tier of both and of the target, at the hop and at the end', async (t) => {
  const rules = {
    tierRules: DEFAULT_TIER_RULES,
    sandbox: { enforced: true, crossSandboxAllowList: [] },
    replies: 'exchange'
  } as const
  for (const [from, hop, to] of TIERS.flatMap((one) =>
    TIERS.flatMap((two) => TIERS.map((three) => [one, two, three] as const))
  )) {
    const links = await chain(t, { terms: { a: { tier: from }, b: { tier: hop }, c: { tier: to } } })
    const party = (tier: Tier) => ({ address: 'x@y', tier, sandboxId: null })
    const verdict = decide(rules, {
      sender: party(Math.max(from, hop) as Tier),
      target: party(to),
      type: 'request',
      justification: null,
      isReply: false,
      isArriving: true,
      capability: null,
      sideEffect: null
    })
    const expected = verdict.allowed ? null : verdict.code
    const metadata = { tier: from }
    const codes = [await codeOnTheWay(links, { metadata }), await codeAtTheEnd(links, { metadata })]
    if (codes.some((one) => one !== expected))
      t.fail(`L${from} by L${hop} to L${to}: ${codes.join(' and ')} instead of ${expected}`)
  }
  t.pass('64 ways')
})

test('a strong sender through a weak hop needs the justification of the weak', async (t) => {
  const links = await chain(t, { terms: { b: { tier: 3 } } })
  const { world, a, agent } = links
  t.is(await codeOnTheWay(links), 'ESCALATION_REQUIRED')
  t.is(await codeAtTheEnd(links), 'ESCALATION_REQUIRED')
  t.is(agent.tasks.length, 0)
  const reply = a
    .api()
    .call('message.call', { agent: 'text@c', capability: 'text.do', input: 1, justification: 'it is urgent' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('a sender that picks a weak route evades no rule for its own tier', async (t) => {
  const policy = 'rules:\n  - decision: deny\n    from: {tier: L1}\n'
  const links = await chain(t, { terms: { b: { tier: 3 } }, policy: { c: policy } })
  t.is(await codeAtTheEnd(links, { metadata: { tier: 1, justification: 'why' } }), 'POLICY_DENIED')
})

test('a message that passed a sandboxed hop is in its sandbox', async (t) => {
  const links = await chain(t, { terms: { b: { sandboxId: 'ci' } } })
  t.is(await codeOnTheWay(links), 'SANDBOX_VIOLATION')
  t.is(await codeAtTheEnd(links), 'SANDBOX_VIOLATION')
  const inside = await chain(t, { terms: { b: { sandboxId: 'ci' }, c: { sandboxId: 'ci' } } })
  t.is(await codeOnTheWay(inside), null)
  t.is(inside.agent.tasks.length, 1)
})

test('exchanges across tiers are on record with the hops, at the hop and at the end', async (t) => {
  const links = await chain(t, { terms: { b: { tier: 2 } } })
  const { b, c } = links
  t.is(await codeOnTheWay(links, { metadata: { tier: 1, justification: 'why' } }), null)
  const of = (node: FakeNode): unknown => {
    const { code, hops, peer, sourceTier, targetTier } =
      node.audit.of('cross-tier').find((one) => one.messageType === 'request') ?? {}
    return { code, hops, peer, sourceTier, targetTier }
  }
  const tiers = { peer: links.a.id, sourceTier: 'L2', targetTier: 'L1' }
  t.alike(of(b), { code: 'passed-on', hops: undefined, ...tiers })
  t.alike(of(c), { code: 'received', hops: b.id, ...tiers })
})

test('a reply is relayed whether or not this node remembers what it answers: the node that asked decides', async (t) => {
  const { world, a, b, c } = await chain(t)
  const reply = async (correlationId: string): Promise<string | undefined> => {
    const changes = {
      type: 'response' as const,
      correlationId,
      payload: { requestId: 'r', attempt: 1, outcome: 'COMPLETED' }
    }
    put(c, b, relayed(world, c, { to: a, firstHop: b, hops: [], changes }))
    await world.settle()
    return a.audit.of('refusal').at(-1)?.rule
  }
  t.is(await reply('nothing'), 'reply: no open exchange')
  t.is(b.counted('messages_passed_on', 'response'), 1)
  t.alike(b.audit.of('refusal'), [])
})

test('the relayed messages of a node are bounded, others continue, and it gets OVERLOADED', async (t) => {
  const links = await chain(t)
  const { world, a, b, c } = links
  const other = await world.member('other')
  await world.link(other, b)
  const note = { type: 'notification' as const, payload: { note: 1 } }
  for (let i = 0; i < 600; i++)
    put(a, b, relayed(world, a, { to: c, firstHop: b, hops: [], changes: note, at: world.clock.now() + i }))
  await world.settle()
  t.is(b.counted('messages_passed_on', 'notification'), 500)
  t.is(b.counted('messages_refused', 'OVERLOADED'), 100)
  const ofOther = other.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await ofOther).outcome, 'COMPLETED')
  const recorded = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await recorded).outcome, 'COMPLETED', 'lanes have a budget of their own')
})

test('the bytes of a node that are carried are bounded too', async (t) => {
  const links = await chain(t)
  const payload = request('large', { input: { bytes: new Uint8Array(10 * 1024 * 1024) } })
  const codes: (string | null)[] = []
  for (let i = 0; i < 3; i++) codes.push(await codeOnTheWay(links, { payload: { ...payload, requestId: `large${i}` } }))
  t.alike(codes, [null, 'OVERLOADED', 'OVERLOADED'])
})

test('a message that has passed eight nodes, or finds no way, is not carried on', async (t) => {
  const links = await chain(t)
  const { world, a, b, c } = links
  const between = await Promise.all(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'].map((name) => world.member(name)))
  const [first, last] = [between[0], between.at(-1)]
  if (first === undefined || last === undefined) throw new Error('none')
  await world.link(last, b)
  const rule = async (frame: RelayedFrame, by: FakeNode): Promise<string | undefined> => {
    put(by, b, frame)
    await world.settle()
    return b.audit.of('refusal').at(-1)?.rule
  }
  t.is(await rule(relayed(world, a, { to: c, firstHop: first, hops: between }), last), 'hops: at most 8')
  t.is(
    await rule(
      relayed(world, a, { to: first, firstHop: b, hops: [], changes: { recipient: `operator@${first.id}` } }),
      a
    ),
    'hops: a way'
  )
  t.is(b.counted('messages_passed_on', 'request'), 0)
})

test('a node whose setting forbids it carries nothing, not even what it is given', async (t) => {
  const links = await chain(t, { settings: { b: { forward: false } } })
  t.is(await codeOnTheWay(links), 'PEER_OFFLINE')
  t.is(links.b.audit.of('refusal').at(-1)?.rule, 'hops: network.forward')
})

// m and n ask c by way of b, each within its own allowance. a is honest.
test('the answers that peers have a node give do not use up what is carried for that node', async (t) => {
  const { world, a, b, c } = await chain(t)
  const m = await world.member('m')
  const n = await world.member('n')
  await world.link(m, b)
  await world.link(n, b)
  const flood = (by: FakeNode, count: number): void => {
    for (let i = 0; i < count; i++)
      put(by, b, relayed(world, by, { to: c, firstHop: b, hops: [], changes: { payload: { bad: 1 } } }))
  }
  for (let i = 0; i < 20; i++) {
    flood(m, 20)
    flood(n, 20)
    await world.pass(250, 250)
  }
  t.ok(b.counted('messages_passed_on', 'error') > 500, 'they have used up more than one node may have carried')
  const outcomes: string[] = []
  for (let i = 0; i < 10; i++) {
    flood(m, 10)
    flood(n, 10)
    await world.settle()
    const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: i, timeoutMs: 5000 })
    void reply.then(
      (one) => outcomes.push(one.error?.code ?? one.outcome),
      (e: { code?: string }) => outcomes.push(e.code ?? '?')
    )
    await world.settle()
    await world.pass(250, 250)
  }
  await world.pass(10_000, 250)
  t.alike(
    outcomes,
    Array.from({ length: 10 }, () => 'COMPLETED')
  )
})

test('nodes that have much carried together do not keep out one that has little carried', async (t) => {
  const { world, a, b, c } = await chain(t)
  const colluding = await Promise.all(Array.from({ length: 20 }, (_, i) => world.member(`m${i}`)))
  for (const one of colluding) await world.link(one, b)
  const note = { type: 'notification' as const, payload: { note: 1 } }
  const flood = (): void => {
    for (const one of colluding)
      for (let i = 0; i < 120; i++)
        put(one, b, relayed(world, one, { to: c, firstHop: b, hops: [], changes: note, at: world.clock.now() + i }))
  }
  flood()
  await world.settle()
  t.ok(b.counted('messages_refused', 'OVERLOADED') > 0, 'they have all that is carried for all')
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})
