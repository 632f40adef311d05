import fc from 'fast-check'
import test from 'brittle'
import { logLine } from '../../../src/cli/terminal/log-line.js'
import { Output } from '../../../src/cli/terminal/output.js'
import { timeText } from '../../../src/cli/words.js'
import { holds } from '../../support/holds.js'

function plain(columns?: number): Output {
  const sink = { write: () => true, isTTY: columns !== undefined, columns }
  return new Output({ json: false, color: 'never', out: sink, err: sink, env: {} })
}

const AT = '2026-11-30T03:20:33.000Z'
const LINE = {
  at: AT,
  columns: [
    { text: 'membership', width: 10 },
    { text: 'admitted', width: 18 }
  ],
  text: 'desktop  by laptop  "desktop" L1'
}

test('a line of a log keeps time, event and text on a narrow terminal and leaves the other columns out', (t) => {
  const time = timeText(AT)
  t.is(logLine(plain(), LINE), `${time}  membership  admitted            desktop  by laptop  "desktop" L1`)
  t.is(logLine(plain(80), LINE), `${time}  membership  admitted            desktop  by laptop  "deskt…`)
  t.is(logLine(plain(40), LINE), `${time.slice(5)}  admitted  desktop  by l…`)
  t.is(logLine(plain(20), LINE), `${time.slice(5)}  adm…`)
})

test('no line of a log is wider than the terminal', async (t) => {
  const arbColumn = fc.record({ text: fc.string({ maxLength: 60 }), width: fc.nat(20) })
  const arbLine = fc.record({ at: fc.constantFrom(AT, 'x'), columns: fc.array(arbColumn), text: fc.string() })
  await holds(
    t,
    fc.property(arbLine, fc.integer({ min: 1, max: 120 }), (line, width) => logLine(plain(width), line).length <= width)
  )
})
