import test from 'brittle'
import fc from 'fast-check'
import { readFrontMatter } from '../../../../src/adapters/agents/files/front-matter.js'
import { holds } from '../../../support/holds.js'

function linesOf(text: string): (number | null)[] {
  const read = readFrontMatter(text)
  return read.ok ? [] : read.faults.map((fault) => fault.line)
}

test('front matter is data, and the rest is the body', (t) => {
  const read = readFrontMatter('---\nname: a\nlist: [1, two]\n---\nBody\n---\nmore\n')
  if (!read.ok) return t.fail(read.faults[0]?.reason)
  t.alike(read.data, { name: 'a', list: [1, 'two'] })
  t.is(read.body, 'Body\n---\nmore\n')
})

test('a byte order mark, CRLF and blanks after the dashes do no harm', (t) => {
  const read = readFrontMatter('\uFEFF---  \r\nname: a\r\n--- \r\nBody')
  t.ok(read.ok)
  if (read.ok) t.alike([read.data, read.body], [{ name: 'a' }, 'Body'])
})

test('values are found by line, also through keys, lists and anchors; a missing one by its nearest parent', (t) => {
  const read = readFrontMatter('---\na: &x\n  b:\n    - one\n    - two\nc: *x\n---\n')
  if (!read.ok) return t.fail(read.faults[0]?.reason)
  t.is(read.lineOf([]), 2)
  t.is(read.lineOf(['a']), 2)
  t.is(read.lineOf(['a', 'b']), 3)
  t.is(read.lineOf(['a', 'b', 1]), 5)
  t.is(read.lineOf(['a', 'none', 'below']), 2)
  t.is(read.lineOf(['c', 'b', 0]), 4)
})

test('text without front matter, or with one that never ends, is a fault of line 1', (t) => {
  t.alike(linesOf('# Title\n'), [1])
  t.alike(linesOf(''), [1])
  t.alike(linesOf('---\nname: a\n'), [1])
})

test('bad YAML is a fault with the line of the file', (t) => {
  t.alike(linesOf('---\nname: a\nlist: [1, 2\nother: 3\n---\n').slice(0, 1), [4])
  t.alike(linesOf('---\nname: a\nname: b\n---\n'), [3], 'a key given twice')
})

test('front matter over 32 KiB, nested too deeply or grown by anchors is refused', (t) => {
  t.alike(linesOf(`---\na: ${'x'.repeat(33_000)}\n---\n`), [1])
  t.is(linesOf(`---\na: ${'['.repeat(5000)}${']'.repeat(5000)}\n---\n`).length, 1)
  t.is(linesOf(`---\n${'- '.repeat(5000)}x\n---\n`).length, 1)
  const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i}, `.repeat(9)}]`)
  t.is(linesOf(`---\nl0: &l0 [1]\n${levels.join('\n')}\n---\n`).length, 1)
  t.is(linesOf('---\na: &a\n  b: *a\n---\n').length, 1, 'an anchor inside itself')
  t.is(linesOf('---\n__proto__: { x: 1 }\n---\n').length, 1)
})

test('a list or a mapping is no key', (t) => {
  t.alike(linesOf('---\na: 1\n? [b]\n: 2\n---\n'), [3])
  t.is(linesOf(`---\n${'{'.repeat(60)}${'}'.repeat(60)}\n---\n`).length, 1)
})

test('reading never throws, for any content of a file', async (t) => {
  const yaml = fc.array(
    fc.constantFrom(
      'a: ',
      '- ',
      '[',
      ']',
      '{',
      '}',
      '&a ',
      '*a',
      '"',
      "'",
      '|\n',
      '\n',
      '  ',
      '? ',
      ': ',
      '!!set ',
      '%',
      '#',
      '---',
      '1',
      '\t',
      '\0',
      'é'
    ),
    { maxLength: 60 }
  )
  await holds(
    t,
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        yaml.map((parts) => `---\n${parts.join('')}\n---\n`)
      ),
      (text) => {
        const read = readFrontMatter(text)
        return read.ok || read.faults.length > 0
      }
    ),
    600
  )
})

test('a plain value that is no YAML is read as the clients of sub-agent files read it: as text', (t) => {
  const texts = [
    'Use it for tests: unit and end to end',
    'Use when: x. Examples: <example>user: "It\'s late"</example>\\n<b>assistant: ok</b>',
    '@mentions of people',
    '`code` first',
    '*Bold* words: first',
    '[Beta] reads logs',
    '{name} greets: people',
    '- dash first',
    '&more, and: this',
    '%d of it',
    'ends with a colon:'
  ]
  for (const text of texts) {
    for (const end of ['\n', '\r\n']) {
      const read = readFrontMatter(
        ['---', 'name: a', `description: ${text}`, 'tools: [x, y]', 'a2a:', '  tier: L1', '---', ''].join(end)
      )
      if (!read.ok) return t.fail(`${text}: ${read.faults[0]?.reason}`)
      t.alike(read.data, { name: 'a', description: text, tools: ['x', 'y'], a2a: { tier: 'L1' } })
      t.is(read.lineOf(['a2a', 'tier']), 6, 'lines stay those of the file')
    }
  }
  const folded = readFrontMatter('---\ndescription: First: a line\n  second: "another"\n\nname: a\n---\n')
  t.alike(folded.ok && folded.data, { description: 'First: a line second: "another"', name: 'a' })
})

test('where a value cannot be read, the fault says to put it in quotes', (t) => {
  for (const [line, text] of [
    [4, 'name: a\na2a:\n  description: one: two\n'],
    [2, 'description: "Fast" and good\n'],
    [3, "name: a\ndescription: 'It's good'\n"],
    [4, 'name: a\na2a:\n  capabilities: @all\n']
  ] as const) {
    const read = readFrontMatter(`---\n${text}---\n`)
    t.ok(
      !read.ok && read.faults.some((one) => one.line === line && one.reason.endsWith('put the value in quotes')),
      text
    )
  }
  const open = readFrontMatter('---\ntools: [a, b\nname: c\n---\n')
  t.ok(!open.ok && open.faults.every(({ reason }) => !reason.includes('quotes')), 'an open list is no text')
})
