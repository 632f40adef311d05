import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Milliseconds that removals wait for a commit to share. */
const TIDY_MS = 100
/** Milliseconds until refused removals are tried again, unless an earlier commit includes them. */
const TIDY_AGAIN_MS = 5000
/** Removals that may wait for a commit; at this count they are committed at once. */
const MAX_TIDY = 512

/** Dependencies of the tidy ledger. */
export interface TidyLedgerDeps {
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'commit'>
  readonly telemetry: Telemetry
}

/** Commits changes in order, and includes pending removals that no message depends on. */
export class TidyLedger {
  readonly #deps: TidyLedgerDeps
  #waiting: LedgerChange[] = []
  #timer: Timer | null = null
  #isStopped = false

  constructor(deps: TidyLedgerDeps) {
    this.#deps = deps
  }

  /** Commits changes after the pending removals. @throws NodeError the ledger's error; then no change was made. */
  commit(changes: readonly LedgerChange[]): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    this.#timer = null
    const removals = this.#waiting
    const all = removals.length === 0 ? changes : removals.concat(changes)
    if (removals.length > 0) this.#waiting = []
    // Also an empty commit: lanes rely on commits to resolve in order.
    return this.#deps.ledger.commit(all).catch((error: unknown) => {
      // They wait for the next commit; later changes override them.
      this.#waiting = removals.concat(this.#waiting)
      throw error
    })
  }

  /** Makes changes later, or with the next commit. A crash before that does no harm. */
  tidy(changes: readonly LedgerChange[]): void {
    const before = this.#waiting.length
    for (const change of changes) this.#waiting.push(change)
    // Refused removals may exceed the limit, and wait for the timer.
    if (before < MAX_TIDY && this.#waiting.length >= MAX_TIDY && !this.#isStopped) this.#tidyNow()
    else this.#tidyIn(TIDY_MS)
  }

  /** Ends its timer, and commits the pending removals. Never rejects: the next start removes the rest. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
    if (this.#waiting.length > 0) await this.commit([]).catch((error: unknown) => this.#untidied(error))
  }

  #tidyIn(ms: number): void {
    if (!this.#isStopped) this.#timer ??= this.#deps.clock.after(ms, () => this.#tidyNow())
  }

  #tidyNow(): void {
    this.commit([]).catch((error: unknown) => {
      this.#untidied(error)
      this.#tidyIn(TIDY_AGAIN_MS)
    })
  }

  #untidied(error: unknown): void {
    this.#deps.telemetry.log('warn', 'the ledger could not be tidied', { reason: messageOf(error) })
  }
}
