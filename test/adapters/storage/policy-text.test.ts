import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { readPolicy } from '../../../src/adapters/storage/policy-text.js'
import { ANYBODY, type PolicyRule } from '../../../src/domain/policy/rule.js'
import { holds } from '../../support/holds.js'
import { WHOLE_POLICY } from '../../support/whole-policy.js'

/** Lines and reasons of the faults of a text. */
function faultsOf(text: string): string[] {
  const reading = readPolicy(text)
  return reading.ok ? [] : reading.faults.map(({ line, reason }) => `${line}: ${reason}`)
}

function rulesOf(text: string): readonly PolicyRule[] {
  const reading = readPolicy(text)
  assert.ok(reading.ok, faultsOf(text).join('; '))
  return reading.rules
}

test('a whole policy is read, each rule with its line; a criterion takes one value or a list', (t) => {
  const [first, second] = rulesOf(WHOLE_POLICY)
  t.alike(first, {
    from: { node: ['laptop'], agent: ['operator'], tier: [0, 1], sandbox: [null] },
    to: { node: null, agent: ['text', 'files'], tier: [2], sandbox: ['ci'] },
    capability: ['text.*', 'files.read'],
    type: ['request'],
    sideEffect: ['none', 'read'],
    decision: 'allow',
    line: 3
  })
  t.alike(second, { from: ANYBODY, to: ANYBODY, capability: null, type: null, sideEffect: null, decision: 'ask', line: 13 })
})

test('an empty file, and one of comments, has no rules', (t) => {
  for (const text of ['', '# nothing yet\n', 'rules:\n', 'rules: []\n']) t.alike(rulesOf(text), [], JSON.stringify(text))
})

test('every fault names its line', (t) => {
  t.alike(faultsOf('rules:\n  - decison: allow\n    decision: allow\n'), [
    '2: a rule has no key "decison"; did you mean decision? (from, to, capability, type, sideEffect, decision)'
  ])
  t.alike(faultsOf('rules:\n  - decision: ask\n    from: { nod: a }\n'), [
    '3: from has no key "nod"; did you mean node? (node, agent, tier, sandbox)'
  ])
  t.alike(faultsOf('rule: []\n'), ['1: the file has no key "rule"; did you mean rules? (rules)'])
  t.alike(faultsOf('rules:\n  - {}\n'), ['2: decision: takes allow, ask or deny'])
  t.alike(faultsOf('rules:\n  - decision: deny\n    capability: te*xt\n'), [
    '3: capability.0: takes the id of a capability, or its beginning with a * at the end'
  ])
  for (const [text, part] of [
    ['rules: {}\n', '1: rules is a list'],
    ['rules:\n  - just text\n', '2: a rule is a mapping'],
    ['- a\n', '1: the file is a mapping'],
    ['rules:\n  - decision: ask\n    type: response\n', '3: type.0: takes request, notification'],
    ['rules:\n  - decision: ask\n    from: { tier: L4 }\n', '3: from.tier.0: takes L0'],
    ['rules:\n  - decision: ask\n    to: { sandbox: "../x" }\n', '3: to.sandbox.0'],
    ['rules: [\n', '2: '],
    ['a: 1\na: 2\n', '2: '],
    ['rules:\n  - &a { decision: deny }\n  - *a\n', '3: a rule is a mapping'],
    ['rules:\n  - from: &a { nod: x }\n    decision: ask\n  - from: *a\n    decision: ask\n', '2: from has no key']
  ] as const) {
    t.ok(faultsOf(text)[0]?.includes(part), `${JSON.stringify(text)}: ${faultsOf(text)[0]}`)
  }
  t.ok(faultsOf(`rules:\n${'  - decision: ask\n'.repeat(1001)}`)[0]?.includes('more than 1000 rules'))
})

test('no text makes the reader throw, and none that is broken has rules', async (t) => {
  const piece = fc.constantFrom(
    'rules:',
    '\n',
    '  ',
    '- ',
    'decision: ',
    'deny',
    '{',
    '}',
    '[',
    ']',
    '&a',
    '*a',
    ': ',
    '#',
    '"',
    'from',
    '|'
  )
  await holds(
    t,
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece, { maxLength: 30 }).map((parts) => parts.join(''))
      ),
      (text) => {
        const reading = readPolicy(text)
        assert.ok(reading.ok ? reading.rules.length === reading.places.length : reading.faults.length > 0)
      }
    ),
    1000
  )
})
