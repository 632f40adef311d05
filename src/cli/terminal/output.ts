import { toWire } from '../../adapters/control/wire.js'
import { NodeError, type ErrorBody } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import { Screen } from './screen.js'
import { type Sink, terminalText } from './terminal.js'

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
/** The beginning of a command of ours, with variables before it. */
const COMMAND = /^(?:[A-Z_]+=(?:<[^>]*>|\S+) )*a2a-node (?=\S)/

/** How a command speaks. */
export interface OutputOptions {
  readonly json: boolean
  readonly color: ColorMode
  readonly out: Sink
  readonly err: Sink
  readonly env: Readonly<Record<string, string | undefined>>
  /** `--home` as typed, for printed commands. */
  readonly home?: string | null
  /** The words of this command line, for printed commands that repeat it. */
  readonly typed?: readonly string[]
}

/** Where a command speaks: data to `out`, everything else to `err`. */
export class Output {
  readonly json: boolean
  readonly #options: OutputOptions
  readonly #out: Sink
  readonly #err: Sink
  readonly #home: string | null
  readonly #typed: readonly string[]
  readonly #color: { readonly out: boolean; readonly err: boolean }

  constructor(options: OutputOptions) {
    this.json = options.json
    this.#options = options
    this.#home = options.home ?? null
    this.#typed = options.typed ?? []
    this.#out = options.out
    this.#err = options.err
    this.#color = { out: wantsColor(options.out, options), err: wantsColor(options.err, options) }
  }

  /** The same output with its data on `err`, where `out` is for something else. */
  toNotes(): Output {
    return new Output({ ...this.#options, out: this.#err })
  }

  /** One line of data. */
  print(line = ''): void {
    this.#out.write(`${terminalText(line)}\n`)
  }

  /**
   * Prints content without a final line break: unchanged for a file or a program. A terminal gets text on lines of its
   * own, without control sequences.
   * @throws NodeError USAGE for bytes on a terminal
   */
  contents(contents: string | Uint8Array): void {
    if (this.#out.isTTY !== true) this.#out.write(contents)
    else if (typeof contents === 'string') this.print(plainText(contents.replace(/\n$/, '')))
    else
      throw new NodeError(
        'USAGE',
        'these are bytes, which a terminal cannot show: send them to a file, as in `> file`',
        { next: [] }
      )
  }

  /** A part of the terminal behind `out` that is drawn again in place. */
  screen(): Screen {
    return new Screen(this.#out)
  }

  /** The same behind `err`; null when it is no terminal. */
  noteScreen(): Screen | null {
    return this.isNoteTerminal ? new Screen(this.#err) : null
  }

  /** Is there a terminal behind `err`? */
  get isNoteTerminal(): boolean {
    return this.#err.isTTY === true
  }

  /** One line for the person at the terminal: progress, hints. */
  note(line = ''): void {
    this.#err.write(`${terminalText(line)}\n`)
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
    return this.#out.isTTY === true ? this.#out.columns || null : null
  }

  /** Commands to type next, for the node that was meant: with the `--home` of this command line. */
  hint(line: string): string {
    return line
      .split(' && ')
      .map((command) => this.#hinted(command))
      .join(' && ')
  }

  #hinted(command: string): string {
    // A command with a remark is for another place.
    if (this.#home === null || !COMMAND.test(command) || / --home[ =]| # /.test(command)) return command
    const home = shellWord(this.#home)
    return command.replace(COMMAND, (start) => `${start}--home ${home} `)
  }

  /**
   * This command line to be typed again with one option (`--name`) given anew; `value` is as a shell takes it. null
   * when it was given already and `isNew`, or when the words are not known.
   */
  retyped(option: string, value: string, isNew = false): string | null {
    const end = this.#typed.includes('--') ? this.#typed.indexOf('--') : this.#typed.length
    const isGiven = (word: string | undefined): boolean => word === option || word?.startsWith(`${option}=`) === true
    const before = this.#typed.slice(0, end)
    if (this.#typed.length === 0 || (isNew && before.some(isGiven))) return null
    const kept = before.filter((word, i) => !isGiven(word) && before[i - 1] !== option)
    return [
      'a2a-node',
      ...withoutCode(kept).map(shellWord),
      `${option} ${value}`,
      ...this.#typed.slice(end).map(shellWord)
    ].join(' ')
  }

  /** This command line as it was typed; null when the words are not known. */
  get typed(): string | null {
    return this.#typed.length === 0 ? null : ['a2a-node', ...this.#typed.map(shellWord)].join(' ')
  }

  /** The next steps of an error, for the given home. Where only an option is wrong, the step is this command line. */
  nextOf(error: Pick<ErrorBody, 'code' | 'next'>): readonly string[] {
    const justified = error.code === 'ESCALATION_REQUIRED' ? this.retyped('--justification', "'<why>'", true) : null
    if (justified !== null) return [justified]
    return [...new Set(error.next.map((one) => this.#optionOf(one) ?? this.hint(one)))]
  }

  /** A step that is but an option and its value is one for this command line. */
  #optionOf(step: string): string | null {
    const [, option, value] = /^(--[a-z-]+) (.*)$/.exec(step) ?? []
    return option === undefined || value === undefined ? null : this.retyped(option, value)
  }

  /** A value with an error whose next steps name the given home. */
  hinted<T extends { readonly error: ErrorBody | null }>(value: T): T {
    return value.error === null ? value : { ...value, error: { ...value.error, next: this.nextOf(value.error) } }
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

/** The words without an invite code, which is a secret: `start` then asks for it. */
function withoutCode(words: readonly string[]): string[] {
  return words.map((word, i) => (words[i - 1] === '--join' ? '-' : word.startsWith('--join=') ? '--join=-' : word))
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

/** The faults of a file with their lines; a single fault is in the message. */
function faultsOf(data: unknown): string[] {
  const { file, faults, moreFaults } = (data ?? {}) as { file?: unknown; faults?: unknown; moreFaults?: unknown }
  if (!Array.isArray(faults) || faults.length < 2) return []
  const rows = (
    faults as readonly {
      file?: unknown
      where?: unknown
      place?: unknown
      line?: unknown
      key?: unknown
      reason?: unknown
    }[]
  ).flatMap((one) => {
    const exact = one.where ?? one.place
    const place = typeof exact === 'string' ? exact : (one.file ?? file)
    if (typeof place !== 'string' || typeof one.reason !== 'string') return []
    const line = typeof one.line === 'number' && exact === undefined ? `:${one.line}` : ''
    return [`${place}${line}: ${typeof one.key === 'string' ? `${one.key}: ` : ''}${one.reason}`]
  })
  return typeof moreFaults === 'number' && moreFaults > 0 ? [...rows, `and ${moreFaults} more`] : rows
}

function candidatesOf(data: unknown): string[] {
  const candidates = (data as { candidates?: unknown } | null | undefined)?.candidates
  return Array.isArray(candidates)
    ? candidates.slice(0, 20).map((one) => (typeof one === 'string' ? one : jsonLine(one)))
    : []
}

function painted(style: Style | null, text: string): string {
  return style === null || text === '' ? text : `\u001b[${CODES[style]}m${text}\u001b[0m`
}

function wantsColor(
  sink: Sink,
  { color, env }: { color: ColorMode; env: Readonly<Record<string, string | undefined>> }
): boolean {
  if (color !== 'auto') return color === 'always'
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false
  return sink.isTTY === true
}
