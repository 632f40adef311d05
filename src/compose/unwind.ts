import { timely } from '../adapters/mesh/network/timely.js'
import type { Clock } from '../kit/clock.js'

/** Interval of the timer that holds the process; any value works. */
const HOLD_MS = 60_000

/** Undoes the steps of a start in reverse order; also stops a node. */
export class Unwind {
  readonly #steps: { readonly name: string; readonly run: () => Promise<unknown> }[] = []
  #step: string | null = null
  readonly #onError: (name: string, error: unknown) => void

  /** `onError` is called for each failed step. */
  constructor(onError: (name: string, error: unknown) => void) {
    this.#onError = onError
  }

  /** Adds a step. `name`: the part that it closes. */
  add(name: string, run: () => Promise<unknown>): void {
    this.#steps.push({ name, run })
  }

  /** Runs all steps; a failed step does not stop the others. */
  async run(): Promise<void> {
    for (const { name, run } of this.#steps.splice(0).reverse()) {
      this.#step = name
      await run().catch((error: unknown) => this.#onError(name, error))
    }
  }

  /**
   * Like {@link run}, with a time limit: resolves with the step that exceeded it, else null. Holds the process
   * meanwhile: the timers of the clock do not, and an idle process would exit half closed with code 0.
   */
  async runWithin(limitMs: number, clock: Clock): Promise<string | null> {
    const hold = setInterval(() => {}, HOLD_MS)
    const isDone = await timely(this.run(), clock, limitMs)
    clearInterval(hold)
    return isDone ? null : this.#step
  }
}
