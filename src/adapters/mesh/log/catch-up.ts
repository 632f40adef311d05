import { backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'

/** How often it is looked whether the log stands still, in milliseconds. */
const LOOK_MS = 3000
/** The longest time between two looks while nothing helps, in milliseconds. */
const MAX_LOOK_MS = 60_000

/** How far a log is. */
export interface LogLengths {
  /** Entries of which the view is made here. */
  readonly own: number
  /** Entries that the owner has signed, as far as that is known here. */
  readonly signed: number
}

/** What {@link CatchUp} needs. */
export interface CatchUpDeps {
  readonly clock: Clock
  lengths(): LogLengths
  /** Is the view here another than the one that the owner signed, as far as that goes? */
  isAstray(): Promise<boolean>
  /** Takes the view that the owner signed, without the entries that it is made of. Never rejects. */
  jump(): Promise<void>
}

/**
 * Gets a log on that stands still behind what its owner signed, or tells something else. Nobody hands on a writer's core that is
 * forked, so who does not have it yet cannot put the entries after it in order; and who took another branch of it than the owner
 * has another view. The signed view can be taken as it is.
 */
export class CatchUp {
  readonly #deps: CatchUpDeps
  #timer: Timer
  #isClosed = false

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
    this.#timer = this.#after(0)
  }

  /** Does nothing more. */
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
