import test from 'brittle'
import { type MessageType } from '../../../src/domain/envelope/envelope.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import type { PolicyTestResult } from '../../../src/ports/policy-api.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge, request } from '../../support/forge.js'

const TIERS: readonly Tier[] = [0, 1, 2, 3]
const TYPES: readonly MessageType[] = ['request', 'notification', 'task-proposal']
const CAPABILITIES = ['safe.look', 'safe.write', 'open.run', 'shut.run', 'plain.do']
const POLICY = `rules:
  - { from: { tier: L3 }, capability: safe.look, decision: allow }
  - { from: { node: peer2 }, sideEffect: write, decision: deny }
  - { capability: safe.*, decision: ask }
  - { capability: safe.look, to: { tier: L1 }, decision: deny }
  - { capability: open.*, to: { tier: [L0, L1] }, decision: allow }
  - { capability: shut.*, decision: deny }
`
/** Worth as many as there are cases: each its own request. */
let last = 0

interface Case {
  readonly from: Tier
  readonly to: Tier
  readonly type: MessageType
  readonly named: string
  readonly justification: string | null
}

function payloadOf({ type, named }: Case): unknown {
  if (type === 'task-proposal')
    return { taskDescription: 'x', requiredCapabilities: [named], estimatedComplexity: 'simple', deadlineMs: 5000 }
  return type === 'request' ? request(`m${last}`, { capability: named }) : { input: {} }
}

/** What became of a message: let in, held for a person, or refused with a code. */
async function becomes(world: World, [peer, here]: readonly [FakeNode, FakeNode], one: Case): Promise<string> {
  last++
  const before = { refusals: here.audit.events.length, delivered: here.counted('messages_delivered', one.type) }
  forge(peer, here, {
    type: one.type,
    recipient: `a${one.to}@${here.id}`,
    payload: payloadOf(one),
    metadata: { tier: one.from, ...(one.justification === null ? {} : { justification: one.justification }) }
  })
  await world.settle()
  const [held] = (await here.api().call('approvals.list', {})).approvals
  if (held !== undefined) {
    await here.api().call('approvals.deny', { id: held.id })
    await world.settle()
    return `ask ${held.rule}`
  }
  if (here.counted('messages_delivered', one.type) > before.delivered) return 'allow'
  const refusal = here.audit.events.slice(before.refusals).find((event) => event.kind === 'refusal')
  return `deny ${refusal?.code} ${refusal?.rule}`
}

function predicted({ decision, code, rule }: PolicyTestResult): string {
  return decision === 'allow' ? 'allow' : decision === 'ask' ? `ask ${rule}` : `deny ${code} ${rule}`
}

test('policy test predicts the decision: every tier to every tier, type, capability, with and without justification', async (t) => {
  const world = new World(t)
  const agents = TIERS.map((tier) => {
    const capabilities = CAPABILITIES.map((id) => capability(id, id.endsWith('write') ? { sideEffect: 'write' } : {}))
    return new FakeAgent(agentDefinition(`a${tier}`, { tier, capabilities, concurrency: 8 }), () => ({
      ok: true,
      result: null
    }))
  })
  const here = await world.owner({ agents, policy: POLICY })
  const peers: FakeNode[] = []
  for (const tier of TIERS) peers.push(await world.member(`peer${tier}`, { terms: { tier } }))
  for (const peer of peers) await world.link(peer, here)
  const seen = new Set<string>()
  let wrong = 0
  for (const from of TIERS) {
    const peer = peers[from]
    if (peer === undefined) continue
    for (const to of TIERS) {
      for (const type of TYPES) {
        for (const named of type === 'notification' ? CAPABILITIES.slice(0, 1) : CAPABILITIES) {
          for (const justification of from > 1 && to < 2 ? [null, 'a reason'] : [null]) {
            const one = { from, to, type, named, justification }
            const result = await here.api().call('policy.test', {
              from: `peer${from}`,
              to: `a${to}@owner`,
              type,
              capability: named,
              ...(justification === null ? {} : { justification })
            })
            const happens = await becomes(world, [peer, here], one)
            seen.add(happens)
            if (happens === predicted(result)) continue
            wrong++
            t.comment(`${JSON.stringify(one)}: policy test says ${predicted(result)}, but: ${happens}`)
          }
        }
      }
    }
  }
  t.is(wrong, 0)
  for (const kind of [
    'allow',
    'ask policy.yaml:4: ask',
    'deny POLICY_DENIED policy.yaml:3: deny',
    'deny POLICY_DENIED policy.yaml:5: deny',
    'deny POLICY_DENIED policy.yaml:7: deny'
  ])
    t.ok(seen.has(kind), kind)
  t.ok(
    [...seen].some((one) => one.startsWith('deny TIER_VIOLATION')) &&
      [...seen].some((one) => one.startsWith('deny ESCALATION_REQUIRED'))
  )
})

test('outgoing messages are tested by the rules of this node, and never wait for approval here', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    policy:
      'rules:\n  - { capability: text.do, to: { agent: text }, decision: ask }\n  - { capability: other.do, decision: deny }\n'
  })
  const agents = [echo('text'), new FakeAgent(agentDefinition('other', { capabilities: [capability('other.do')] }))]
  const peer = await world.member('peer', { agents })
  await world.link(here, peer)
  const api = here.api()
  const asking = await api.call('policy.test', { from: 'owner', to: 'text@peer' })
  t.alike(
    [asking.decision, asking.line, asking.passedOver?.line, asking.passedOver?.why],
    ['allow', null, 2, 'elsewhere']
  )
  const reply = api.call('message.call', { agent: 'text@peer', capability: 'text.do', input: {} })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  const refused = await api.call('policy.test', { from: 'owner', to: 'other@peer' })
  t.alike([refused.code, refused.line], ['POLICY_DENIED', 3])
  await failsWith(t, 'POLICY_DENIED', () =>
    api.call('message.call', { agent: 'other@peer', capability: 'other.do', input: {} })
  )
  await failsWith(t, 'POLICY_DENIED', () =>
    api.call('swarm.start', { goal: 'g', capability: 'other.do', strategy: 'each' })
  )
})

test('where nobody here can be asked a later deny refuses and a later allow allows, as policy test says; agents of this node are asked about', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: `rules:
  - { capability: text.do, decision: ask }
  - { to: { agent: open }, capability: text.do, decision: allow }
  - { decision: deny }
`
  })
  const open = new FakeAgent(agentDefinition('open', { tier: 3, capabilities: [capability('text.do')] }), () => ({
    ok: true,
    result: null
  }))
  const peer = await world.member('peer', {
    agents: [echo('text'), open],
    policy: 'rules:\n  - { to: { agent: open }, decision: allow }\n'
  })
  await world.link(here, peer)
  const api = here.api()
  const tested = async (to: string, more: object = {}): Promise<unknown[]> => {
    const { decision, line, passedOver } = await api.call('policy.test', { from: 'owner', to, ...more })
    return [decision, line, passedOver?.line ?? null, passedOver?.why ?? null]
  }
  const call = { capability: 'text.do', input: {} }
  t.alike(await tested('text@peer'), ['deny', 4, 2, 'elsewhere'])
  await failsWith(t, 'POLICY_DENIED', () => api.call('message.call', { ...call, agent: 'text@peer' }))
  t.alike(await tested('open@peer'), ['allow', 3, 2, 'elsewhere'], 'and opens what the tier table refuses')
  const opened = api.call('message.call', { ...call, agent: 'open@peer' })
  await world.settle()
  t.is((await opened).outcome, 'COMPLETED')
  t.alike(await tested('text@owner', { type: 'task-proposal', capability: 'text.do' }), ['deny', 4, 2, 'proposal'])
  t.alike(await tested('text@owner'), ['ask', 2, null, null])
  const { decision, code, passedOver } = await api.call('policy.test', { from: 'L1', to: 'L2', capability: 'text.do' })
  t.alike([decision, code, passedOver?.line, passedOver?.why], ['deny', 'TIER_VIOLATION', 2, 'table'])
  const asked = api.call('message.call', { ...call, agent: 'text@owner' })
  await world.settle()
  const [held] = (await api.call('approvals.list', {})).approvals
  t.is(held?.rule, 'policy.yaml:2: ask', 'an agent here: the first rule asks, and the deny after it does not count')
  await api.call('approvals.allow', { id: held?.id ?? '' })
  await world.settle()
  t.is((await asked).outcome, 'COMPLETED')
})

test('the refusals of local calls are those of policy test as well', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: 'rules:\n  - { to: { agent: text }, decision: deny }\n'
  })
  const result = await here.api().call('policy.test', { from: 'owner', to: 'text' })
  t.alike([result.decision, result.rule], ['deny', 'policy.yaml:2: deny'])
  const error = await failsWith(t, 'POLICY_DENIED', () => here.api().call('message.send', { agent: 'text', text: 'x' }))
  t.alike(error.data, { rule: 'policy.yaml:2: deny', node: 'owner' })
})

test('sandboxes come before the policy: no rule opens them', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')], policy: 'rules:\n  - decision: allow\n' })
  const boxed = await world.member('boxed', { terms: { sandboxId: 'ci' } })
  await world.link(here, boxed)
  const result = await here.api().call('policy.test', { from: 'boxed', to: 'text' })
  t.alike([result.decision, result.code, result.line], ['deny', 'SANDBOX_VIOLATION', null])
  forge(boxed, here, { metadata: { tier: 1, sandboxId: 'ci' } })
  await world.settle()
  t.is(here.audit.events.at(-1)?.code, 'SANDBOX_VIOLATION')
})

test('a name means the node that had it first, not a later one of the same name', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: 'rules:\n  - { from: { node: phone }, decision: deny }\n'
  })
  const phone = await world.member('phone')
  const renamed = await world.member('tablet')
  await world.link(here, phone, renamed)
  t.is((await here.api().call('policy.test', { from: 'phone', to: 'text' })).decision, 'deny')
  const before = world.log.model.certificateOf(renamed.actor)
  const changed = { ...before, name: 'phone', serial: before.serial + 1, issuer: here.id }
  t.is(world.log.model.recertify(here.actor, changed).skipped, null)
  world.log.changed()
  await world.settle()
  t.is((await here.api().call('policy.test', { from: phone.id, to: 'text' })).decision, 'deny')
  t.is((await here.api().call('policy.test', { from: renamed.id, to: 'text' })).decision, 'allow')
})

test('a tier means any member of it; a reply cannot be tested; unknown names are reported', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: 'rules:\n  - { sideEffect: exec, decision: deny }\n'
  })
  const api = here.api()
  t.is((await api.call('policy.test', { from: 'L1', to: 'L1', capability: 'any.do' })).code, 'POLICY_DENIED')
  t.is(
    (await api.call('policy.test', { from: 'L1', to: 'L1', capability: 'any.do', sideEffect: 'read' })).decision,
    'allow'
  )
  t.is(
    (await api.call('policy.test', { from: 'L1', to: 'L1' })).decision,
    'allow',
    'a message without a capability runs nothing'
  )
  await failsWith(t, 'USAGE', () => api.call('policy.test', { from: 'L1', to: 'L1', type: 'response' }))
  await failsWith(t, 'PEER_NOT_FOUND', () => api.call('policy.test', { from: 'ghost', to: 'L1' }))
  await failsWith(t, 'AGENT_NOT_FOUND', () => api.call('policy.test', { from: 'L1', to: 'ghost' }))
})

test('for a tier, policy test takes the side effect of an agent of this node that offers the capability, and says whose', async (t) => {
  const world = new World(t)
  const offer = (id: string, tier: Tier, sideEffect?: 'read' | 'write'): FakeAgent =>
    new FakeAgent(
      agentDefinition(id, {
        tier,
        capabilities: [capability('any.do', sideEffect === undefined ? {} : { sideEffect })]
      })
    )
  const here = await world.owner({
    agents: [offer('reads', 1, 'read'), offer('writes', 1, 'write'), offer('unsaid', 3)],
    policy: 'rules:\n  - { sideEffect: [exec, write], decision: deny }\n'
  })
  const asked = async (to: string, more: object = {}): Promise<unknown[]> => {
    const { sideEffect, assumed, line } = await here
      .api()
      .call('policy.test', { from: 'L0', to, capability: 'any.do', ...more })
    return [sideEffect, assumed, line]
  }
  t.alike(await asked('L1'), ['write', { agent: 'writes@owner' }, 2])
  t.alike(await asked('L3'), ['exec', { agent: 'unsaid@owner' }, 2])
  t.alike(await asked('L1', { capability: 'none.do' }), ['exec', { agent: null }, 2])
  t.alike(await asked('L1', { sideEffect: 'read' }), ['read', null, null])
  t.alike(await asked('reads'), ['read', null, null])
})

test('policy test reports a target without the capability, the agents that have it, and similar names', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text'), echo('other')] })
  const tested = async (to: string, named: string): Promise<unknown> =>
    (await here.api().call('policy.test', { from: 'owner', to, capability: named })).missing
  t.is(await tested('text', 'text.do'), null)
  t.alike(await tested('text', 'other.do'), { offeredBy: ['other@owner'], nearest: [] })
  t.alike(await tested('text', 'Text.Doo'), { offeredBy: [], nearest: ['text.do'] })
  t.alike(await tested('text', 'nobody.has'), { offeredBy: [], nearest: [] })
  t.is(await tested('L1', 'text.do'), null)
  t.alike(await tested('L1', 'text.doo'), { offeredBy: [], nearest: ['text.do'] })
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    here.api().call('message.call', { agent: 'text', capability: 'nobody.has', input: {} })
  )
})

test('policy test names no agent outside the sandbox of its caller', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text'), echo('other')] })
  const boxed = here.api({ sandboxId: 'ci', tier: 1 })
  const asked = { from: 'L1', to: 'L0', capability: 'text.do' }
  t.alike((await here.api().call('policy.test', asked)).assumed, { agent: 'text@owner' })
  const { assumed, missing } = await boxed.call('policy.test', asked)
  t.alike([assumed, missing], [{ agent: null }, { offeredBy: [], nearest: [] }])
  await failsWith(t, 'AGENT_NOT_FOUND', () => boxed.call('policy.test', { ...asked, to: 'text' }))
  await failsWith(t, 'AGENT_NOT_FOUND', () => boxed.call('policy.test', { ...asked, to: 'text@owner' }))
  await failsWith(t, 'PEER_NOT_FOUND', () => boxed.call('policy.test', { ...asked, from: 'text' }))
})

test('policy test names the other nodes that decide, and says when one of them needs an allow of its own', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: 'rules:\n  - { from: { node: weak }, decision: allow }\n'
  })
  const peer = await world.member('peer', { agents: [echo('far')] })
  const weak = await world.member('weak', { terms: { tier: 2 } })
  await world.link(here, peer, weak)
  const others = async (from: string, to: string): Promise<unknown> =>
    (await here.api().call('policy.test', { from, to })).others.map((one) => [one.role, one.node, one.needsAllow])
  t.alike(await others('owner', 'text'), [])
  t.alike(await others('peer', 'text'), [['sender', 'peer', false]])
  t.alike(await others('owner', 'far@peer'), [['receiver', 'peer', false]])
  t.alike(await others('weak', 'text'), [['sender', 'weak', true]], 'here a rule opens what the tier table refuses')
  t.alike(await others('L1', 'text'), [['sender', null, false]])
  t.alike(await others('weak', 'far@peer'), [
    ['sender', 'weak', true],
    ['receiver', 'peer', true]
  ])
  t.is((await here.api().call('policy.test', { from: 'peer', to: 'text' })).node, 'owner')
})

test('policy test takes bare names of nodes and agents as its sender, and says who is unknown or was put out', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('far')] })
  await world.link(here, peer)
  const api = here.api()
  const sender = async (from: string): Promise<unknown> =>
    (await api.call('policy.test', { from, to: 'text' })).from.agent
  t.alike(
    [await sender('peer'), await sender('far'), await sender('text'), await sender('far@peer')],
    ['operator@peer', 'far@peer', 'text@owner', 'far@peer']
  )
  const unknown = await failsWith(t, 'PEER_NOT_FOUND', () => sender('Peerr'))
  t.is(unknown.message, 'no node and no agent "Peerr" in the mesh; did you mean peer?')
  for (const query of [
    { from: 'L7', to: 'text' },
    { from: 'L1', to: 'l7' }
  ]) {
    const call = (): Promise<unknown> => api.call('policy.test', query)
    const { message } = await failsWith(t, query.from === 'L7' ? 'PEER_NOT_FOUND' : 'AGENT_NOT_FOUND', call)
    t.ok(message.endsWith('; the tiers are L0, L1, L2, L3'), message)
  }
  const node = await failsWith(t, 'AGENT_NOT_FOUND', () => api.call('policy.test', { from: 'L1', to: 'peer' }))
  t.alike(node.data, { candidates: ['far@peer'] })
  await api.call('peers.revoke', { peer: 'peer' })
  await world.settle()
  for (const from of ['peer', 'operator@peer', 'far@peer']) {
    const gone = await failsWith(t, 'REVOKED', () => sender(from))
    t.is(
      gone.message,
      'peer was put out of the mesh by owner: it has no link, so nothing passes between it and this node'
    )
  }
})

test('a side effect that is given counts for a named agent as well', async (t) => {
  const world = new World(t)
  const agent = new FakeAgent(
    agentDefinition('text', { capabilities: [capability('text.do', { sideEffect: 'read' })] })
  )
  const here = await world.owner({ agents: [agent], policy: 'rules:\n  - { sideEffect: exec, decision: deny }\n' })
  const tested = async (more: object): Promise<unknown[]> => {
    const { decision, sideEffect } = await here.api().call('policy.test', { from: 'owner', to: 'text', ...more })
    return [decision, sideEffect]
  }
  t.alike(await tested({}), ['allow', 'read'])
  t.alike(await tested({ sideEffect: 'exec' }), ['deny', 'exec'])
  t.alike(await tested({ sideEffect: 'exec', type: 'notification' }), ['deny', 'exec'])
})
