import { backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { SignedView } from './signed-view.js'

/** Milliseconds between two checks whether the log stands still. */
const LOOK_MS = 3000
/** The longest time between two looks while nothing helps, in milliseconds. */
const MAX_LOOK_MS = 60_000

/** Dependencies of {@link CatchUp}. */
export interface CatchUpDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly view: Pick<SignedView, 'lengths' | 'isAstray'>
  /** Takes the signed view of the owner, without its entries. */
  repair(): Promise<unknown>
}

/**
 * Advances a log that stays behind its owner's signature, or differs from it. A forked core of a writer is not passed
 * on, so a node without it cannot order the entries after it. A node with another branch of it has another view than
 * the owner. The signed view can be taken as it is.
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
    const { own } = this.#deps.view.lengths()
    return this.#deps.clock.after(
      backoffMs({ baseMs: LOOK_MS, maxMs: MAX_LOOK_MS }, vain),
      () => void this.#look(own, vain)
    )
  }

  async #look(before: number, vain: number): Promise<void> {
    const { own, signed } = this.#deps.view.lengths()
    const isStill = own === before && (own < signed || (await this.#deps.view.isAstray()))
    if (isStill) await this.#jump()
    if (!this.#isClosed) this.#timer = this.#after(isStill ? vain + 1 : 0)
  }

  /** Entries here that the owner has not signed yet are put in order again on top of the signed view. */
  async #jump(): Promise<void> {
    const { telemetry, repair } = this.#deps
    telemetry.log('warn', 'the mesh log stands still or went astray: the view that the owner signed is taken')
    await repair().catch((error: unknown) =>
      telemetry.log('warn', 'the signed view is not here yet', { reason: messageOf(error) })
    )
  }
}
