import { backoffMs } from '../../kit/backoff.js'
import { wait } from '../../kit/clock.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'

/** Waits for a ledger that takes nothing: one that takes something again is noticed within the longest. */
const RETRY = { baseMs: 1000, maxMs: 5000 }

/** What telling needs. */
export interface CommitQueueDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** A change of the ledger, and what is told once it is durable. */
export interface Notification {
  readonly changes: readonly LedgerChange[]
  /** Of a swarm with several participants: what they have to accept before, and its index among their records. */
  readonly record?: { readonly index: number; readonly content: Uint8Array }
  notify(): void
}

/** Tells what happened once it may be relied on, in order. */
export interface NotificationQueue {
  /** Begins at once to make it so, and tells behind what was added before. */
  add(notification: Notification): void
  /** What it says is known when all before was told. */
  addLast(make: () => Notification): void
  /** Resolves when all was told. Never rejects. */
  flushed(): Promise<void>
  /** Nothing is told, or tried again, any more. Resolves when nothing is written. */
  stop(): Promise<void>
}

/** Tells what happened once it is durable, in order. While the ledger takes nothing, nothing is told. */
export class CommitQueue implements NotificationQueue {
  readonly #deps: CommitQueueDeps
  readonly #stopping = new Abort()
  #flushed: Promise<void> = Promise.resolve()
  #pending = 0
  /** Waits in a row, none of which helped. */
  #waits = 0
  /** All that the ledger did not take waits together. */
  #waiting: Promise<void> | null = null

  constructor(deps: CommitQueueDeps) {
    this.#deps = deps
  }

  /** Changes that are not durable yet. */
  get pending(): number {
    return this.#pending
  }

  /** Commits at once, and tells behind what was added before. */
  add({ changes, notify }: Notification): void {
    this.#pending++
    const durable = this.#commit(changes).finally(() => {
      this.#pending--
    })
    this.#flushed = this.#flushed.then(async () => this.#notify(await durable, notify))
  }

  /** What it says is known when all before was told; it is committed then. */
  addLast(make: () => Notification): void {
    this.#flushed = this.#flushed.then(async () => {
      if (this.#stopping.aborted) return
      const { changes, notify } = make()
      this.#notify(await this.#commit(changes), notify)
    })
  }

  /** Resolves when all was told. Never rejects. */
  flushed(): Promise<void> {
    return this.#flushed
  }

  /** Nothing is told, or tried again, any more. Resolves when nothing is written. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#flushed
  }

  #notify(isDurable: boolean, notify: () => void): void {
    if (isDurable && !this.#stopping.aborted) notify()
  }

  async #commit(changes: readonly LedgerChange[]): Promise<boolean> {
    const { telemetry, commit } = this.#deps
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
    await wait(this.#deps.clock, backoffMs(RETRY, this.#waits++), this.#stopping)
    this.#waiting = null
  }
}
