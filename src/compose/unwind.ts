import { timely } from '../adapters/mesh/network/timely.js'
import type { Clock } from '../kit/clock.js'

/** How often the timer fires that holds the process: any time will do. */
const HOLD_MS = 60_000

/** Undoes, last first, what a start has done so far; also the way a node stops. */
export class Unwind {
  readonly #steps: { readonly name: string; readonly run: () => Promise<unknown> }[] = []
  #step: string | null = null
  readonly #onError: (name: string, error: unknown) => void

  /** `onError`: told of each step that fails. */
  constructor(onError: (name: string, error: unknown) => void) {
    this.#onError = onError
  }

  /** A further step; `name` is what it closes. */
  add(name: string, run: () => Promise<unknown>): void {
    this.#steps.push({ name, run })
  }

  /** A step that fails does not stop the others. */
  async run(): Promise<void> {
    for (const { name, run } of this.#steps.splice(0).reverse()) {
      this.#step = name
      await run().catch((error: unknown) => this.#onError(name, error))
    }
  }

  /**
   * `run`, but at most so long: gives the step that took longer, or null. Holds the process meanwhile: the clock's timers do
   * not, and a process with nothing else to do would end half closed, with the exit code of success.
   */
  async runWithin(limitMs: number, clock: Clock): Promise<string | null> {
    const hold = setInterval(() => {}, HOLD_MS)
    const isDone = await timely(this.run(), clock, limitMs)
    clearInterval(hold)
    return isDone ? null : this.#step
  }
}
