import test from 'brittle'
import fc from 'fast-check'
import { ReasoningFilter, withoutLoneEnd } from '../../../../src/adapters/agents/llm/llm-reasoning.js'
import { holds } from '../../../support/holds.js'

function answer(...pieces: readonly string[]): string {
  const filter = new ReasoningFilter()
  return pieces.map((piece) => filter.push(piece)).join('') + filter.end()
}

test('reasoning before an answer is no answer, in every tag that models write', (t) => {
  for (const [open, close] of [
    ['<think>', '</think>'],
    ['<thinking>', '</thinking>'],
    ['<thought>', '</thought>'],
    ['<reasoning>', '</reasoning>'],
    ['[THINK]', '[/THINK]'],
    ['<|channel|>analysis<|message|>', '<|end|><|start|>assistant<|channel|>final<|message|>'],
    ['<THINK>', '</THINK>'],
    ['<Thinking>', '</thinking>'],
    ['[think]', '[/think]']
  ]) {
    t.is(answer(`\n${open}Hm.${close}\n\n{"a":1}\n`), '{"a":1}\n')
    t.is(answer(`${open}Hm.${close}\n`, ' '.repeat(2000), '\n', 'a  b'), 'a  b', 'white space between them is neither')
    t.is(answer(`${open}a${close}${open}b${close}c`), 'c', 'twice')
    t.is(answer(`${open}without an end`), '')
  }
})

test('tags within an answer, and texts like tags, are text', (t) => {
  for (const text of ['Use <think> and </think>.', '<thinker>a</thinker>', '<thin', '<', '[1] [THINK]', ' a', ''])
    t.is(answer(text), text)
  const late = `${' '.repeat(2000)}<think>Hm.</think>a`
  t.alike([answer(late), answer(late.slice(0, 1000), late.slice(1000))], [late, late], 'no tag is awaited for ever')
})

test('an answer does not depend on how its text is cut', async (t) => {
  const word = fc.constantFrom(
    '<think>',
    '</think>',
    '<thi',
    'nk>',
    '[THINK]',
    '[/THINK]',
    '<THINK>',
    '</Think>',
    'İ',
    'a',
    ' ',
    '\n',
    '<',
    '</thinking>',
    '<thinking>'
  )
  const property = fc.property(
    fc.array(word, { maxLength: 12 }),
    fc.array(fc.nat(200), { maxLength: 12 }),
    (words, cuts) => {
      const text = words.join('')
      const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length]
      return answer(...places.slice(1).map((end, at) => text.slice(places[at], end))) === answer(text)
    }
  )
  await holds(t, property, 1000)
})

test('an end without a beginning ends reasoning where it ends a line or follows a word, in every tag', (t) => {
  for (const close of [
    '</think>',
    '</thinking>',
    '</thought>',
    '</reasoning>',
    '[/THINK]',
    '</Think>',
    '</REASONING>'
  ]) {
    for (const [before, after, rest] of [
      ['Hm, hello?\n', '\n\nhello', 'hello'],
      ['hmm {"no":2}', '\n{"a":1}', '{"a":1}'],
      ['Hm. ', ' \r\nhello', 'hello'],
      ['Hm.', 'hello', 'hello'],
      ['Hm.', ' hello', 'hello'],
      ['Hm.', '', ''],
      ['', '\n\nhello', 'hello'],
      [`I close with "${close}".\n`, '\nhello', 'hello']
    ] as const)
      t.is(withoutLoneEnd(`${before}${close}${after}`), rest, before + close)
    for (const text of [`The tag ${close} ends it.`, `Write \`${close}\`\nthen answer.`, `${close} it is`, 'hello'])
      t.is(withoutLoneEnd(text), text)
  }
  const example = 'Example:\n<think>\nHm.\n</think>\nhello'
  t.is(withoutLoneEnd(example), example)
})
