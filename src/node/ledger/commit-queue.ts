import { backoffMs } from '../../kit/backoff.js'
import { wait } from '../../kit/clock.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'

/** Delays between attempts while the ledger refuses commits: at most 5 s pass until a recovered ledger is noticed. */
const RETRY = { baseMs: 1000, maxMs: 5000 }

/** Dependencies of the commit queue. */
export interface CommitQueueDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Commits changes to the ledger. @throws NodeError the ledger's error. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** Ledger changes, and the notification to send once they are durable. */
export interface Notification {
  readonly changes: readonly LedgerChange[]
  /**
   * In a swarm with several participants: the record that a majority must accept first, and its index among the
   * records.
   */
  readonly record?: { readonly index: number; readonly content: Uint8Array }
  notify(): void
}

/** Sends notifications in order, each once its changes are durable. */
export interface NotificationQueue {
  /** Starts the commit at once; notifies after all earlier notifications. */
  add(notification: Notification): void
  /** Makes the notification once all earlier ones were sent. */
  addLast(make: () => Notification): void
  /** Resolves when all notifications were sent. Never rejects. */
  flushed(): Promise<void>
  /** Stops notifications and retries. Resolves when no write is under way. */
  stop(): Promise<void>
}

/** Notifies in order, after the commit. While the ledger refuses commits, nothing is notified. */
export class CommitQueue implements NotificationQueue {
  readonly #deps: CommitQueueDeps
  readonly #stopping = new Abort()
  #flushed: Promise<void> = Promise.resolve()
  #pending = 0
  /** Waits in a row without a successful commit. */
  #waits = 0
  /** One wait, shared by all refused commits. */
  #waiting: Promise<void> | null = null

  constructor(deps: CommitQueueDeps) {
    this.#deps = deps
  }

  /** Changes that are not durable yet. */
  get pending(): number {
    return this.#pending
  }

  /** Commits at once; notifies after all earlier notifications. */
  add({ changes, notify }: Notification): void {
    this.#pending++
    const durable = this.#commit(changes).finally(() => {
      this.#pending--
    })
    this.#flushed = this.#flushed.then(async () => this.#notify(await durable, notify))
  }

  /** Makes and commits the notification once all earlier ones were sent. */
  addLast(make: () => Notification): void {
    this.#flushed = this.#flushed.then(async () => {
      if (this.#stopping.aborted) return
      const { changes, notify } = make()
      this.#notify(await this.#commit(changes), notify)
    })
  }

  /** Resolves when all notifications were sent. Never rejects. */
  flushed(): Promise<void> {
    return this.#flushed
  }

  /** Stops notifications and retries. Resolves when no write is under way. */
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
