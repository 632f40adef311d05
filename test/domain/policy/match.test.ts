import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import type { SideEffect } from '../../../src/domain/card/card.js'
import { MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import { compilePolicy, type PolicyNodes, type PolicyQuestion } from '../../../src/domain/policy/match.js'
import { ANYBODY, type PartyCriteria, type PolicyRule } from '../../../src/domain/policy/rule.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'

const [FIRST, SECOND, THIRD] = ['y'.repeat(52), 'b'.repeat(52), `${'y'.repeat(51)}b`] as const
const NAMES = new Map<string, readonly string[]>([
  ['laptop', [FIRST]],
  ['phone', [SECOND]],
  ['yyyy', [FIRST, THIRD]]
])
const NODES: PolicyNodes = {
  nodesOfName: (name) => NAMES.get(name) ?? [],
  trustOf: (node) => (node === FIRST ? 'mine' : 'guest')
}

/** Texts that peers choose, some of them made to look like what a rule says. */
const peerText = fc.oneof(
  fc.constantFrom('text', 'text@', '*', 'text*', 'laptop', 'te', 'text.x', '', '@', FIRST, `text@${FIRST}`),
  fc.string({ maxLength: 12 })
)
const tier = fc.constantFrom<Tier[]>(0, 1, 2, 3)
const capability = fc.option(
  fc.oneof(fc.constantFrom('text.stats', 'text.', 'text', 'shell.run', '*', 'text.*'), peerText)
)
const sandbox = fc.option(fc.constantFrom('ci', 'lab'))
const SIDE_EFFECTS: readonly SideEffect[] = ['none', 'read', 'write', 'exec']

const party = fc.record({
  address: fc
    .tuple(peerText, fc.oneof(fc.constantFrom(FIRST, SECOND, THIRD), peerText))
    .map(([agent, at]) => `${agent}@${at}`),
  tier,
  sandboxId: sandbox
})
const question: fc.Arbitrary<PolicyQuestion> = fc.record({
  sender: party,
  target: party,
  type: fc.constantFrom(...MESSAGE_TYPES),
  capability,
  sideEffect: fc.option(fc.constantFrom(...SIDE_EFFECTS))
})

function some<T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[] | null> {
  return fc.option(fc.array(one, { minLength: 1, maxLength: 3 }))
}

const criteria: fc.Arbitrary<PartyCriteria> = fc
  .record({
    node: some(fc.constantFrom(FIRST, SECOND, THIRD, 'laptop', 'phone', 'nobody', 'yyyy')),
    agent: some(fc.constantFrom('text', 'te', 'shell')),
    tier: some(tier),
    sandbox: some(sandbox),
    trust: some(fc.constantFrom('mine' as const, 'guest' as const))
  })
  .map(({ trust, ...rest }) => (trust === null ? rest : { ...rest, trust }))
const rule: fc.Arbitrary<PolicyRule> = fc.record({
  line: fc.nat(100),
  from: criteria,
  to: criteria,
  capability: some(fc.constantFrom('text.stats', 'text.*', '*', 'shell.run', 'text*')),
  type: some(fc.constantFrom('request' as const, 'notification' as const, 'task-proposal' as const)),
  sideEffect: some(fc.constantFrom(...SIDE_EFFECTS)),
  decision: fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const)
})

/** Is a value of a list meant? null: any is. */
function isOf<T>(wanted: readonly T[] | null, is: (one: T) => boolean): boolean {
  return wanted === null || wanted.some(is)
}

/** The meaning of a criterion, spelled out slowly and apart from the code under test. */
function meansParty(
  want: PartyCriteria,
  decision: PolicyRule['decision'],
  { address, tier: its, sandboxId }: PolicyQuestion['sender']
): boolean {
  const parts = address.split('@')
  const at = parts.pop() ?? ''
  const agent = parts.join('@')
  return (
    isOf(want.tier, (one) => one === its) &&
    isOf(want.sandbox, (one) => one === sandboxId) &&
    isOf(want.agent, (one) => one === agent) &&
    isOf(want.trust ?? null, (one) => (one === 'mine') === (at === FIRST)) &&
    isOf(want.node, (one) => {
      const meant = one.length === 52 ? [one] : (NAMES.get(one) ?? [])
      return meant.includes(at) && (meant.length === 1 || decision !== 'allow')
    })
  )
}

function means(one: PolicyRule, asked: PolicyQuestion): boolean {
  const isPattern = (pattern: string): boolean => {
    if (asked.capability === null) return false
    const beginning = pattern.slice(0, -1)
    return pattern.endsWith('*')
      ? asked.capability.slice(0, beginning.length) === beginning
      : asked.capability === pattern
  }
  return (
    meansParty(one.from, one.decision, asked.sender) &&
    meansParty(one.to, one.decision, asked.target) &&
    isOf(one.type, (type) => type === asked.type) &&
    isOf(one.sideEffect, (effect) => effect === asked.sideEffect) &&
    isOf(one.capability, isPattern)
  )
}

test('the first rule that matches is found, for any names of peers and any requests', async (t) => {
  await holds(
    t,
    fc.property(fc.array(rule, { maxLength: 8 }), question, fc.boolean(), (rules, asked, mayAsk) => {
      const compiled = compilePolicy(rules, NODES)
      const first = rules.findIndex((one) => means(one, asked) && (mayAsk || one.decision !== 'ask'))
      assert.deepEqual([compiled.find(asked, mayAsk), compiled.find(asked, mayAsk)], [first, first])
    }),
    5000
  )
})

const ASKED: PolicyQuestion = {
  sender: { address: `operator@${FIRST}`, tier: 1, sandboxId: null },
  target: { address: `text@${SECOND}`, tier: 1, sandboxId: null },
  type: 'request',
  capability: 'text.stats',
  sideEffect: 'none'
}
const ANY: PolicyRule = {
  line: 1,
  from: ANYBODY,
  to: ANYBODY,
  capability: null,
  type: null,
  sideEffect: null,
  decision: 'allow'
}

function matches(changes: Partial<PolicyRule>, asked: Partial<PolicyQuestion> = {}): boolean {
  return compilePolicy([{ ...ANY, ...changes }], NODES).find({ ...ASKED, ...asked }, true) === 0
}

test('an agent id in a rule matches that id alone, and none that begins with it', (t) => {
  const from = { ...ANYBODY, agent: ['text'] }
  const asks = (id: string): boolean => matches({ from }, { sender: { ...ASKED.sender, address: `${id}@${FIRST}` } })
  t.alike(['text', 'texts', 'text@', 'tex', ''].map(asks), [true, false, false, false, false])
})

test('a name that may stand for several nodes denies and asks about each, and allows none of them', (t) => {
  const from = { ...ANYBODY, node: ['yyyy'] }
  t.absent(matches({ from, decision: 'allow' }))
  for (const decision of ['ask', 'deny'] as const) {
    t.ok(matches({ from, decision }), decision)
    t.ok(matches({ from, decision }, { sender: { ...ASKED.sender, address: `operator@${THIRD}` } }), decision)
    t.absent(matches({ from, decision }, { sender: { ...ASKED.sender, address: `operator@${SECOND}` } }), decision)
  }
  t.ok(matches({ from: { ...ANYBODY, node: ['yyyy', FIRST] }, decision: 'allow' }), 'a key is never ambiguous')
})

test('a rule without criteria matches everything, also a message that names no capability', (t) => {
  t.ok(matches({}, { capability: null, sideEffect: null }))
  t.absent(matches({ capability: ['*'] }, { capability: null }), 'a pattern needs a capability')
  t.absent(matches({ sideEffect: SIDE_EFFECTS }, { sideEffect: null }))
})

test('a node that takes the key of another as its name is not that node', (t) => {
  const impostor = compilePolicy([{ ...ANY, from: { ...ANYBODY, node: [THIRD] } }], {
    ...NODES,
    nodesOfName: () => [FIRST]
  })
  t.is(impostor.find(ASKED, true), -1)
})

test('an agent whose id holds an @ is none that a rule names', (t) => {
  const sender = { ...ASKED.sender, address: `text@evil@${FIRST}` }
  t.absent(matches({ from: { ...ANYBODY, agent: ['text'] } }, { sender }))
})
