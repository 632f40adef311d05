import { RUN_BOUNDS } from '../../kit/prometheus.js'

/** Counts the ended runs of an agent and the time they took. */
export class RunMeter {
  readonly #within = RUN_BOUNDS.map(() => 0)
  #failures = 0
  #runs = 0
  #spentMs = 0

  /** Ended runs. */
  get runs(): number {
    return this.#runs
  }

  /** Time that they took together. */
  get spentMs(): number {
    return this.#spentMs
  }

  /** A run has ended; `isDone`: with a result. */
  add(durationMs: number, isDone: boolean): void {
    this.#runs++
    this.#spentMs += durationMs
    if (!isDone) this.#failures++
    for (let i = RUN_BOUNDS.length - 1; i >= 0 && durationMs <= (RUN_BOUNDS[i] ?? 0) * 1000; i--)
      this.#within[i] = (this.#within[i] ?? 0) + 1
  }

  /** The counts now. */
  snapshot(): { readonly runs: number; readonly failures: number; readonly spentMs: number; readonly within: readonly number[] } {
    return { runs: this.#runs, failures: this.#failures, spentMs: this.#spentMs, within: [...this.#within] }
  }
}
