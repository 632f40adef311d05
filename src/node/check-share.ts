import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { BusyShare } from './busy-share.js'

/** Milliseconds that checks of a member's inputs take of this node's thread, a second, and at once after a pause. */
const SHARE = { perSecond: 200, burst: 1000 } as const
/** Requests of this node that are remembered with the member that they are made for. */
const MAX_PAYERS = 4096

/** What {@link CheckShare} needs. */
export interface CheckShareParts {
  readonly clock: Clock
  readonly self: NodeId
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

/**
 * The time that checks of inputs take: a pattern may need 10 ms for a short text, and a quarter of a second for a long one, and the
 * node does nothing else meanwhile. A member over its share is refused while others are served, and for nothing else.
 */
export class CheckShare {
  readonly #parts: CheckShareParts
  readonly #share: BusyShare
  /** Members by the requests that this node makes for them, oldest first. */
  readonly #payers = new Map<string, NodeId>()

  constructor(parts: CheckShareParts) {
    this.#parts = parts
    this.#share = new BusyShare({ ...parts, limit: SHARE })
  }

  /** A request of this node is made for a member, which asked over its A2A binding: its share pays for the checks. */
  payFor(requestId: string, member: NodeId): void {
    this.#payers.set(requestId, member)
    for (const oldest of this.#payers.keys()) {
      if (this.#payers.size <= MAX_PAYERS) break
      this.#payers.delete(oldest)
    }
  }

  /** The node whose share pays for a request of another one. */
  payerOf(requestId: string, peer: NodeId): NodeId {
    return peer === this.#parts.self ? (this.#payers.get(requestId) ?? peer) : peer
  }

  /** Checks an input of a node; this one has no share. @throws NodeError OVERLOADED, before the check, and what it throws */
  within<T>(peer: NodeId, check: () => T): T {
    const { clock, self } = this.#parts
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
