import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { readPolicy } from '../../../../src/adapters/storage/policy/policy-text.js'
import { ANYBODY, type PolicyRule } from '../../../../src/domain/policy/rule.js'
import { holds } from '../../../support/holds.js'
import { WHOLE_POLICY } from '../../../support/whole-policy.js'

/** Lines and reasons of the faults of a text. */
function faultsOf(text: string): string[] {
  const reading = readPolicy(text)
  return reading.ok ? [] : reading.faults.list.map(({ line, reason }) => `${line}: ${reason}`)
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
  t.alike(second, {
    from: ANYBODY,
    to: ANYBODY,
    capability: null,
    type: null,
    sideEffect: null,
    decision: 'ask',
    line: 13
  })
})

test('an empty file, and one of comments, has no rules', (t) => {
  for (const text of ['', '# nothing yet\n', 'rules:\n', 'rules: []\n'])
    t.alike(rulesOf(text), [], JSON.stringify(text))
})

test('every fault names its line', (t) => {
  t.alike(faultsOf('rules:\n  - decison: allow\n    decision: allow\n'), [
    '2: a rule has no key "decison"; did you mean decision? (name, from, to, capability, type, sideEffect, decision)'
  ])
  t.alike(faultsOf('rules:\n  - decision: ask\n    from: { nod: a }\n'), [
    '3: from has no key "nod"; did you mean node? (node, agent, tier, sandbox, trust)'
  ])
  t.alike(faultsOf('rule: []\n'), ['1: the file has no key "rule"; did you mean rules? (rules)'])
  t.alike(faultsOf('rules:\n  - {}\n'), ['2: decision: takes allow, ask or deny; it is missing'])
  t.alike(faultsOf('rules:\n  - decision: deny\n    capability: te*xt\n'), [
    '3: capability: takes the id of a capability, or its beginning with a * at the end; "te*xt" does not fit'
  ])
  for (const [text, part] of [
    ['rules: {}\n', '1: rules is a list'],
    ['rules:\n  - just text\n', '2: a rule is a mapping'],
    ['- a\n', '1: the file is a mapping'],
    ['rules:\n  - decision: ask\n    type: response\n', '3: type: takes request, notification'],
    ['rules:\n  - decision: ask\n    from: { tier: L4 }\n', '3: from.tier: takes L0'],
    ['rules:\n  - decision: ask\n    to: { sandbox: "../x" }\n', '3: to.sandbox'],
    ['rules: [\n', '2: '],
    ['a: 1\na: 2\n', '2: '],
    ['rules:\n  - &a { decision: deny }\n  - *a\n', '3: a rule is a mapping'],
    ['rules:\n  - from: &a { nod: x }\n    decision: ask\n  - from: *a\n    decision: ask\n', '2: from has no key']
  ] as const) {
    t.ok(faultsOf(text)[0]?.includes(part), `${JSON.stringify(text)}: ${faultsOf(text)[0]}`)
  }
  t.ok(faultsOf(`rules:\n${'  - decision: ask\n'.repeat(1001)}`)[0]?.includes('more than 1000 rules'))
})

test('all faults of a file are reported at once, in the order of its lines', (t) => {
  const text = `rule: 1
rules:
  - decision: Deny
    form: { node: a }
  - from: { tier: [L0, 2], agent: Text }
    Capability: x.*
    type: []
    sideEffect: Exec
    decision: ALLOW
  - from: phone
    to: { node: 7 }
    capability:
    decision: [deny]
  - from: L2
    decision: deny
    decision2: deny
`
  t.alike(
    faultsOf(text).map((one) => one.replace(/ \(.*\)$/, '')),
    [
      '1: the file has no key "rule"; did you mean rules?',
      '3: decision: takes allow, ask or deny; "Deny" does not fit; did you mean deny?',
      '4: a rule has no key "form"; did you mean from?',
      '5: from.agent: takes the id of an agent (a-z 0-9 . _ -); "Text" does not fit; did you mean text?',
      '5: from.tier: takes L0, L1, L2 or L3; 2 is no text (put it in quotes); did you mean L2?',
      '6: a rule has no key "Capability"; did you mean capability?',
      '7: type: the list is empty; leave the key out for any',
      '8: sideEffect: takes none, read, write or exec; "Exec" does not fit; did you mean exec?',
      '9: decision: takes allow, ask or deny; "ALLOW" does not fit; did you mean allow?',
      '10: from: takes criteria (node, agent, tier, sandbox, trust); "phone" does not fit; did you mean { node: phone }?',
      '11: to.node: takes the name or the id of a node; 7 is no text',
      '12: capability: takes the id of a capability, or its beginning with a * at the end; it has no value',
      '13: decision: takes allow, ask or deny; a list does not fit',
      '14: from: takes criteria (node, agent, tier, sandbox, trust); "L2" does not fit; did you mean { tier: L2 }?',
      '16: a rule has no key "decision2"; did you mean decision?'
    ]
  )
})

test('mistakes in the form of a file are reported in plain words', (t) => {
  for (const [text, reason] of [
    ['rules:\n\t- decision: deny\n', 'tab'],
    ['rules:\n  - decision: deny\n  decision: ask\n', 'the indentation does not fit'],
    ['rules: [{ decision: deny }\n', 'bracket'],
    ['rules:\n  - decision: deny\n    decision: ask\n', 'stands there twice'],
    ['rules:\n  - capability: *.run\n    decision: deny\n', '2: "*.run" begins with a * and needs quotes']
  ] as const)
    t.ok(
      faultsOf(text).some((one) => one.includes(reason)),
      `${JSON.stringify(text)}: ${faultsOf(text).join(' / ')}`
    )
})

test('a rule may have a name of its own, which no other rule has', (t) => {
  const [one, other] = rulesOf('rules:\n  - { name: no-shell, decision: deny }\n  - decision: deny\n')
  t.alike([one?.name, other?.name], ['no-shell', undefined])
  t.alike(
    faultsOf(
      'rules:\n  - { name: a, decision: deny }\n  - { name: b, decision: deny }\n  - { name: a, decision: ask }\n'
    ),
    ['4: name: the rule at line 2 is called "a" already']
  )
  t.ok(faultsOf('rules:\n  - { name: No Shell, decision: deny }\n')[0]?.startsWith('2: name: takes'))
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
        assert.ok(reading.ok ? reading.rules.length === reading.places.length : reading.faults.list.length > 0)
      }
    ),
    1000
  )
})
