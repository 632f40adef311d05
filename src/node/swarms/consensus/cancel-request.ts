import { wait, type Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { Abort } from '../../../kit/abort.js'
import type { SwarmStore, SwarmHead } from '../store.js'
import type { SwarmEventLog } from '../event-log.js'

/** Who cancels a swarm that another coordinates hears of its end, or that it has been asked for, after so many milliseconds at the latest. */
const PATIENCE_MS = 5000

/** What a wish needs. */
export interface CancelRequestDeps {
  readonly clock: Clock
  readonly swarmStore: SwarmStore
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** Of which swarm it is. */
export interface CanceledSwarm {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  /** It was wished before this node was started. */
  readonly isWanted: boolean
}

/**
 * The wish of somebody at this node that a swarm with several participants be canceled. Only its coordinator can do it, so the
 * wish is durable and stands until there is one, at most until the deadline: all of it ends then anyway.
 */
export class CancelRequest {
  readonly #deps: CancelRequestDeps
  readonly #swarm: CanceledSwarm
  readonly #stopping = new Abort()
  #isWanted: boolean

  constructor(deps: CancelRequestDeps, swarm: CanceledSwarm) {
    this.#deps = deps
    this.#swarm = swarm
    this.#isWanted = swarm.isWanted
  }

  /** Is it still to be canceled? */
  get isOpen(): boolean {
    return this.#isWanted && this.#isTimely
  }

  get #isTimely(): boolean {
    return this.#deps.clock.now() < this.#swarm.head.deadline
  }

  /** Notes it, durably. @throws NodeError CONFLICT when the time of the swarm is over; what the ledger refuses. */
  async make(): Promise<void> {
    const { head } = this.#swarm
    if (!this.#isTimely) {
      throw new NodeError(
        'CONFLICT',
        'the time of the swarm is over: it ends as soon as a majority of its participants can reach each other'
      )
    }
    if (this.#isWanted) return
    await this.#deps.commit([this.#deps.swarmStore.cancelRequested(head.id)])
    this.#isWanted = true
  }

  /** Resolves when the swarm has ended, at the latest after {@link PATIENCE_MS}. */
  async heeded(): Promise<void> {
    const ended = new Abort()
    const stop = (): void => ended.abort()
    const { stop: unfollow } = this.#swarm.eventLog.follow((event) => {
      if (event.type === 'done') stop()
    })
    this.#stopping.addEventListener('abort', stop)
    if (this.#stopping.aborted) stop()
    await wait(this.#deps.clock, PATIENCE_MS, ended)
    this.#stopping.removeEventListener('abort', stop)
    unfollow()
  }

  /** Nobody waits any more. */
  stop(): void {
    this.#stopping.abort()
  }
}
