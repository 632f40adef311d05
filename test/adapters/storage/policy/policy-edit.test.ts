import test from 'brittle'
import { insertRule, ruleText } from '../../../../src/adapters/storage/policy/policy-edit.js'
import { readPolicy } from '../../../../src/adapters/storage/policy/policy-text.js'
import { ANYBODY, type PolicyRule } from '../../../../src/domain/policy/rule.js'
import { WHOLE_POLICY } from '../../../support/whole-policy.js'

/** How many rules a text has. */
function countOf(text: string): number {
  const reading = readPolicy(text)
  return reading.ok ? reading.rules.length : -1
}

const RULE: Omit<PolicyRule, 'line'> = {
  from: { node: ['y'.repeat(52)], agent: ['operator'], tier: [1], sandbox: null },
  to: { ...ANYBODY, agent: ['text'] },
  capability: ['text.stats'],
  type: null,
  sideEffect: null,
  decision: 'allow'
}

test('a rule is written before another; comments, order and form of all else stay', (t) => {
  const { whole: text, ...written } = insertRule(WHOLE_POLICY, {
    rule: RULE,
    beforeLine: 13,
    note: '2026-01-02 operator@phone'
  })
  t.alike(written, { line: 13, text: ruleText(RULE) }, 'and where it stands')
  const lines = text.split('\n')
  t.is(lines.toSpliced(12, 1).join('\n'), WHOLE_POLICY)
  t.is(lines[12], `  - ${ruleText(RULE)} # 2026-01-02 operator@phone`)
  t.is(countOf(text), 3)
  t.is(
    insertRule('rules: [{ decision: ask }]\n', { rule: RULE, beforeLine: 1, note: 'x' }).whole,
    `rules: [${ruleText(RULE)}, { decision: ask }]\n`
  )
  t.ok(
    insertRule('rules:\r\n- decision: ask\r\n', { rule: RULE, beforeLine: 2, note: 'x' }).whole.startsWith(
      `rules:\r\n- ${ruleText(RULE)} # x\r\n- decision`
    )
  )
})

test('a rule is written with each of its criteria', (t) => {
  const party = { node: ['a', 'b'], agent: ['text'], tier: [1], sandbox: [null], trust: ['guest'] } as const
  const rule: Omit<PolicyRule, 'line'> = {
    name: 'all',
    from: party,
    to: { ...party, trust: ['mine', 'guest'] },
    capability: ['text.stats'],
    type: ['request'],
    sideEffect: ['exec'],
    decision: 'ask'
  }
  const { whole, line } = insertRule(WHOLE_POLICY, { rule, beforeLine: 3, note: 'x' })
  const reading = readPolicy(whole)
  t.alike(reading.ok && reading.rules[0], { ...rule, line })
})

test('a note cannot bring in anything but a comment', (t) => {
  const { whole: text } = insertRule(WHOLE_POLICY, {
    rule: RULE,
    beforeLine: 3,
    note: 'x\n  - decision: allow\u2028\r\n- {}'
  })
  t.is(countOf(text), 3)
})

test('a text that cannot take the rule is left alone', async (t) => {
  for (const [text, line] of [
    [WHOLE_POLICY, 4],
    ['rules: []\n', 1],
    ['rules: [\n', 1],
    ['rules:\n  - decision: maybe\n', 2]
  ] as const) {
    await t.exception(() => insertRule(text, { rule: RULE, beforeLine: line, note: '' }), /the policy file/)
  }
  const odd = 'rules:\n  -\n    # asked\n    decision: ask\n'
  t.is(countOf(insertRule(odd, { rule: RULE, beforeLine: 4, note: 'x' }).whole), 2)
})
