import test, { type Assert } from 'brittle'
import { accessRule, EVERYBODY, ruleRequest } from '../../../src/cli/documents/rule.js'

const rule = (...given: string[]): unknown => accessRule(given, '--see')

test('the readers of a document are given by everybody, nobody, a tier, sandboxes and members', (t: Assert) => {
  t.is(rule(), null, 'no output, no change')
  t.alike(rule('everybody'), EVERYBODY)
  t.alike(rule('nobody'), { members: [], tier: null, sandboxes: [], unsandboxed: false })
  t.alike(rule('L1'), { members: [], tier: 'L1', sandboxes: [], unsandboxed: true })
  t.alike(rule('phone, laptop', 'box'), {
    members: ['phone', 'laptop', 'box'],
    tier: null,
    sandboxes: [],
    unsandboxed: false
  })
  t.alike(rule('sandbox:ci'), { members: [], tier: 'L3', sandboxes: ['ci'], unsandboxed: false })
  t.alike(rule('L2,sandbox:ci', 'phone'), { members: ['phone'], tier: 'L2', sandboxes: ['ci'], unsandboxed: true })
  t.alike(rule('everybody', 'sandbox:ci', 'sandbox:lab'), {
    members: [],
    tier: 'L3',
    sandboxes: ['ci', 'lab'],
    unsandboxed: true
  })
})

test('words that contradict each other, and empty ones, are USAGE', async (t: Assert) => {
  for (const given of [
    [''],
    ['a,'],
    ['nobody,a'],
    ['nobody', 'L1'],
    ['L1,L2'],
    ['everybody', 'L2'],
    ['sandbox:'],
    ['sandbox:a b']
  ])
    await t.exception(() => rule(...given), /--see/, given.join(' '))
})

test('a rule in force is asked for again as it is', (t: Assert) => {
  t.alike(ruleRequest(undefined), EVERYBODY)
  const member = { id: 'abcd', name: 'phone' }
  t.alike(ruleRequest({ members: [member], tier: null, sandboxes: ['ci'], unsandboxed: false }), {
    members: ['abcd'],
    tier: null,
    sandboxes: ['ci'],
    unsandboxed: false
  })
})
