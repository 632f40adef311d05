import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { OPENING_TYPES, MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import { ANYBODY, type PolicyDecision, type PolicyRule } from '../../../src/domain/policy/rule.js'
import {
  decide,
  passedOver,
  type RoutingQuestion,
  type RoutingRules,
  type Verdict
} from '../../../src/domain/routing/decide.js'
import { routingPolicy } from '../../../src/domain/routing/policy-verdict.js'
import { DEFAULT_TIER_RULES } from '../../../src/domain/routing/tier-rules.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'

const OPEN = MESSAGE_TYPES.filter((type) => OPENING_TYPES.has(type))
const SHIPPED: RoutingRules = {
  tierRules: DEFAULT_TIER_RULES,
  sandbox: { enforced: true, crossSandboxAllowList: [] },
  replies: 'exchange'
}

function withRules(...decisions: readonly PolicyDecision[]): RoutingRules {
  const any: Omit<PolicyRule, 'line' | 'decision'> = {
    from: ANYBODY,
    to: ANYBODY,
    capability: null,
    type: null,
    sideEffect: null
  }
  const rules = decisions.map((decision, index): PolicyRule => ({ ...any, decision, line: index + 2 }))
  return {
    ...SHIPPED,
    policy: routingPolicy(rules, { file: 'policy.yaml', nodesOfName: () => [], trustOf: () => 'mine' })
  }
}

const tier = fc.constantFrom<Tier[]>(0, 1, 2, 3)
const sandbox = fc.constantFrom(null, 'ci', 'lab')
const party = fc.record({ address: fc.constant('a@b'), tier, sandboxId: sandbox })
const question: fc.Arbitrary<RoutingQuestion> = fc.record({
  sender: party,
  target: party,
  type: fc.constantFrom(...MESSAGE_TYPES),
  capability: fc.constantFrom(null, 'text.stats'),
  sideEffect: fc.constant(null),
  justification: fc.constantFrom(null, 'a reason'),
  isReply: fc.boolean(),
  isArriving: fc.boolean()
})

/** allow, ask, or the code. */
function outcome(verdict: Verdict): string {
  return verdict.allowed ? 'allow' : verdict.asks === true ? 'ask' : verdict.code
}

test('a policy decides between sandboxes and tiers: allow opens tiers, deny closes, ask holds what tiers allow', async (t) => {
  await holds(
    t,
    fc.property(question, fc.constantFrom<PolicyDecision[]>('allow', 'ask', 'deny'), (asked, decision) => {
      const without = outcome(decide(SHIPPED, asked))
      const verdict = decide(withRules(decision), asked)
      const isFree = OPEN.includes(asked.type) && without !== 'SANDBOX_VIOLATION'
      const waits = asked.isArriving && asked.type !== 'task-proposal' && without === 'allow'
      const expected = !isFree
        ? without
        : decision === 'allow'
          ? 'allow'
          : decision === 'deny'
            ? 'POLICY_DENIED'
            : waits
              ? 'ask'
              : without
      assert.equal(outcome(verdict), expected)
      assert.ok(verdict.rule.length > 0, 'every decision names its rule')
      assert.deepEqual(decide(withRules(decision), asked), verdict, 'always the same')
    }),
    2000
  )
})

test('the first rule decides, and is named with file and line', async (t) => {
  const asked: RoutingQuestion = {
    sender: { address: 'a@b', tier: 1, sandboxId: null },
    target: { address: 'c@d', tier: 1, sandboxId: null },
    type: 'request',
    capability: 'text.stats',
    sideEffect: 'none',
    justification: null,
    isReply: false,
    isArriving: true
  }
  t.alike(decide(withRules('deny', 'allow'), asked), {
    allowed: false,
    code: 'POLICY_DENIED',
    rule: 'policy.yaml:2: deny',
    line: 2,
    reason: 'the policy denies it'
  })
  t.alike(decide(withRules('allow', 'deny'), asked), { allowed: true, rule: 'policy.yaml:2: allow', line: 2 })
})

test('a message without a matching rule and tier row is denied', async (t) => {
  await holds(
    t,
    fc.property(question, (asked) => {
      const nothing: RoutingRules = { ...withRules(), tierRules: [] }
      assert.equal(decide(nothing, asked).allowed, asked.isReply && !OPEN.includes(asked.type))
    })
  )
})

test('an ask that somebody forgets to look at is a refusal', (t) => {
  const verdict = withRules('ask').policy?.find(
    {
      sender: { address: 'a@b', tier: 1, sandboxId: null },
      target: { address: 'c@d', tier: 1, sandboxId: null },
      type: 'request',
      capability: null,
      sideEffect: null
    },
    true
  )?.verdict
  t.is(verdict?.allowed, false)
})

test('nobody picks the rules that bind it by claiming to be weaker or elsewhere than it is', (t) => {
  const rulesOf = (from: Partial<typeof ANYBODY>, decision: PolicyDecision): RoutingRules => {
    const rule: PolicyRule = {
      from: { ...ANYBODY, ...from },
      to: ANYBODY,
      capability: null,
      type: null,
      sideEffect: null,
      decision,
      line: 2
    }
    return {
      ...SHIPPED,
      policy: routingPolicy([rule], { file: 'policy.yaml', nodesOfName: () => [], trustOf: () => 'mine' })
    }
  }
  const target = { address: 'text@here', tier: 1, sandboxId: 'ci' } as const
  const rest = {
    type: 'request',
    capability: null,
    sideEffect: null,
    justification: null,
    isReply: false,
    isArriving: true
  } as const
  const eve = (level: Tier, sandboxId: string | null): RoutingQuestion['sender'] => ({
    address: 'eve@there',
    tier: level,
    sandboxId
  })
  const claims = (certified: Tier, claimed: Tier, sandboxId: string | null = null): RoutingQuestion => ({
    ...rest,
    target,
    sender: eve(claimed, sandboxId),
    certified: eve(certified, null)
  })
  const justified = { ...claims(1, 2), justification: 'x' }
  t.is(outcome(decide(SHIPPED, justified)), 'allow', 'by the table alone')
  t.is(outcome(decide(rulesOf({ tier: [1] }, 'deny'), justified)), 'POLICY_DENIED', 'the rule for its kind')
  t.is(outcome(decide(rulesOf({ tier: [2] }, 'deny'), justified)), 'POLICY_DENIED', 'and the one for its content')
  t.is(outcome(decide(rulesOf({ tier: [1] }, 'ask'), justified)), 'ask')
  t.is(
    outcome(decide(rulesOf({ sandbox: ['ci'] }, 'allow'), claims(3, 3, 'ci'))),
    'ESCALATION_REQUIRED',
    'an allow is gained by no claim'
  )
  t.is(outcome(decide(rulesOf({ tier: [2, 3] }, 'allow'), claims(2, 3))), 'allow', 'one that is for both counts')
})

/** Rules that are for some senders and capabilities alone, at the lines 2, 3, ... */
const someRules = fc
  .array(
    fc.record({
      tier: fc.option(tier),
      capability: fc.option(fc.constant('text.stats')),
      decision: fc.constantFrom<PolicyDecision[]>('allow', 'ask', 'deny')
    }),
    { maxLength: 6 }
  )
  .map((list) =>
    list.map(
      (one, index): PolicyRule => ({
        from: { ...ANYBODY, tier: one.tier === null ? null : [one.tier] },
        to: ANYBODY,
        capability: one.capability === null ? null : [one.capability],
        type: null,
        sideEffect: null,
        decision: one.decision,
        line: index + 2
      })
    )
  )

/**
 * What a list of rules says of a sender, spelled out: the first that matches, those that ask left out where they can
 * ask nobody.
 */
function said(
  rules: readonly PolicyRule[],
  by: RoutingQuestion['sender'],
  asked: RoutingQuestion,
  mayAsk: boolean
): PolicyRule | null {
  const left = rules.filter((one) => mayAsk || one.decision !== 'ask')
  const isFor = ({ from, capability }: PolicyRule): boolean =>
    (from.tier?.includes(by.tier) ?? true) && (capability === null || capability[0] === asked.capability)
  return left.find(isFor) ?? null
}

/** Of what is said of a sender as it claims to be and as it is, the stricter; an allow needs both. */
function stricter(claimed: PolicyRule | null, certified: PolicyRule | null): PolicyRule | null {
  const both = [claimed, certified]
  for (const decision of ['deny', 'ask']) for (const one of both) if (one?.decision === decision) return one
  return certified === null ? null : claimed
}

test('a rule that can ask nobody is passed over: the next one that matches decides, then the tier table', async (t) => {
  await holds(
    t,
    fc.property(someRules, question, fc.option(party, { nil: undefined }), (rules, plain, certified) => {
      const asked = certified === undefined ? plain : { ...plain, certified }
      const verdict = decide(
        {
          ...SHIPPED,
          policy: routingPolicy(rules, { file: 'policy.yaml', nodesOfName: () => [], trustOf: () => 'mine' })
        },
        asked
      )
      const table = decide(SHIPPED, asked)
      const mayAsk = asked.isArriving && asked.type !== 'task-proposal'
      const one = said(rules, asked.sender, asked, mayAsk)
      const found = certified === undefined ? one : stricter(one, said(rules, certified, asked, mayAsk))
      const isFree = OPEN.includes(asked.type) && outcome(table) !== 'SANDBOX_VIOLATION'
      const isDecided = isFree && found !== null && (found.decision !== 'ask' || table.allowed)
      if (!isDecided) assert.deepEqual(verdict, table)
      else {
        assert.equal(outcome(verdict), found.decision === 'deny' ? 'POLICY_DENIED' : found.decision)
        assert.equal(verdict.line, found.line)
      }
      if (!mayAsk) assert.notEqual(outcome(verdict), 'ask')
    }),
    5000
  )
})

test('on its way out, or as a proposal, a message with an ask rule is denied by a later deny and opened by a later allow', (t) => {
  const end = (address: string, level: Tier): RoutingQuestion['sender'] => ({ address, tier: level, sandboxId: null })
  const arriving: RoutingQuestion = {
    sender: end('a@here', 1),
    target: end('b@there', 1),
    type: 'request',
    capability: null,
    sideEffect: null,
    justification: null,
    isReply: false,
    isArriving: true
  }
  for (const asked of [
    { ...arriving, isArriving: false },
    { ...arriving, type: 'task-proposal' as const }
  ]) {
    const denied = decide(withRules('ask', 'deny'), asked)
    t.alike([outcome(denied), denied.line], ['POLICY_DENIED', 3])
    const allowed = decide(withRules('ask', 'ask', 'allow', 'deny'), { ...asked, target: end('b@there', 3) })
    t.alike([outcome(allowed), allowed.line], ['allow', 4])
    t.alike(decide(withRules('ask'), asked), decide(SHIPPED, asked), 'nothing follows: the tier table')
    t.is(passedOver(withRules('ask', 'ask', 'deny'), asked)?.line, 2, 'and it is reported')
    t.is(passedOver(withRules('deny', 'ask'), asked), null)
    t.is(
      passedOver(withRules('ask'), { ...asked, sender: { ...asked.sender, sandboxId: 'ci' } }),
      null,
      'a sandbox decided before'
    )
  }
  t.is(outcome(decide(withRules('ask', 'deny'), arriving)), 'ask', 'a message that arrives is asked about')
  t.is(passedOver(withRules('ask', 'deny'), arriving), null)
  const refused = { ...arriving, target: end('b@here', 3) }
  t.alike(
    decide(withRules('ask', 'allow'), refused),
    decide(SHIPPED, refused),
    'a message that the tier table refuses waits for nobody'
  )
  t.is(passedOver(withRules('ask', 'allow'), refused)?.line, 2, 'and that is reported as well')
})
