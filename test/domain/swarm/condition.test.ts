import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { CONDITION_MAX, isMet, parseCondition, referencesOf } from '../../../src/domain/swarm/condition.js'
import { type Lookup, valueAt } from '../../../src/kit/template/fill.js'
import { holds } from '../../support/holds.js'

const values: Record<string, unknown> = {
  n: 5,
  list: [1, 2],
  record: { b: 1, a: [true] },
  yes: true,
  no: false,
  empty: '',
  word: 'abc',
  zero: 0
}
const lookup: Lookup = ({ name, pointer, facet }) =>
  facet === 'result' ? valueAt(values[name], pointer) : `${name} ${facet}`

function met(text: string): boolean {
  const parsed = parseCondition(text)
  assert.ok(parsed.ok, text)
  return isMet(parsed.condition, lookup)
}

test('a condition compares values of results; an absent one counts as null', (t) => {
  for (const text of [
    '{n} == 5',
    '{n} > 4 && {n} <= 5',
    'not ({n} < 5 or {n} != 5)',
    '{word} < "abd"',
    "{word} == 'abc'",
    '{nothing} == null',
    '!{nothing}',
    '{list/1} == 2',
    '{yes}',
    '{record/a/0} == true',
    '{n:status} == "n status"',
    '{list} == {list}',
    '{n} == 4 || {n} == 5 && true',
    '{n} == -5 or {n} >= 5e0'
  ])
    t.ok(met(text), text)
  for (const text of [
    '{n} == "5"',
    '{word} > 3',
    '{list} < {list}',
    '{no}',
    '{empty}',
    '{zero}',
    '{nothing}',
    '{record/__proto__}',
    'null',
    '!true'
  ])
    t.absent(met(text), text)
})

test('a text that is no condition is reported, and none of it is run', (t) => {
  for (const text of [
    '',
    '(',
    '{n} ==',
    '{n} == 5)',
    'process.exit(1)',
    '{n} = 5',
    '{n} 5',
    'and',
    '{n b}',
    '"open',
    '{n} == abc',
    '=='
  ])
    t.absent(parseCondition(text).ok, text)
  t.absent(parseCondition(`${'('.repeat(40)}true${')'.repeat(40)}`).ok)
  t.absent(parseCondition('!'.repeat(40)).ok)
  t.absent(parseCondition(' '.repeat(CONDITION_MAX + 1)).ok)
})

test('reading never throws for any text; a readable condition is met or not, twice alike', async (t) => {
  const piece = fc.constantFrom(
    '{n}',
    '{list/0}',
    '{x:status}',
    '1',
    '"a"',
    'null',
    '==',
    '<',
    '&&',
    '||',
    '!',
    '(',
    ')',
    ' ',
    'and',
    'not',
    '\\',
    '"'
  )
  await holds(
    t,
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece, { maxLength: 12 }).map((all) => all.join(' '))
      ),
      (text) => {
        const parsed = parseCondition(text)
        if (!parsed.ok) return assert.notEqual(parsed.reason, '')
        assert.equal(isMet(parsed.condition, lookup), isMet(parsed.condition, lookup))
        assert.ok(referencesOf(parsed.condition).length <= text.length)
      }
    ),
    1000
  )
})
