import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { LookAlikes, skeleton } from '../../../src/kit/names/look-alikes.js'
import { holds } from '../../support/holds.js'

test('a name of another script that looks like an existing one is found, whichever was first', (t: Assert) => {
  const pairs = [
    ['аре', 'ape', 'Cyrillic'],
    ['ΑΒΕ', 'ABE', 'Greek'],
    ['ոսո', 'nun', 'Armenian'],
    ['осе', 'oce', 'Cyrillic o, s and e'],
    ['ɑpe', 'ape', 'a phonetic letter'],
    ['о', '0', 'a letter for a digit']
  ] as const
  for (const [one, other, what] of pairs) {
    const names = new LookAlikes(['laptop', other])
    t.is(names.find(one), skeleton(one) === skeleton(other) ? other : null, what)
    t.is(new LookAlikes([one]).find(other), skeleton(one) === skeleton(other) ? one : null, what)
  }
  t.is(new LookAlikes(['ape']).find('аре'), 'ape')
  t.is(new LookAlikes(['ABE']).find('ΑΒΕ'), 'ABE')
  t.is(new LookAlikes(['boss']).find('bo\u200bss'), 'boss')
  t.is(new LookAlikes(['Zoë']).find('Zoe\u0308'), 'Zoë')
})

test('letters that look like a hyphen or a dot count as one', (t: Assert) => {
  const names = new LookAlikes(['web-1', 'foo.bar'])
  for (const name of ['web\u30fc1', 'web\u4e001', 'web\u31271']) t.is(names.find(name), 'web-1')
  for (const name of ['foo\u00b7bar', 'foo\u2027bar']) t.is(names.find(name), 'foo.bar')
})

test('other names, equal names and two names of ASCII are never alike', async (t: Assert) => {
  t.is(new LookAlikes(['worker-1', 'boss', 'Пётр']).find('worker-l'), null)
  t.is(new LookAlikes(['Пётр']).find('Пётр'), null)
  t.is(new LookAlikes(['Пётр', 'ape']).find('Павел'), null)
  const ascii = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 })
  await holds(
    t,
    fc.property(fc.array(ascii, { maxLength: 8 }), ascii, (names, name) => {
      assert.equal(new LookAlikes(names).find(name), null)
    })
  )
})

test('the look-alike form of a text is its own look-alike form', async (t: Assert) => {
  const like = fc.string({
    unit: fc.constantFrom('а', 'о', 'o', '0', 'm', 'rn', 'ë', 'l', '1', 'Ι', '工', 'エ', '\u200b'),
    maxLength: 8
  })
  await holds(
    t,
    fc.property(like, (text) => {
      assert.equal(skeleton(skeleton(text)), skeleton(text))
      assert.equal(skeleton(text.normalize('NFD')), skeleton(text))
    })
  )
})
