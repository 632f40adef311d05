import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { readRule } from '../../../src/domain/policy/read-rule.js'
import { ANYBODY } from '../../../src/domain/policy/rule.js'
import { holds } from '../../support/holds.js'

/** Paths and reasons of what is wrong with a rule. */
function faultsOf(value: unknown): string[] {
  return readRule(value).faults.map(({ path, reason }) => `${path.join('.')} > ${reason}`)
}

test('a rule says what it says and fits anything else; one value is a list of one', (t) => {
  const rest = { from: ANYBODY, to: ANYBODY, capability: null, type: null, sideEffect: null }
  t.alike(readRule({ decision: 'deny' }), { rule: { ...rest, decision: 'deny' }, faults: [] })
  const { rule } = readRule({
    name: 'a',
    to: { sandbox: [null, 'ci'], tier: 'l0' },
    type: 'notification',
    decision: 'ask'
  })
  t.alike(rule, {
    ...rest,
    name: 'a',
    to: { ...ANYBODY, sandbox: [null, 'ci'], tier: [0] },
    type: ['notification'],
    decision: 'ask'
  })
})

test('any value in the place of a rule is read or its faults are reported, in words of this reader, and nothing is thrown', async (t) => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('allow', 'ASK', 'L1', 'text.*', null, undefined, [], {}, 7, ['none', 'Read'])
  )
  const party = fc.dictionary(fc.constantFrom('node', 'agent', 'tier', 'sandbox', 'Node', '__proto__'), value)
  const field = fc.constantFrom(
    'name',
    'from',
    'to',
    'capability',
    'type',
    'sideEffect',
    'decision',
    'Decision',
    'constructor'
  )
  const rules = fc.oneof(fc.dictionary(field, fc.oneof(value, party)), value)
  await holds(
    t,
    fc.property(rules, (one) => {
      const { rule, faults } = readRule(one)
      assert.equal(rule === null, faults.length > 0)
      for (const { reason } of faults) {
        assert.doesNotMatch(reason, /Invalid|expected|received|undefined|\[object/)
        assert.ok(reason.length < 400, reason)
      }
      if (rule !== null) assert.ok(['allow', 'ask', 'deny'].includes(rule.decision))
    }),
    1000
  )
})

test('values are bounded', (t) => {
  const many = (count: number): unknown => ({
    decision: 'deny',
    capability: Array.from({ length: count }, () => 'a.b')
  })
  t.alike(faultsOf(many(256)), [])
  t.alike(faultsOf(many(257)), ['capability > capability: takes at most 256 values'])
  t.is(faultsOf({ decision: 'deny', capability: [5, 'a', 6] }).length, 2, 'each wrong one is reported')
})
