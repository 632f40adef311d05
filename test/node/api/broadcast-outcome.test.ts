import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { broadcastError, type MessageOutcome, refusingRule } from '../../../src/node/api/broadcast-outcome.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

const TAKEN = ['COMPLETED', 'DELIVERED', 'SENT', 'QUEUED'] as const
const FAILED = ['TASK_FAILED', 'PEER_OFFLINE', 'OVERLOADED', 'UNKNOWN', 'AGENT_NOT_FOUND'] as const
const REFUSED = ['POLICY_DENIED', 'TIER_VIOLATION', 'SANDBOX_VIOLATION', 'ESCALATION_REQUIRED', 'FORBIDDEN'] as const

const target: fc.Arbitrary<MessageOutcome> = fc.oneof(
  fc.constantFrom(...TAKEN, ...FAILED).map((outcome) => ({ outcome, rule: null })),
  fc.constantFrom(...REFUSED, 'APPROVAL_TIMEOUT').map((outcome) => ({ outcome, rule: 'policy.yaml:2: deny' })),
  fc.constant({ outcome: 'SKIPPED', rule: 'it has no capability' })
)

/** A number that stands in a text in front of some words; 0 when it does not. */
function told(text: string, words: string): number {
  return Number(new RegExp(String.raw`(\d+) ${words}`).exec(text)?.[1] ?? 0)
}

test('a failed broadcast counts apart agents left out by rules, refused, without the capability and offline', async (t) => {
  await holds(
    t,
    fc.property(fc.array(target, { maxLength: 12 }), (targets) => {
      const count = (...outcomes: readonly string[]): number =>
        targets.filter((one) => outcomes.includes(one.outcome)).length
      const error = broadcastError(targets)
      const isFailed = count(...FAILED) > 0 || (targets.length > 0 && count(...TAKEN) === 0)
      assert.equal(error !== null, isFailed)
      if (error === null) return
      const { message } = error
      assert.equal(told(message, 'by rules'), count(...REFUSED), message)
      assert.equal(told(message, 'not approved in time'), count('APPROVAL_TIMEOUT'), message)
      assert.equal(told(message, 'without a capability'), count('SKIPPED'), message)
      assert.equal(told(message, 'offline'), count('PEER_OFFLINE'), message)
      assert.equal(message.includes('left out'), count(...REFUSED, 'APPROVAL_TIMEOUT', 'SKIPPED') > 0, message)
    }),
    500
  )
})

test('the end of a broadcast in words', (t) => {
  const row = (outcome: string, rule: string | null = null): MessageOutcome => ({ outcome, rule })
  const said = (...targets: readonly MessageOutcome[]): string | undefined => broadcastError(targets)?.message
  const skipped = row('SKIPPED', 'it has no capability')
  const denied = row('POLICY_DENIED', 'policy.yaml:2: deny')
  t.is(said(), undefined)
  t.is(said(row('COMPLETED'), skipped, denied), undefined)
  t.is(
    said(row('SIDE_EFFECT', 'broadcast'), skipped),
    'no agent took the message; left out: 1 without a capability, 1 with side effects'
  )
  t.is(said(skipped, skipped), 'no agent took the message; left out: 2 without a capability')
  t.is(said(denied, skipped), 'no agent took the message; left out: 1 by rules, 1 without a capability')
  t.is(said(row('PEER_OFFLINE')), 'no agent took it: it failed at the only agent (1 offline)')
  t.is(said(row('TASK_FAILED'), row('OVERLOADED')), 'no agent took it: it failed at all 2 agents')
  t.is(said(row('SENT'), row('TASK_FAILED'), denied), 'partly done: it failed at 1 of 2 agents; left out: 1 by rules')
})

test('only a refusal by the rules of a node has a rule: for a full or absent node the message failed', (t) => {
  t.is(refusingRule({ code: 'POLICY_DENIED', data: { rule: 'policy.yaml:2: deny' } }), 'policy.yaml:2: deny')
  t.is(refusingRule({ code: 'TIER_VIOLATION', data: null }), 'TIER_VIOLATION')
  t.is(refusingRule({ code: 'OVERLOADED', data: { rule: 'exchanges: bounded' } }), null)
  t.is(refusingRule({ code: 'PEER_OFFLINE', data: { rule: 'hops: a way' } }), null)
})

test('an agent to which nothing is granted that it needs is left out of a broadcast, which has not failed', async (t) => {
  const world = new World(t)
  const locked = new FakeAgent(agentDefinition('locked'), () => ({
    ok: false,
    code: 'FORBIDDEN',
    message: 'nothing is granted'
  }))
  const here = await world.owner({ agents: [locked, echo('text')] })
  const reply = here.api().call('message.send', { agent: '*', text: 'x', all: true })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  const left = (await reply).targets?.filter(({ rule }) => rule !== null) ?? []
  t.alike(
    left.map(({ agent, outcome, reason }) => [agent, outcome, reason]),
    [['locked@owner', 'FORBIDDEN', 'nothing is granted']]
  )
})

test('a broadcast runs only work without side effects, here and elsewhere, unless it is for all', async (t) => {
  const world = new World(t)
  const effects = ['none', 'read', 'write', 'exec'] as const
  const agents = [
    ...effects.map((sideEffect) => echo(`x${sideEffect}`, { capabilities: [capability('x.do', { sideEffect })] })),
    echo('undeclared'),
    echo('default', {
      capabilities: [capability('a', { sideEffect: 'none' }), capability('b', { sideEffect: 'exec', default: true })]
    })
  ]
  const here = await world.owner({ agents })
  const there = await world.member('b', {
    agents: [echo('xfar', { capabilities: [capability('x.do', { sideEffect: 'write' })] })]
  })
  await world.link(here, there)
  const targets = async (params: {
    type?: 'request' | 'notification'
    all?: boolean
  }): Promise<Record<string, string>> => {
    const reply = here.api().call('message.send', { agent: '*', text: 'x', ...params })
    await world.settle()
    const rows = ((await reply).targets ?? []).filter(({ agent }) => !agent.startsWith('operator'))
    return Object.fromEntries(rows.map(({ agent, outcome }) => [agent, outcome]))
  }
  const [taken, left] = [
    ['xnone@owner', 'xread@owner'],
    ['default@owner', 'undeclared@owner', 'xexec@owner', 'xfar@b', 'xwrite@owner']
  ]
  for (const type of ['request', 'notification'] as const) {
    const some = await targets({ type })
    const out = Object.keys(some).filter((agent) => some[agent] === 'SIDE_EFFECT')
    t.alike(out.toSorted(), left, type)
    for (const agent of taken) t.ok(['COMPLETED', 'DELIVERED'].includes(some[agent] ?? ''), `${type} ${agent}`)
    const all = await targets({ type, all: true })
    t.absent(Object.values(all).includes('SIDE_EFFECT'), `${type} to all`)
  }
})
