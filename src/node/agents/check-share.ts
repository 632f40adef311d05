import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { BusyShare, type BusyShareDeps } from '../peers/busy-share.js'

/** Milliseconds that checks of a member's inputs take of this node's thread, a second, and at once after a pause. */
const SHARE = { perSecond: 200, burst: 1000 } as const

/** Pays for requests of this node while the gateway's tasks are not read: nobody knows yet for which member each is. No node has this id. */
const UNREAD: NodeId = 'unread'

/** Knows the member that a request under way is made for; null: none. */
export interface Payers {
  memberBehind(requestId: string): NodeId | null
}

/** What {@link CheckShare} needs. */
export interface CheckShareDeps extends Omit<BusyShareDeps, 'limit'> {
  readonly self: NodeId
}

/**
 * The time that checks of inputs take: a pattern may need 10 ms for a short text, and a quarter of a second for a long one, and the
 * node does nothing else meanwhile. A member over its share is refused while others are served, and for nothing else.
 */
export class CheckShare {
  readonly #deps: CheckShareDeps
  readonly #share: BusyShare
  /**
   * Knows the member for which this node makes a request: it asked over the A2A binding, and its share pays for the checks.
   * null: the gateway has not read its tasks yet, and all requests of this node have one share together.
   */
  payers: Payers | null = null

  constructor(deps: CheckShareDeps) {
    this.#deps = deps
    this.#share = new BusyShare({ ...deps, limit: SHARE })
  }

  /** The node whose share pays for a request of another one. */
  payerOf(requestId: string, peer: NodeId): NodeId {
    if (peer !== this.#deps.self) return peer
    return this.payers === null ? UNREAD : (this.payers.memberBehind(requestId) ?? peer)
  }

  /** Checks an input of a node; this one has no share. @throws NodeError OVERLOADED, before the check, and what it throws */
  within<T>(peer: NodeId, check: () => T): T {
    const { clock, self } = this.#deps
    if (peer === self) return check()
    if (!this.#share.isWithin(peer))
      throw new NodeError('OVERLOADED', 'checks of inputs of this node take more than their share of time while others are served')
    const from = clock.monotonic()
    try {
      return check()
    } finally {
      this.#share.charge(peer, clock.monotonic() - from)
    }
  }
}
