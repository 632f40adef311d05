import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../kit/clock.js'

/** Milliseconds for the answers to requests before the end of the input. */
const ANSWERS_MS = 5000

/** Dependencies of {@link InputEnd}. */
export interface InputEndDeps {
  readonly clock: Pick<Clock, 'after'>
  readonly client: { readonly input: Readable; readonly output: Writable }
  /** Has every request of the client its answer? */
  isAnswered(): boolean
}

/** The end of a client: that of its input, once its requests have their answers, or a client that is gone. */
export class InputEnd {
  /** Resolves at the end. */
  readonly reached: Promise<void>
  readonly #deps: InputEndDeps
  #resolve: () => void = () => {}
  #isWaiting = false

  constructor(deps: InputEndDeps) {
    this.#deps = deps
    this.reached = new Promise((resolve) => {
      this.#resolve = resolve
    })
    const { input, output } = deps.client
    input
      // A script closes its input behind its last request. The last line is read first.
      .once('end', () => setImmediate(() => this.#begin()))
      .once('close', () => {
        if (!input.readableEnded) this.#resolve()
      })
      .once('error', () => this.#resolve())
    // A client that is gone reads nothing any more: that is its end.
    output.once('error', () => this.#resolve())
  }

  /** An answer was written. */
  check(): void {
    if (this.#isWaiting && this.#deps.isAnswered()) this.#resolve()
  }

  #begin(): void {
    this.#isWaiting = true
    this.#deps.clock.after(ANSWERS_MS, this.#resolve)
    this.check()
  }
}
