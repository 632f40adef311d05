import type { Clock, Timer } from '../../../kit/clock.js'

/** Pieces of text that come within it are one report. */
const GATHER_MS = 50
/** The pause between two reports doubles after each such number of reports: the reports of a run are bounded. */
const REPORTS_A_PACE = 1000

/** Reports a model's text while it comes: `{token, turn}`, in order, complete and not too often. */
export class TokenReports {
  readonly #clock: Clock
  readonly #report: (data: unknown) => void
  #text = ''
  #turn = 1
  #count = 0
  #timer: Timer | null = null

  constructor(clock: Clock, report: (data: unknown) => void) {
    this.#clock = clock
    this.#report = report
  }

  /** More text of that turn. */
  push(text: string, turn: number): void {
    if (turn !== this.#turn) this.flush()
    this.#turn = turn
    this.#text += text
    const pauseMs = GATHER_MS * 2 ** Math.floor(this.#count / REPORTS_A_PACE)
    this.#timer ??= this.#clock.after(pauseMs, () => this.flush())
  }

  /** Reports the remaining text now. */
  flush(): void {
    this.#clock.clear(this.#timer)
    this.#timer = null
    const token = this.#text
    if (token === '') return
    this.#text = ''
    this.#count++
    this.#report({ token, turn: this.#turn })
  }
}
