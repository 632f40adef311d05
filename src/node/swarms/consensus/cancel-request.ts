import { wait } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { Abort } from '../../../kit/abort.js'
import type { CommitQueueDeps } from '../../ledger/commit-queue.js'
import type { Cancellation, SwarmEnd, SwarmStore, SwarmHead } from '../store.js'
import type { SwarmEventLog } from '../event-log.js'

/** Milliseconds until a cancel call resolves at the latest, when another node coordinates the swarm. */
const PATIENCE_MS = 5000

/** Dependencies of a cancel request. */
export interface CancelRequestDeps extends Pick<CommitQueueDeps, 'clock' | 'commit'> {
  readonly swarmStore: SwarmStore
}

/** The swarm to cancel. */
export interface CanceledSwarm {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  /** The request that was made before this node started; null: none. */
  readonly request: Cancellation | null
}

/**
 * A request at this node to cancel a swarm with several participants. Only the coordinator can cancel it, so the
 * request stays durable until there is one, at most until the deadline: the swarm ends then anyway.
 */
export class CancelRequest {
  readonly #deps: CancelRequestDeps
  readonly #swarm: CanceledSwarm
  readonly #stopping = new Abort()
  #request: Cancellation | null

  constructor(deps: CancelRequestDeps, swarm: CanceledSwarm) {
    this.#deps = deps
    this.#swarm = swarm
    this.#request = swarm.request
  }

  /** Is the swarm still to be canceled? */
  get isOpen(): boolean {
    return this.open !== null
  }

  /** The request, while the swarm is still to be canceled; null: none. */
  get open(): Cancellation | null {
    return this.#isTimely ? this.#request : null
  }

  /** An end of the swarm, with the caller of this node that canceled it: another coordinator does not know it. */
  completed(end: SwarmEnd): SwarmEnd {
    const { canceledBy } = end
    const isOwn = canceledBy !== undefined && canceledBy.node === this.#request?.node
    return isOwn ? { ...end, canceledBy: { ...canceledBy, caller: this.#request?.caller ?? null } } : end
  }

  get #isTimely(): boolean {
    return this.#deps.clock.now() < this.#swarm.head.deadline
  }

  /** Records the request. @throws NodeError CONFLICT after the swarm's deadline, or the ledger's error. */
  async make(by: Cancellation): Promise<void> {
    const { head } = this.#swarm
    if (!this.#isTimely)
      throw new NodeError(
        'CONFLICT',
        'the time of the swarm is over: it ends as soon as a majority of its participants can reach each other'
      )
    if (this.#request !== null) return
    await this.#deps.commit([this.#deps.swarmStore.cancelRequested(head.id, by)])
    this.#request = by
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

  /** Ends all waits. */
  stop(): void {
    this.#stopping.abort()
  }
}
