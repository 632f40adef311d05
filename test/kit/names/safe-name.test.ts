import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { nameFault, NODE_NAME } from '../../../src/kit/names/rule.js'
import { safeName, safeTitle } from '../../../src/kit/names/safe-name.js'
import { holds } from '../../support/holds.js'

test('a name that deceives is shown with its characters written out, any other as it is', (t: Assert) => {
  t.is(safeName('bo\u200bss', NODE_NAME), 'bo\\u{200b}ss')
  t.is(safeName('bоss', NODE_NAME), 'b\\u{43e}ss')
  t.is(safeName('boss\u{e0061}', NODE_NAME), 'boss\\u{e0061}')
  t.is(safeName('Пётр', NODE_NAME), 'Пётр')
  t.is(safeName('gpu box', NODE_NAME), 'gpu box')
  t.is(safeName('\u001b[31mred\n', NODE_NAME), '[31mred')
  t.is(safeName('\u0007', NODE_NAME), '')
})

test('every displayed name of others is visible, short and displayed again the same', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => {
      const safe = safeName(text, NODE_NAME)
      assert.ok(safe.length <= 64)
      assert.doesNotMatch(safe, /[\p{C}\p{Default_Ignorable_Code_Point}]/u)
      assert.equal(safeName(safe, NODE_NAME), safe)
      if (nameFault(text, NODE_NAME) === null) assert.equal(safe, text)
    })
  )
})

test('a title has no character that nobody sees, and keeps its signs', (t: Assert) => {
  t.is(safeTitle('Te\u200bst\u{e0061}er → 🧪', 128), 'Tester → 🧪')
  t.is(safeTitle('x'.repeat(200), 128).length, 128)
})
