import test from 'brittle'
import { isRecord } from '../../../src/kit/json.js'
import type { RoutingQuestion } from '../../../src/domain/routing/decide.js'
import { World, type FakeNode } from '../../support/fake-node.js'

const REFUSAL = { code: 'POLICY_DENIED', rule: 'test', reason: 'no' } as const

function questionOf({ core }: FakeNode, tier: 0 | 3, target: 0 | 3): RoutingQuestion {
  const party = (agentId: string, of: 0 | 3): RoutingQuestion['sender'] => ({
    address: `${agentId}@${core.self}`,
    tier: of,
    sandboxId: null
  })
  return {
    sender: party('a', tier),
    target: party('b', target),
    type: 'request',
    capability: null,
    sideEffect: null,
    justification: null,
    isReply: false,
    isArriving: true
  }
}

test('rules that a program sets hold above those of the mesh, and leave these as they are', async (t) => {
  const node = await new World(t).owner()
  const { accessControl } = node.core
  const question = questionOf(node, 3, 0)
  const before = accessControl.meshRules()
  t.is(accessControl.allows(question), null)
  const open = ([0, 1, 2, 3] as const).map((sourceTier) => ({
    sourceTier,
    allowedTargetTiers: [0, 1, 2, 3] as const,
    requiresEscalationJustification: false
  }))
  accessControl.setRules({ tierRules: open })
  t.ok(accessControl.allows(question) !== null)
  t.is(accessControl.meshRules(), before)
  accessControl.setRules({ replies: 'strict' })
  t.ok(accessControl.isStrict)
  t.ok(accessControl.allows(question) !== null, 'rules that are not named stay')
})

test('the policy decides with the rules, and not in the table alone', async (t) => {
  const node = await new World(t).owner()
  const { accessControl } = node.core
  const question = questionOf(node, 0, 0)
  t.ok(accessControl.ask(question).allowed)
  const verdict = { allowed: false, code: 'POLICY_DENIED', rule: 'policy.yaml:1: deny', reason: 'no', line: 1 } as const
  accessControl.usePolicy({ find: () => ({ decision: 'deny', verdict }) })
  t.alike(accessControl.ask(question), verdict)
  t.ok(accessControl.askTable(question).allowed)
  accessControl.usePolicy(null)
  t.ok(accessControl.ask(question).allowed)
})

test('all refusals are in the audit log, and of a flood a bounded number a second among the events', async (t) => {
  const world = new World(t)
  const node = await world.owner()
  const { accessControl, events } = node.core
  const shown = (): number => events.recent().filter(({ type }) => type === 'refusal').length
  for (let at = 0; at < 50; at++) accessControl.record('refusal', REFUSAL, { peer: null, header: null })
  t.is(node.audit.of('refusal').length, 50)
  t.is(shown(), 20)
  world.clock.advance(1000)
  accessControl.record('refusal', REFUSAL, { peer: null, header: null })
  t.is(shown(), 21)
  const last = events.recent().findLast(({ type }) => type === 'refusal')
  t.ok(isRecord(last) && JSON.stringify(last).includes('"notShownBefore":30'), 'how many were left out')
})
