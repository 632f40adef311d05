import { shown } from '../../kit/text.js'
import { jsonLine, type Output } from '../terminal/output.js'
import type { ProgressLevel } from '../terminal/message-progress.js'
import type { Screen } from '../terminal/screen.js'
import { bytesText } from '../words.js'

const NAME_MAX = 60

/** Shows a transfer on stderr: in place on a terminal, else a line for each tenth, NDJSON with `--json`. */
export class TransferProgress {
  readonly #output: Output
  readonly #level: ProgressLevel
  readonly #screen: Screen | null
  readonly #file: { readonly name: string; readonly size: number }
  readonly #begin: { readonly bytes: number; readonly at: number }
  #tenth: number

  /** `bytes`: those that are there from an earlier run. */
  constructor(output: Output, level: ProgressLevel, file: { name: string; size: number; bytes: number }) {
    this.#output = output
    this.#level = level
    this.#file = file
    this.#screen = level === 'all' && !output.json ? output.noteScreen() : null
    this.#begin = { bytes: file.bytes, at: performance.now() }
    this.#tenth = tenthOf(file.bytes, file.size)
    if (file.bytes > 0 && level !== 'quiet' && !output.json)
      output.note(`continues after ${bytesText(file.bytes)} of ${bytesText(file.size)}`)
  }

  /** The number of bytes that are there. */
  show(bytes: number): void {
    if (this.#level !== 'all') return
    const { name, size } = this.#file
    if (this.#screen !== null) return this.#screen.draw([this.#line(bytes)])
    const tenth = tenthOf(bytes, size)
    if (tenth === this.#tenth) return
    this.#tenth = tenth
    this.#output.note(this.#output.json ? jsonLine({ type: 'transfer', name, bytes, size }) : this.#line(bytes))
  }

  /** Removes what is drawn. */
  close(): void {
    this.#screen?.clear()
  }

  #line(bytes: number): string {
    const { name, size } = this.#file
    const seconds = (performance.now() - this.#begin.at) / 1000
    const rate = seconds > 0 ? `  ${bytesText((bytes - this.#begin.bytes) / seconds)}/s` : ''
    const percent = size === 0 ? 100 : Math.floor((100 * bytes) / size)
    return `${shown(name, NAME_MAX)}  ${bytesText(bytes)} of ${bytesText(size)}  ${percent} %${rate}`
  }
}

function tenthOf(bytes: number, size: number): number {
  return size === 0 ? 10 : Math.floor((10 * bytes) / size)
}
