import type { Clock, Timer } from '../../kit/clock.js'

/** Runs something soon after it is due, and not again before a while has passed. */
export class Debounce {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #run: () => void
  #timer: Timer | null = null
  #isDue = false
  #isClosed = false

  constructor(clock: Clock, everyMs: number, run: () => void) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#run = run
  }

  /** It is to run: in this turn, or when the while is over. */
  due(): void {
    if (this.#timer === null) this.run()
    else this.#isDue = true
  }

  /** Runs it now. */
  run(): void {
    if (this.#isClosed) return
    this.#isDue = false
    this.#clock.clear(this.#timer)
    this.#timer = this.#clock.after(this.#everyMs, () => {
      this.#timer = null
      if (this.#isDue) this.run()
    })
    this.#run()
  }

  /** It runs no more. */
  close(): void {
    this.#isClosed = true
    this.#clock.clear(this.#timer)
  }
}
