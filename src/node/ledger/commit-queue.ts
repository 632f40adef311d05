import { wait } from '../../kit/clock.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'

/** First wait for a ledger that takes nothing, in milliseconds; doubled each time. */
const RETRY_MS = 1000
/** Longest such wait: a ledger that takes something again is noticed this soon. */
const MAX_RETRY_MS = 5000

/** What telling needs. */
export interface DurableTalesParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** A change of the ledger, and what is told once it is durable. */
export interface Tale {
  readonly changes: readonly LedgerChange[]
  /** Of a swarm with several participants: what they have to accept before, and its index among their records. */
  readonly record?: { readonly index: number; readonly content: Uint8Array }
  tell(): void
}

/** Tells what happened once it may be relied on, in order. */
export interface Tales {
  /** Begins at once to make it so, and tells behind what was added before. */
  add(tale: Tale): void
  /** What it says is known when all before was told. */
  addLast(make: () => Tale): void
  /** Resolves when all was told. Never rejects. */
  told(): Promise<void>
  /** Nothing is told, or tried again, any more. Resolves when nothing is written. */
  stop(): Promise<void>
}

/** Tells what happened once it is durable, in order. While the ledger takes nothing, nothing is told. */
export class DurableTales implements Tales {
  readonly #parts: DurableTalesParts
  readonly #stopping = new Abort()
  #told: Promise<void> = Promise.resolve()
  #pending = 0
  /** Waits in a row, none of which helped. */
  #waits = 0
  /** All that the ledger did not take waits together. */
  #waiting: Promise<void> | null = null

  constructor(parts: DurableTalesParts) {
    this.#parts = parts
  }

  /** Changes that are not durable yet. */
  get pending(): number {
    return this.#pending
  }

  /** Commits at once, and tells behind what was added before. */
  add({ changes, tell }: Tale): void {
    this.#pending++
    const durable = this.#commit(changes).finally(() => {
      this.#pending--
    })
    this.#told = this.#told.then(async () => this.#tell(await durable, tell))
  }

  /** What it says is known when all before was told; it is committed then. */
  addLast(make: () => Tale): void {
    this.#told = this.#told.then(async () => {
      if (this.#stopping.aborted) return
      const { changes, tell } = make()
      this.#tell(await this.#commit(changes), tell)
    })
  }

  /** Resolves when all was told. Never rejects. */
  told(): Promise<void> {
    return this.#told
  }

  /** Nothing is told, or tried again, any more. Resolves when nothing is written. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#told
  }

  #tell(isDurable: boolean, tell: () => void): void {
    if (isDurable && !this.#stopping.aborted) tell()
  }

  async #commit(changes: readonly LedgerChange[]): Promise<boolean> {
    const { telemetry, commit } = this.#parts
    while (!this.#stopping.aborted) {
      try {
        await commit(changes)
        this.#waits = 0
        return true
      } catch (error) {
        telemetry.count('errors', 'ledger')
        telemetry.log('error', 'an outcome could not be recorded', { reason: messageOf(error) })
        await (this.#waiting ??= this.#wait())
      }
    }
    return false
  }

  async #wait(): Promise<void> {
    await wait(this.#parts.clock, Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** this.#waits++), this.#stopping)
    this.#waiting = null
  }
}
