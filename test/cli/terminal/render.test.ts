import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { Screen } from '../../../src/cli/terminal/screen.js'
import { Output } from '../../../src/cli/terminal/output.js'
import { problemLines } from '../../../src/cli/terminal/banner.js'
import { factLines, foldedLines, plural, tableLines, wrap } from '../../../src/cli/terminal/render.js'
import { holds } from '../../support/holds.js'

function plain(columns?: number): Output {
  const sink = { write: () => true, isTTY: columns !== undefined, columns }
  return new Output({ json: false, color: 'never', out: sink, err: sink, env: {} })
}

test('columns of a table begin below each other, and empty cells show a dash', async (t: Assert) => {
  const lines = await tableLines(
    plain(),
    ['NAME', 'TIER', 'AGENTS'],
    [
      ['gpu-box', 'L1', 'host'],
      ['phone', 'L3', '']
    ]
  )
  t.alike(lines, ['NAME     TIER  AGENTS', 'gpu-box  L1    host', 'phone    L3    -'])
})

test('wide characters take two columns', async (t: Assert) => {
  const lines = await tableLines(
    plain(),
    ['NAME', 'TIER'],
    [
      ['電脳', 'L1'],
      ['ab', 'L2']
    ]
  )
  t.alike(lines, ['NAME  TIER', '電脳  L1', 'ab    L2'])
})

test('on a terminal no line is wider than it, for any last column', async (t: Assert) => {
  await holds(
    t,
    fc.asyncProperty(
      fc.array(fc.tuple(fc.string({ maxLength: 10 }), fc.string({ maxLength: 120 })), { minLength: 1, maxLength: 5 }),
      async (rows) => {
        const lines = await tableLines(plain(80), ['A', 'B'], rows)
        return lines.every((line) => [...line].length <= 80)
      }
    ),
    150
  )
})

test('a table leaves columns out on a narrow terminal, the last ones first, and names them; no line is wider', async (t: Assert) => {
  const titles = ['NAME', 'ID', 'TIER', 'STATUS', 'AGENTS']
  const row = ['gpu-box', 'x4m1...77be', 'L1', 'online', 'files, host, text']
  t.alike(await tableLines(plain(40), titles, [row]), [
    'NAME     ID           TIER  STATUS',
    'gpu-box  x4m1...77be  L1    online',
    'without AGENTS'
  ])
  t.alike(await tableLines(plain(20), titles, [row]), ['NAME     ID', 'gpu-box  x4m1...77be', 'without TIER, STATU…'])
  t.alike(await tableLines(plain(5), titles, [row]), ['NAME', 'gpu-…', 'with…'])
  t.is((await tableLines(plain(), titles, [row])).length, 2, 'without a terminal every column is there')
  await holds(
    t,
    fc.asyncProperty(fc.array(fc.array(fc.string({ maxLength: 30 }), { minLength: 4, maxLength: 4 })), async (rows) => {
      for (const width of [1, 10, 40, 80]) {
        const lines = await tableLines(plain(width), ['A', 'B', 'C', 'D'], rows)
        if (lines.some((line) => [...line].length > width)) return false
      }
      return true
    }),
    100
  )
})

test('cells cannot break a table or colour it', async (t: Assert) => {
  const lines = await tableLines(plain(), ['A', 'B'], [['x\ny\u001b[31m', 'z']])
  t.alike(lines, ['A        B', 'x y[31m  z'])
})

test('facts stand in one column and those without a value are left out', (t: Assert) => {
  t.alike(factLines(plain(), [['store', '/a'], null, ['network', '']]), ['  store     /a', '  network   -'])
})

test('wrapping keeps every word and the width', (t: Assert) => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 12 }), {
        minLength: 1,
        maxLength: 30
      }),
      (words) => {
        const lines = wrap(words.join(' '), 20)
        return lines.join(' ') === words.join(' ') && lines.every((line) => line.length <= 20)
      }
    ),
    { numRuns: 200 }
  )
  t.is(plural(1, 'peer'), '1 peer')
  t.is(plural(0, 'peer'), '0 peers')
})

test('a screen replaces what it drew and never draws more than fits', (t: Assert) => {
  let text = ''
  const screen = new Screen({ write: (part) => (text += part), isTTY: true, columns: 10, rows: 4 })
  screen.draw(['one', 'a line that is far too long'])
  t.is(text, '\r\u001b[0Jone\na line th\n')
  text = ''
  screen.draw(['1', '2', '3', '4', '5'])
  t.is(text, '\u001b[2A\r\u001b[0J1\n2\n… 3 more \n')
  text = ''
  screen.clear()
  t.is(text, '\u001b[3A\r\u001b[0J')
})

test('without a terminal a screen is a sequence of blocks', (t: Assert) => {
  let text = ''
  const screen = new Screen({ write: (part) => (text += part) })
  screen.draw(['one', 'two'])
  screen.draw(['three'])
  t.is(text, 'one\ntwo\n\nthree\n\n')
})

test('facts and problems go on in their column on a narrow terminal, and keep a command to type whole', async (t: Assert) => {
  const facts = [
    ['agents', '4 ready: host, text, files, planner'],
    ['waiting', '1 for approval: a2a-node --home /a/long/path approvals ls']
  ] as const
  t.alike(factLines(plain(30), facts), [
    '  agents    4 ready: host,',
    '            text, files,',
    '            planner',
    '  waiting   1 for approval:',
    '            a2a-node --home /a/long/path approvals ls'
  ])
  const problem = { code: 'DISK_FULL', message: 'the disk of the store is full', next: 'a2a-node doctor' }
  t.alike(problemLines(plain(28), [problem]), [
    'problem: the disk of the',
    '         store is full',
    '         [DISK_FULL]',
    '  try: a2a-node doctor'
  ])
  for (const wide of [undefined, 200]) t.is(problemLines(plain(wide), [problem]).length, 2)
  const words = fc.array(fc.stringMatching(/^[b-z:.]{1,12}$/), { maxLength: 30 }).map((list) => list.join(' '))
  await holds(
    t,
    fc.property(words, fc.integer({ min: 30, max: 90 }), fc.integer({ min: 2, max: 12 }), (text, width, column) => {
      const lines = foldedLines(plain(width), text, { head: 'h'.padEnd(column), column })
      const whole = lines.map((line) => line.slice(column)).join(' ')
      return lines.every((line) => line.length <= width) && whole === (text === '' ? '-' : text)
    })
  )
})
