import { type Sink, terminalText } from './terminal.js'

const ESC = '\u001b'
const CLEAR_DOWN = `${ESC}[0J`

/** A part of a terminal that is drawn again and again in place. Elsewhere each drawing follows the one before. */
export class Screen {
  readonly #sink: Sink
  #drawn = 0

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** Displayed characters of a line; the last column stays free. */
  get columns(): number {
    return this.#sink.isTTY === true ? (this.#sink.columns || 80) - 1 : Number.POSITIVE_INFINITY
  }

  /** Replaces what was drawn last. Lines beyond the height of the terminal are left out. */
  draw(given: readonly string[]): void {
    const lines = given.map(terminalText)
    if (this.#sink.isTTY !== true) {
      this.#sink.write(`${lines.join('\n')}\n\n`)
      return
    }
    const height = Math.max(2, (this.#sink.rows || 24) - 1)
    const kept =
      lines.length > height ? [...lines.slice(0, height - 1), `… ${lines.length - height + 1} more lines`] : lines
    const up = this.#drawn === 0 ? '' : `\u001b[${this.#drawn}A`
    // Lines that would wrap are cut: what is drawn must be as high as it has lines.
    this.#sink.write(`${up}\r${CLEAR_DOWN}${kept.map((line) => cutVisible(line, this.columns)).join('\n')}\n`)
    this.#drawn = kept.length
  }

  /** Removes what was drawn last. */
  clear(): void {
    if (this.#sink.isTTY === true && this.#drawn > 0) this.#sink.write(`\u001b[${this.#drawn}A\r${CLEAR_DOWN}`)
    this.#drawn = 0
  }
}

/** Cuts a line at a number of visible characters; colour codes do not count. */
function cutVisible(line: string, max: number): string {
  let left = max
  let kept = ''
  for (const [i, part] of line.split(ESC).entries()) {
    const code = i === 0 ? '' : (/^\[\d+m/.exec(part)?.[0] ?? '')
    kept += (code === '' ? '' : ESC) + code + part.slice(code.length, code.length + Math.max(0, left))
    left -= part.length - code.length
  }
  return kept
}
