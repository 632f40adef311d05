import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { DOCUMENT_NAME, nameFault, type NameForm, nameRule, NODE_NAME } from '../../../src/kit/names/rule.js'
import { holds } from '../../support/holds.js'

const arbForm = fc.constantFrom(NODE_NAME, DOCUMENT_NAME)
const arbText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      'é',
      'о',
      'ο',
      '机',
      'ひ',
      'カ',
      '한',
      'ㄅ',
      '1',
      '٢',
      '-',
      ' ',
      '\u0301',
      '\u200b',
      'ﬁ'
    ),
    maxLength: 6
  })
)

function reasonOf(text: string, form: NameForm = NODE_NAME): string | null {
  return nameFault(text, form)?.reason ?? null
}

test('names that are stable, visible and of one script are taken, each in its own script', (t: Assert) => {
  const names = [
    'laptop',
    'gpu box',
    'Zoë',
    '机器',
    'Пётр',
    'Αθήνα',
    'Հայաստան',
    'ラップトップ1',
    'X線カメラ',
    '한국 pc',
    'ㄅㄆ箱',
    'l·l',
    'हिन्दी',
    'שלום'
  ]
  for (const name of names) t.is(reasonOf(name), null, name)
})

test('a name that holds one of these characters is refused, and the refusal names the character and its place', (t: Assert) => {
  const attacks: readonly (readonly [string, string])[] = [
    ['zero-width space', '\u200b'],
    ['zero-width joiner', '\u200d'],
    ['zero-width non-joiner', '\u200c'],
    ['word joiner', '\u2060'],
    ['byte order mark', '\ufeff'],
    ['Arabic letter mark', '\u061c'],
    ['tag letter', '\u{e0061}'],
    ['Hangul choseong filler', '\u115f'],
    ['Hangul jungseong filler', '\u1160'],
    ['Hangul filler', '\u3164'],
    ['halfwidth Hangul filler', '\uffa0'],
    ['soft hyphen', '\u00ad'],
    ['right-to-left override', '\u202e'],
    ['isolate', '\u2066'],
    ['variation selector', '\ufe0f'],
    ['variation selector of the second block', '\u{e0100}'],
    ['combining grapheme joiner', '\u034f'],
    ['Mongolian vowel separator', '\u180e'],
    ['Mongolian variation selector', '\u180b'],
    ['Khmer inherent vowel', '\u17b4'],
    ['control character', '\u0007'],
    ['C1 control character', '\u009b'],
    ['line separator', '\u2028'],
    ['private character', '\ue000'],
    ['half of a pair', '\ud800'],
    ['unassigned character', '\u0378'],
    ['no-break space', '\u00a0'],
    ['ideographic space', '\u3000'],
    ['Braille blank', '\u2800'],
    ['Cyrillic o', '\u043e'],
    ['Greek omicron', '\u03bf'],
    ['Armenian oh', '\u0585'],
    ['letter of phonetics', '\u0251'],
    ['small capital', '\u1d00'],
    ['Cherokee letter', '\u13aa'],
    ['fullwidth letter', '\uff42'],
    ['mathematical letter', '\u{1d41b}'],
    ['ligature', '\ufb01'],
    ['fullwidth full stop', '\uff0e'],
    ['division slash', '\u2215'],
    ['emoji', '\u{1f680}']
  ]
  for (const [what, character] of attacks) {
    const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
    for (const form of [NODE_NAME, DOCUMENT_NAME]) {
      const reason = reasonOf(`bo${character}ss`, form)
      t.ok(reason?.startsWith(`${code} at character 3 `), `${what}: ${reason}`)
    }
  }
})

test('each word has one script, and words may have several', (t: Assert) => {
  for (const name of ['Мой PC', 'Отчёт PDF 2026', 'Ελλάδα PC'])
    for (const form of [NODE_NAME, DOCUMENT_NAME]) t.is(reasonOf(name, form), null)
  t.ok(reasonOf('my b\u043ess')?.startsWith('U+043E at character 5 '))
})

test('marks belong on letters, few of them; digits of two Arabic kinds and names that are too long are refused', (t: Assert) => {
  t.ok(reasonOf('\u0301boss')?.includes('is a mark'))
  t.ok(reasonOf(`x${'\u0329'.repeat(5)}`)?.startsWith('U+0329 at character 2'))
  t.is(reasonOf(`x${'\u0329'.repeat(4)}`), null)
  t.ok(reasonOf('e\u0301')?.startsWith('U+0065 at character 1'), 'two characters that are one in the usual form')
  t.ok(reasonOf('\u0661\u06f1')?.includes('digits'))
  t.is(reasonOf(''), 'it is empty')
  t.is(reasonOf('x'.repeat(65)), 'it has 65 characters, and 64 are the most')
  t.is(reasonOf('x'.repeat(65), DOCUMENT_NAME), null)
  t.ok(reasonOf(' boss')?.includes('space'))
})

test('a refusal has the name that was meant, when there is one', (t: Assert) => {
  const insteadOf = (text: string): string | null => nameFault(text, NODE_NAME)?.instead ?? null
  t.is(insteadOf('bo\u200bss'), 'boss')
  t.is(insteadOf('ｂｏｓｓ'), 'boss')
  t.is(insteadOf('Zoe\u0308'), 'Zoë')
  t.is(insteadOf('b\u043ess'), null)
  t.is(insteadOf('me@home'), null)
  t.is(insteadOf('\u200b'), null)
})

test('an accepted name stays itself in NFKC and has no invisible characters, and a suggested name is accepted', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbText, arbForm, (text, form) => {
      const fault = nameFault(text, form)
      if (fault === null) {
        assert.equal(text.normalize('NFKC'), text)
        assert.equal(text.trim(), text)
        assert.ok(text.length >= 1 && text.length <= form.max)
        assert.doesNotMatch(text, /[\p{C}\p{Default_Ignorable_Code_Point}]/u)
      } else if (fault.instead !== null) assert.equal(nameFault(fault.instead, form), null)
    })
  )
})

test('every name of printable ASCII with a letter or digit, and no dash first, is taken, and nodes have no @', async (t: Assert) => {
  const arbAscii = fc
    .string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: 64
    })
    .map((text) => text.trim())
    .filter((text) => /^[^-]/.test(text) && /[A-Za-z0-9]/.test(text))
  await holds(
    t,
    fc.property(arbAscii, (text) => {
      assert.equal(nameFault(text, DOCUMENT_NAME), null)
      assert.equal(nameFault(text, NODE_NAME) === null, !text.includes('@'))
    })
  )
  t.ok(nameRule(NODE_NAME).includes('1 to 64 characters, without @'))
  t.absent(nameRule(DOCUMENT_NAME).includes('@'))
})

test('a name that a command line reads as an option, a pattern or a place is refused, with the reason', (t) => {
  for (const form of [NODE_NAME, DOCUMENT_NAME]) {
    for (const name of ['-x', '--json', '-', '\u2010box', '--name=x'])
      t.ok(nameFault(name, form)?.reason.includes('begins with a dash'), name)
    for (const name of ['*', '?', '..', '/', '[!]', '~', '**'])
      t.ok(nameFault(name, form)?.reason.includes('neither a letter nor a digit'), name)
    for (const name of ['x-1', 'a*', '7', '#1', 'Ünal', '电脑']) t.is(nameFault(name, form), null, name)
  }
  t.is(nameFault('--json', NODE_NAME)?.instead, 'json')
  t.is(nameFault('*', NODE_NAME)?.instead, null)
})
