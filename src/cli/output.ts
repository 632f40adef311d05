import { toWire } from '../adapters/control/wire.js'
import type { ErrorBody } from '../kit/errors.js'
import { shellWord, shown } from '../kit/text.js'

/** When colours are used: `auto` means a terminal that wants them. */
export type ColorMode = 'auto' | 'always' | 'never'

/** Styles of words on a terminal. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

const CODES: Readonly<Record<Style, string>> = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' }
// C1 controls and direction marks: JSON leaves them as they are, a terminal obeys them.
const UNSAFE_IN_JSON = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const MESSAGE_MAX = 2000
const HINT_MAX = 1000
const DETAIL_MAX = 400

/** A place that text is written to; what a process stream and a test have in common. */
export interface Sink {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/** How a command speaks. */
export interface OutputOptions {
  readonly json: boolean
  readonly color: ColorMode
  readonly out: Sink
  readonly err: Sink
  readonly env: Readonly<Record<string, string | undefined>>
  /** `--home` as it was typed: commands that are shown go on with it. */
  readonly home?: string | null
  /** The words of this command line, for commands that are shown to be typed again. */
  readonly typed?: readonly string[]
}

/** Where a command speaks: data to `out`, everything else to `err`. */
export class Output {
  readonly json: boolean
  readonly out: Sink
  readonly err: Sink
  readonly #home: string | null
  readonly #typed: readonly string[]
  readonly #color: { readonly out: boolean; readonly err: boolean }

  constructor(options: OutputOptions) {
    this.json = options.json
    this.#home = options.home ?? null
    this.#typed = options.typed ?? []
    this.out = options.out
    this.err = options.err
    this.#color = { out: wantsColor(options.out, options), err: wantsColor(options.err, options) }
  }

  /** One line of data. */
  print(line = ''): void {
    this.out.write(`${line}\n`)
  }

  /** One line for the person at the terminal: progress, hints. */
  note(line = ''): void {
    this.err.write(`${line}\n`)
  }

  /** One JSON object on one line, its schema first. */
  object(schema: string, value: object): void {
    this.print(jsonLine({ schema: `a2a-node/${schema}`, ...value }))
  }

  /** Colours a text meant for `out`. */
  paint(style: Style | null, text: string): string {
    return this.#color.out ? painted(style, text) : text
  }

  /** Colours a text meant for `err`. */
  paintNote(style: Style | null, text: string): string {
    return this.#color.err ? painted(style, text) : text
  }

  /** Columns of the terminal behind `out`; null when it is none, or does not say (some give 0). */
  get width(): number | null {
    return this.out.isTTY === true ? this.out.columns || null : null
  }

  /** A command to type next, for the node that was meant: with the `--home` of this command line. */
  hint(command: string): string {
    // What comes with a remark is to be typed somewhere else.
    if (this.#home === null || !command.startsWith('a2a-node ') || / --home[ =]| # /.test(command)) return command
    return `a2a-node --home ${shellWord(this.#home)} ${command.slice('a2a-node '.length)}`
  }

  /** What to type after an error: for the node that was meant, and, where more words are all that lacks, this very command line. */
  nextOf(error: Pick<ErrorBody, 'code' | 'next'>): readonly string[] {
    const again = error.code === 'ESCALATION_REQUIRED' ? this.#justified() : null
    return again === null ? error.next.map((one) => this.hint(one)) : [again]
  }

  /** What holds an error, with what to type after it for the node that was meant. */
  hinted<T extends { readonly error: ErrorBody | null }>(value: T): T {
    return value.error === null ? value : { ...value, error: { ...value.error, next: this.nextOf(value.error) } }
  }

  #justified(): string | null {
    const words = this.#typed.map(shellWord)
    const end = this.#typed.includes('--') ? this.#typed.indexOf('--') : words.length
    if (words.length === 0 || this.#typed.slice(0, end).some((word) => /^--justification(=|$)/.test(word))) return null
    return ['a2a-node', ...words.slice(0, end), "--justification '<why>'", ...words.slice(end)].join(' ')
  }

  /** An error as this output shows errors: JSON or `error: ... [CODE]` and the next steps. */
  error(error: ErrorBody): void {
    const next = this.nextOf(error)
    if (this.json) return this.note(jsonLine({ error: { ...error, next } }))
    this.note(`${this.paintNote('red', 'error:')} ${shown(error.message, MESSAGE_MAX)}  [${error.code}]`)
    for (const name of ['usage', 'expected', 'given']) {
      const text = textOf(error.data, name)
      if (text !== null) this.note(`  ${name}: ${shown(text, DETAIL_MAX)}`)
    }
    for (const fault of faultsOf(error.data)) this.note(`  ${shown(fault, MESSAGE_MAX)}`)
    for (const candidate of candidatesOf(error.data)) this.note(`  one of: ${shown(candidate)}`)
    for (const one of next) this.note(`  try: ${shown(one, HINT_MAX)}`)
  }
}

/** JSON on one line, safe to show on a terminal: control characters escaped. */
export function jsonLine(value: unknown): string {
  return escapeUnsafe(JSON.stringify(toWire(value)) ?? 'null')
}

/** JSON over several lines, for people; also safe to show. */
export function jsonText(value: unknown): string {
  return escapeUnsafe(JSON.stringify(toWire(value), null, 2) ?? 'null')
}

/** A long text of others, line breaks kept, everything else made safe to show. */
export function plainText(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => shown(line.replaceAll('\t', '    '), Number.POSITIVE_INFINITY))
    .join('\n')
}

function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE_IN_JSON, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A detail of an error that is a text. */
function textOf(data: unknown, name: string): string | null {
  const text = (data as Readonly<Record<string, unknown>> | null | undefined)?.[name]
  return typeof text === 'string' ? text : null
}

/** What is wrong with a file, place by place; a single fault stands in the message. */
function faultsOf(data: unknown): string[] {
  const { file, faults, moreFaults } = (data ?? {}) as { file?: unknown; faults?: unknown; moreFaults?: unknown }
  if (!Array.isArray(faults) || faults.length < 2) return []
  const rows = (faults as readonly { line?: unknown; reason?: unknown }[]).map(
    ({ line, reason }) => `${String(file)}${typeof line === 'number' ? `:${line}` : ''}: ${String(reason)}`
  )
  return typeof moreFaults === 'number' && moreFaults > 0 ? [...rows, `and ${moreFaults} more`] : rows
}

function candidatesOf(data: unknown): string[] {
  const candidates = (data as { candidates?: unknown } | null | undefined)?.candidates
  return Array.isArray(candidates) ? candidates.slice(0, 20).map((one) => (typeof one === 'string' ? one : jsonLine(one))) : []
}

function painted(style: Style | null, text: string): string {
  return style === null || text === '' ? text : `\u001b[${CODES[style]}m${text}\u001b[0m`
}

function wantsColor(sink: Sink, { color, env }: { color: ColorMode; env: Readonly<Record<string, string | undefined>> }): boolean {
  if (color !== 'auto') return color === 'always'
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false
  return sink.isTTY === true
}
