import { shown } from '../../kit/text.js'
import { timeText } from '../words.js'
import type { Output, Style } from './output.js'

/** Characters of a line without a terminal. */
const LINE_MAX = 500
/** A terminal with less space for the text leaves columns out. */
const TEXT_MIN = 20
/** The year and its dash. */
const YEAR = 5
const GAP = '  '

/** A column between time and text. */
export interface LogColumn {
  readonly text: string
  /** In characters; a longer text moves the line. */
  readonly width: number
  readonly style?: Style | null
}

/** The parts of a line of a log. `at`: an ISO time. */
export interface LogLineParts {
  readonly at: string
  readonly columns: readonly LogColumn[]
  readonly text: string
}

/**
 * One line: time, columns, and the text, cut to fit the terminal. A narrow terminal gets the time without its year, the
 * last column without padding, and the text. The texts are made safe to show.
 */
export function logLine(output: Output, { at, columns, text }: LogLineParts): string {
  const max = output.width ?? LINE_MAX
  const wide = [timeText(at), ...columns.map((one) => shown(one.text, 40).padEnd(one.width))]
  const left = max - wide.join(GAP).length - GAP.length
  if (left < TEXT_MIN) return narrowLine(output, { at, columns, text }, max)
  const [time = '', ...cells] = wide
  const painted = cells.map((cell, i) => output.paint(columns[i]?.style ?? null, cell))
  return [output.paint('dim', time), ...painted, shown(text, left)].join(GAP)
}

function narrowLine(output: Output, { at, columns, text }: LogLineParts, max: number): string {
  const time = fitted(timeText(at).slice(YEAR), max)
  const last = fitted(columns.at(-1)?.text ?? '', Math.min(40, max - time.length - GAP.length))
  const left = max - [time, last].join(GAP).length - GAP.length
  const cells = [output.paint('dim', time), last, fitted(text, left)]
  return cells.filter((cell) => cell !== '').join(GAP)
}

function fitted(text: string, max: number): string {
  return max < 1 ? '' : shown(text, max)
}
