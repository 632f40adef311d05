import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { BusyShare, type BusyShareDeps } from '../peers/busy-share.js'

/** Milliseconds of this node's thread for checks of a member's inputs, per second, and at once after a pause. */
const SHARE = { perSecond: 200, burst: 1000 } as const

/**
 * Pays for requests of this node until the gateway has read its tasks: before, their members are unknown. No node has
 * this id.
 */
const UNREAD: NodeId = 'unread'

/** Finds the member behind a running request; null for none. */
export interface Payers {
  memberBehind(requestId: string): NodeId | null
}

/** Dependencies of {@link CheckShare}. */
export interface CheckShareDeps extends Omit<BusyShareDeps, 'limit'> {
  readonly self: NodeId
}

/**
 * The time for checks of inputs. A pattern may need 10 ms for a short text and 250 ms for a long one, and blocks the
 * node. A member over its share is refused only while others are served.
 */
export class CheckShare {
  readonly #deps: CheckShareDeps
  readonly #share: BusyShare
  /**
   * Finds the member for which this node makes a request over the A2A binding: its share pays for the checks. null: the
   * gateway has not read its tasks yet, and all requests of this node use one share.
   */
  payers: Payers | null = null

  constructor(deps: CheckShareDeps) {
    this.#deps = deps
    this.#share = new BusyShare({ ...deps, limit: SHARE })
  }

  /** The node whose share pays for a peer's request. */
  payerOf(requestId: string, peer: NodeId): NodeId {
    if (peer !== this.#deps.self) return peer
    return this.payers === null ? UNREAD : (this.payers.memberBehind(requestId) ?? peer)
  }

  /**
   * Checks an input of a node; this node has no share.
   * @throws NodeError OVERLOADED, before the check, and the errors of `check`
   */
  within<T>(peer: NodeId, check: () => T): T {
    const { clock, self } = this.#deps
    if (peer === self) return check()
    if (!this.#share.isWithin(peer))
      throw new NodeError(
        'OVERLOADED',
        'checks of inputs of this node take more than their share of time while others are served'
      )
    const from = clock.monotonic()
    try {
      return check()
    } finally {
      this.#share.charge(peer, clock.monotonic() - from)
    }
  }
}
