import { shown } from '../../kit/text.js'
import type { Output, Style } from './output.js'

/** One cell: its text (of whomever), and how it looks. */
export type Cell = string | { readonly text: string; readonly style: Style }

const GAP = '  '
const NARROWEST = 8

/**
 * Lines of a table: titles, then rows. Cells are made safe to show. No line is wider than the terminal: its last column
 * is cut to fit, and columns without space are left out, the last ones first; a line names them.
 */
export async function tableLines(
  output: Output,
  titles: readonly string[],
  rows: readonly (readonly Cell[])[]
): Promise<string[]> {
  const cells = rows.map((row) => row.map((cell) => shown(textOf(cell)) || '-'))
  const widthOf = await textWidth([titles, ...cells])
  const widths = titles.map((title, i) => Math.max(widthOf(title), ...cells.map((row) => widthOf(row[i] ?? ''))))
  const max = output.width ?? Number.POSITIVE_INFINITY
  const count = fittingColumns(widths, max)
  const line = (texts: readonly string[], paint: (i: number, text: string) => string): string =>
    texts
      .slice(0, count)
      .map((text, i) => {
        if (i === count - 1) return paint(i, cut(text, max - widthBefore(widths, i), widthOf))
        return paint(i, text) + ' '.repeat((widths[i] ?? 0) - widthOf(text))
      })
      .join(GAP)
      .trimEnd()
  const head = line(titles, (_, text) => output.paint('dim', text))
  const lines = cells.map((texts, row) => line(texts, (i, text) => output.paint(styleOf(rows[row]?.[i]), text)))
  const omitted = titles.slice(count).join(', ')
  const foot = omitted === '' ? [] : [output.paint('dim', cut(`without ${omitted}`, max, widthOf))]
  return [head, ...lines, ...foot]
}

/** How many columns, from the first one, there is space for; at least one. */
function fittingColumns(widths: readonly number[], max: number): number {
  const last = widths.findLastIndex((width, i) => widthBefore(widths, i) + Math.min(width, NARROWEST) <= max)
  return Math.max(1, last + 1)
}

/** The width of all columns before one, with their gaps. */
function widthBefore(widths: readonly number[], column: number): number {
  return widths.slice(0, column).reduce((sum, width) => sum + width + GAP.length, 0)
}

/** Prints a table to `out`. */
export async function printTable(
  output: Output,
  titles: readonly string[],
  rows: readonly (readonly Cell[])[]
): Promise<void> {
  for (const line of await tableLines(output, titles, rows)) output.print(line)
}

/**
 * Lines `  label     value`, labels in one column; rows of null are left out. A value that is wider than the terminal
 * goes on in its column.
 */
export function factLines(output: Output, facts: readonly (readonly [label: string, value: Cell] | null)[]): string[] {
  const known = facts.filter((fact) => fact !== null)
  const width = Math.max(8, ...known.map(([label]) => label.length)) + 2
  return known.flatMap(([label, value]) =>
    foldedLines(output, value, { head: `  ${output.paint('dim', label.padEnd(width))}`, column: width + 2 })
  )
}

/** Columns of a terminal that a text gets at least; with less it is not folded. */
const FOLDED_MIN = 16

/**
 * A head and a text of others, over as many lines as the terminal needs. `column`: where the text begins, on each line.
 * A command to type stays whole.
 */
export function foldedLines(
  output: Output,
  value: Cell,
  { head, column }: { readonly head: string; readonly column: number }
): string[] {
  const text = shown(textOf(value), 2000) || '-'
  const width = (output.width ?? Number.POSITIVE_INFINITY) - column
  const lines = width < FOLDED_MIN ? [text] : wrap(text, width)
  return lines.map((line, i) => `${i === 0 ? head : ' '.repeat(column)}${output.paint(styleOf(value), line.trimEnd())}`)
}

/** Prints facts to `out`. */
export function printFacts(output: Output, facts: readonly (readonly [label: string, value: Cell] | null)[]): void {
  for (const line of factLines(output, facts)) output.print(line)
}

/** Breaks a long text into lines of at most `width` characters at spaces; a command of ours and the rest stay whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  const command = text.search(/(?<=^| |: )a2a-node (?=[a-z-])/)
  const words = command === -1 ? text.split(' ') : [...text.slice(0, command).trimEnd().split(' '), text.slice(command)]
  for (const word of words) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** `1 peer`, `2 peers`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text
}

function styleOf(cell: Cell | undefined): Style | null {
  return cell === undefined || typeof cell === 'string' ? null : cell.style
}

function cut(text: string, max: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= max) return text
  let kept = ''
  for (const char of text) {
    if (widthOf(kept + char) > max - 1) break
    kept += char
  }
  return `${kept}…`
}

/** ASCII needs no library to be measured; it is loaded only for a table that has more. */
async function textWidth(rows: readonly (readonly string[])[]): Promise<(text: string) => number> {
  if (rows.every((row) => row.every((text) => /^[ -~]*$/.test(text)))) return (text) => text.length
  return (await import('string-width')).default
}
