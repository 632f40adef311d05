import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES, OPENING_TYPES, type MessageType } from '../../../src/domain/envelope/envelope.js'
import { decide, type RoutingQuestion, type RoutingRules, type Verdict } from '../../../src/domain/routing/decide.js'
import { CONFLICT_SANDBOX } from '../../../src/domain/routing/effective.js'
import { DEFAULT_TIER_ASSIGNMENTS, DEFAULT_TIER_RULES } from '../../../src/domain/routing/tier-rules.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { arbAddress, arbSandboxConfig, arbTierPair } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'

const RULES: RoutingRules = {
  tierRules: DEFAULT_TIER_RULES,
  sandbox: { enforced: true, crossSandboxAllowList: [] },
  replies: 'exchange'
}

interface Asked {
  from?: Tier
  to?: Tier
  type?: MessageType
  justification?: string | null
  isReply?: boolean
  senderSandbox?: string | null
  targetSandbox?: string | null
  target?: string
}

function question(asked: Asked = {}): RoutingQuestion {
  return {
    sender: { address: 'a@one', tier: asked.from ?? 0, sandboxId: asked.senderSandbox ?? null },
    target: { address: asked.target ?? 'b@two', tier: asked.to ?? 0, sandboxId: asked.targetSandbox ?? null },
    type: asked.type ?? 'request',
    capability: null,
    sideEffect: null,
    justification: asked.justification ?? null,
    isReply: asked.isReply ?? false,
    isArriving: true
  }
}

function codeOf(verdict: Verdict): string {
  return verdict.allowed ? 'allowed' : verdict.code
}

const OPENING = MESSAGE_TYPES.filter((type) => OPENING_TYPES.has(type))
const REPLIES = MESSAGE_TYPES.filter((type) => !OPENING_TYPES.has(type))

/** Written out by hand from the spec's table: targets, and those of them that need a justification. */
const TABLE: Record<Tier, { free: readonly number[]; justified: readonly number[] }> = {
  0: { free: [0, 1, 2, 3], justified: [] },
  1: { free: [0, 1], justified: [] },
  2: { free: [2], justified: [0, 1] },
  3: { free: [2, 3], justified: [0, 1] }
}

const arbJustification = fc.oneof(
  fc.constant(null),
  fc.constant(' \n'),
  fc.string({ minLength: 1, maxLength: 40 }),
  fc.constant('ü'.repeat(600))
)

test('Feature: a2a-mcp-protocols, Property 16: Tier-based routing enforcement', async (t) => {
  await holds(
    t,
    fc.property(
      arbTierPair(),
      fc.constantFrom(...OPENING),
      arbJustification,
      fc.boolean(),
      ([from, to], type, justification, isReply) => {
        const verdict = decide(RULES, question({ from, to, type, justification, isReply }))
        const { free, justified } = TABLE[from]
        const isGood = justification !== null && justification.trim() !== '' && Buffer.byteLength(justification) <= 1024
        const expected = free.includes(to)
          ? 'allowed'
          : !justified.includes(to)
            ? 'TIER_VIOLATION'
            : isGood
              ? 'allowed'
              : 'ESCALATION_REQUIRED'
        assert.equal(codeOf(verdict), expected)
        assert.ok(verdict.rule.length > 0 && verdict.rule.length < 200)
      }
    ),
    1000
  )
})

test('the default rules and assignments are those of the spec', (t) => {
  t.alike(
    DEFAULT_TIER_RULES.map((rule) => [rule.sourceTier, rule.allowedTargetTiers, rule.requiresEscalationJustification]),
    [
      [0, [0, 1, 2, 3], false],
      [1, [0, 1], false],
      [2, [0, 1, 2], true],
      [3, [0, 1, 2, 3], true]
    ]
  )
  const byTier = [0, 1, 2, 3].map((tier) =>
    Object.entries(DEFAULT_TIER_ASSIGNMENTS)
      .filter(([, one]) => one === tier)
      .map(([id]) => id)
  )
  t.alike(byTier, [
    ['sun'],
    ['mercury', 'earth', 'jupiter'],
    ['venus', 'mars', 'pluto', 'saturn', 'titan'],
    [
      'enceladus',
      'ganymede',
      'neptune',
      'charon',
      'uranus',
      'europa',
      'mimas',
      'io',
      'triton',
      'callisto',
      'atlas',
      'andromeda'
    ]
  ])
})

test('a verdict names its rule in words', (t) => {
  t.is(decide(RULES, question({ from: 1, to: 1 })).rule, 'tier: L1 may open to L0, L1')
  t.alike(decide(RULES, question({ from: 1, to: 2 })), {
    allowed: false,
    code: 'TIER_VIOLATION',
    rule: 'tier: L1 may open to L0, L1',
    reason: 'an L1 agent may not open to an L2 agent'
  })
  t.is(decide(RULES, question({ from: 2, to: 0 })).rule, 'escalation: L2 to L0 needs a justification')
  t.is(decide({ ...RULES, tierRules: [] }, question()).rule, 'tier: L0 may open to nobody')
})

test('a justification is asked for only on the way up, also by other rules', (t) => {
  const own: RoutingRules = {
    ...RULES,
    tierRules: [{ sourceTier: 1, allowedTargetTiers: [0, 1, 2], requiresEscalationJustification: true }]
  }
  t.alike(
    [0, 1, 2].map((to) => codeOf(decide(own, question({ from: 1, to: to as Tier })))),
    ['ESCALATION_REQUIRED', 'allowed', 'allowed']
  )
})

test('a reply passes along an open exchange with any tiers, and never without one', async (t) => {
  await holds(
    t,
    fc.property(arbTierPair(), fc.constantFrom(...REPLIES), ([from, to], type) => {
      assert.equal(codeOf(decide(RULES, question({ from, to, type, isReply: true }))), 'allowed')
      const refused = decide(RULES, question({ from, to, type }))
      assert.deepEqual([codeOf(refused), refused.rule], ['TIER_VIOLATION', 'reply: no open exchange'])
    })
  )
})

test('strict replies need an exchange and must pass the tables as well', async (t) => {
  const strict: RoutingRules = { ...RULES, replies: 'strict' }
  await holds(
    t,
    fc.property(arbTierPair(), fc.constantFrom(...REPLIES), ([from, to], type) => {
      const asOpening = codeOf(decide(RULES, question({ from, to })))
      assert.equal(codeOf(decide(strict, question({ from, to, type, isReply: true }))), asOpening)
      assert.equal(codeOf(decide(strict, question({ from, to, type }))), 'TIER_VIOLATION')
    })
  )
})

const arbSandbox = fc.constantFrom(null, 'ci', 'lab')

test('Feature: a2a-mcp-protocols, Property 29: Sandbox routing enforcement', async (t) => {
  await holds(
    t,
    fc.property(
      arbSandboxConfig(),
      fc.constantFrom('ci', 'lab'),
      arbSandbox,
      fc.tuple(arbAddress(), fc.nat({ max: 3 })),
      (config, own, other, [random, pick]) => {
        const onList = config.crossSandboxAllowList[pick]
        const target = onList === undefined ? random : onList.includes('@') ? onList : `${onList}@somewhere`
        const isListed = config.crossSandboxAllowList.some(
          (one) => one === target || one === target.slice(0, target.indexOf('@'))
        )
        const verdict = decide(
          { ...RULES, sandbox: config },
          question({ senderSandbox: own, targetSandbox: other, target })
        )
        const mayPass = !config.enforced || own === other || isListed
        assert.equal(codeOf(verdict), mayPass ? 'allowed' : 'SANDBOX_VIOLATION')
      }
    ),
    1000
  )
})

test('sandboxes are asked before tiers', (t) => {
  t.is(
    codeOf(decide(RULES, question({ from: 1, to: 2, senderSandbox: 'ci', targetSandbox: 'lab' }))),
    'SANDBOX_VIOLATION'
  )
})

test('an agent outside any sandbox reaches into one, and the answer comes back', (t) => {
  t.is(codeOf(decide(RULES, question({ targetSandbox: 'ci' }))), 'allowed')
  t.is(codeOf(decide(RULES, question({ senderSandbox: 'ci', type: 'response', isReply: true }))), 'allowed')
  t.is(codeOf(decide(RULES, question({ senderSandbox: 'ci' }))), 'SANDBOX_VIOLATION', 'it opens nothing outside')
})

test('a party in two sandboxes reaches nobody and is reached by nobody', (t) => {
  const sandbox = { enforced: true, crossSandboxAllowList: ['b'] }
  for (const other of [null, 'ci', CONFLICT_SANDBOX]) {
    t.is(
      codeOf(decide({ ...RULES, sandbox }, question({ senderSandbox: CONFLICT_SANDBOX, targetSandbox: other }))),
      'SANDBOX_VIOLATION'
    )
    t.is(
      codeOf(decide({ ...RULES, sandbox }, question({ senderSandbox: other, targetSandbox: CONFLICT_SANDBOX }))),
      'SANDBOX_VIOLATION'
    )
  }
})
