import { BoundedSet } from '../../../kit/bounded.js'
import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { NextHop } from '../../relay/next-hop.js'

/** Cancellations that wait for one peer. */
const MAX_WAITING = 1000

/** What telling others to stop needs. */
export interface CancelQueueDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'sendControl'>
  readonly self: NodeId
  /** Cancels work on this very node. */
  cancelHere(key: string): void
}

/**
 * Tells peers to stop what this node asked of them; those that are not reachable are told when they are. A word that is lost is said
 * again when the peer names the run as one that it has (see Requests.onHeartbeat).
 */
export class CancelQueue {
  readonly #deps: CancelQueueDeps
  readonly #waiting = new Map<NodeId, BoundedSet<string>>()

  constructor(deps: CancelQueueDeps) {
    this.#deps = deps
  }

  /** Stops a run, named as heartbeats name it. Never throws. */
  cancel(peer: NodeId, key: string): void {
    const { self, cancelHere } = this.#deps
    if (peer === self) cancelHere(key)
    else if (!this.#send(peer, key)) this.#keep(peer, key)
  }

  /** A peer is back: it may have gone on all the time. */
  onReachable(peer: NodeId): void {
    const keys = this.#waiting.get(peer) ?? []
    this.#waiting.delete(peer)
    for (const key of keys) this.cancel(peer, key)
  }

  /** A peer will not come back. */
  forget(peer: NodeId): void {
    this.#waiting.delete(peer)
  }

  #send(peer: NodeId, key: string): boolean {
    const { nextHop, telemetry } = this.#deps
    if (!nextHop.isReachable(peer)) return false
    try {
      nextHop.sendControl(peer, 'cancel', { requestId: key })
      return true
    } catch (error) {
      telemetry.log('debug', 'a cancellation could not be sent', { peer, reason: messageOf(error) })
      return false
    }
  }

  #keep(peer: NodeId, key: string): void {
    const keys = this.#waiting.get(peer) ?? new BoundedSet(MAX_WAITING)
    this.#waiting.set(peer, keys.add(key))
  }
}
