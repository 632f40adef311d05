import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { Reply } from '../../ports/node-api.js'
import type { MessageEvent } from '../../ports/policy-api.js'
import { WAITING_TEXT } from '../words.js'
import { jsonLine, type Output, plainText } from './output.js'
import type { Screen } from './screen.js'

/** Lines of text that the drawn part of a terminal shows, the newest. */
const TEXT_LINES = 8
/** Characters of text that are kept, for it and for a line without an end. */
const TEXT_MAX = 16 * 1024
const REDRAW_MS = 1000
const NAME_MAX = 80
const REPORT_MAX = 200

type ProgressEvent = Extract<MessageEvent<Reply>, { type: 'waiting' | 'progress' }>

/**
 * How much of a message under way is shown on stderr: `quiet` nothing, `needed` only that a person must approve it,
 * `all` also its progress and text.
 */
export type ProgressLevel = 'quiet' | 'needed' | 'all'

/**
 * Shows a message under way on stderr: drawn in place on a terminal, else line by line, as NDJSON with `--json`. Text
 * of a language model is shown once its line is complete or has 16 Ki characters, or in place.
 */
export class MessageProgress {
  readonly #output: Output
  readonly #level: ProgressLevel
  readonly #screen: Screen | null
  readonly #since = performance.now()
  readonly #timer: NodeJS.Timeout | null
  #state = 'working'
  #report = ''
  #agent = ''
  #text = ''
  #isDrawn = false

  constructor(output: Output, level: ProgressLevel) {
    this.#output = output
    this.#level = level
    this.#screen = level === 'all' && !output.json ? output.noteScreen() : null
    this.#timer = this.#screen === null ? null : setInterval(() => this.#redraw(), REDRAW_MS)
  }

  /** Takes one event. */
  take(event: ProgressEvent): void {
    if (this.#level === 'quiet') return
    const needsPerson = event.type === 'waiting' && event.waitingFor === 'approval'
    if (this.#level === 'needed' && !needsPerson) return
    if (this.#output.json && this.#level === 'all') return this.#output.note(jsonLine(event))
    this.#agent = event.agent
    if (needsPerson) {
      this.#screen?.clear()
      this.#output.note(`waiting for approval of ${placeText(event.agent)}`)
    }
    if (event.type === 'waiting') this.#state = event.waitingFor === null ? 'working' : WAITING_TEXT[event.waitingFor]
    else if (event.text === undefined) this.#report = reportText(event)
    if (event.type === 'progress' && event.text !== undefined) this.#text += event.text
    if (this.#screen !== null) this.#draw()
    else if (!needsPerson) this.#line(event)
  }

  /** Removes what is drawn, and prints the rest of the text. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#screen?.clear()
    if (this.#screen === null && this.#text !== '') this.#output.note(plainText(this.#text))
    this.#text = ''
  }

  #line(event: ProgressEvent): void {
    const agent = shown(event.agent, NAME_MAX)
    if (event.type === 'waiting') return this.#output.note(`${agent}  ${this.#state}`)
    if (event.text === undefined) return this.#output.note(`${agent}  ${this.#report}`)
    const end = this.#text.lastIndexOf('\n')
    if (end >= 0) this.#output.note(plainText(this.#text.slice(0, end)))
    this.#text = this.#text.slice(end + 1)
    if (this.#text.length < TEXT_MAX) return
    this.#output.note(plainText(this.#text))
    this.#text = ''
  }

  #redraw(): void {
    if (this.#isDrawn) this.#draw()
  }

  #draw(): void {
    const screen = this.#screen
    if (screen === null) return
    this.#isDrawn = true
    this.#text = this.#text.slice(-TEXT_MAX)
    const time = formatDuration(Math.round((performance.now() - this.#since) / 1000) * 1000)
    const head = [shown(this.#agent, NAME_MAX), this.#state, time, ...(this.#report === '' ? [] : [this.#report])]
    const lines = plainText(this.#text)
      .split('\n')
      .flatMap((line) => pieces(line, screen.columns))
    screen.draw([head.join('  '), ...(this.#text === '' ? [] : lines.slice(-TEXT_LINES))])
  }
}

/** `text on laptop`. */
function placeText(agent: string): string {
  const at = agent.lastIndexOf('@')
  return shown(at < 0 ? agent : `${agent.slice(0, at)} on ${agent.slice(at + 1)}`)
}

/** `3 of 10  reading`. */
function reportText({ progress, total, message }: Extract<ProgressEvent, { type: 'progress' }>): string {
  const count = progress === null ? [] : [total === null ? String(progress) : `${progress} of ${total}`]
  return [...count, ...(message === null ? [] : [shown(message, REPORT_MAX)])].join('  ')
}

function pieces(line: string, columns: number): string[] {
  const width = Math.max(1, columns)
  const count = Math.max(1, Math.ceil(line.length / width))
  return Array.from({ length: count }, (_, at) => line.slice(at * width, (at + 1) * width))
}
