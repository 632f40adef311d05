import { backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'

/** Milliseconds between two checks whether the log stands still. */
const LOOK_MS = 3000
/** The longest time between two looks while nothing helps, in milliseconds. */
const MAX_LOOK_MS = 60_000

/** Lengths of a log. */
export interface LogLengths {
  /** Entries in the view here. */
  readonly own: number
  /** Entries that the owner has signed, as far as known here. */
  readonly signed: number
}

/** Dependencies of {@link CatchUp}. */
export interface CatchUpDeps {
  readonly clock: Clock
  lengths(): LogLengths
  /** Does the view here differ from the signed view of the owner, as far as that goes? */
  isAstray(): Promise<boolean>
  /** Takes the signed view of the owner, without its entries. Never rejects. */
  jump(): Promise<void>
}

/**
 * Advances a log that stays behind its owner's signature, or differs from it. A forked core of a writer is not passed on, so a node without
 * it cannot order the entries after it. A node with another branch of it has another view than the owner. The signed view can be taken as
 * it is.
 */
export class CatchUp {
  readonly #deps: CatchUpDeps
  #timer: Timer
  #isClosed = false

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
    this.#timer = this.#after(0)
  }

  /** Stops it. */
  close(): void {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
  }

  /** Looks again after `vain` looks in a row that did not help. */
  #after(vain: number): Timer {
    const { own } = this.#deps.lengths()
    return this.#deps.clock.after(backoffMs({ baseMs: LOOK_MS, maxMs: MAX_LOOK_MS }, vain), () => void this.#look(own, vain))
  }

  async #look(before: number, vain: number): Promise<void> {
    const { own, signed } = this.#deps.lengths()
    const isStill = own === before && (own < signed || (await this.#deps.isAstray()))
    if (isStill) await this.#deps.jump()
    if (!this.#isClosed) this.#timer = this.#after(isStill ? vain + 1 : 0)
  }
}
