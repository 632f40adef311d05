import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import type { MembershipView } from '../../domain/membership/types.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { PeerCards } from '../cards/remote-cards.js'

/** What following the members needs. */
export interface MembersParts {
  readonly log: MemberLog
  readonly membership: Membership
  readonly peerCards: PeerCards
}

/** What the node is told of its mesh. */
export interface MembersHandlers {
  /** This node has another certificate. */
  onCertificate(): void
  /** The log's view has changed. */
  onView(): void
  /** A member was put out. */
  onRevoked(peer: NodeId): void
}

/** Follows the log: takes its cards, and tells of revocations and of this node's own certificate. */
export class Members {
  readonly #parts: MembersParts
  readonly #revoked = new Set<NodeId>()
  #serial = -1
  #stop: Unsubscribe = () => {}

  constructor(parts: MembersParts) {
    this.#parts = parts
  }

  /** Takes what the log says now and begins to follow it. */
  start(handlers: MembersHandlers): void {
    const { log, membership, peerCards } = this.#parts
    this.#serial = membership.certificate().body.serial
    for (const nodeId of this.#newlyRevoked(log.view())) this.#revoked.add(nodeId)
    peerCards.fromView(log.view())
    this.#stop = log.onChange((view) => {
      peerCards.fromView(view)
      for (const nodeId of this.#newlyRevoked(view)) {
        this.#revoked.add(nodeId)
        handlers.onRevoked(nodeId)
      }
      const { serial } = membership.certificate().body
      if (serial !== this.#serial) handlers.onCertificate()
      this.#serial = serial
      handlers.onView()
    })
  }

  /** Follows it no longer. */
  stop(): void {
    this.#stop()
  }

  /** Who was put out, as far as this node knows; maybe while it was away, or at its last moment. */
  putOut(): readonly NodeId[] {
    return [...this.#revoked]
  }

  #newlyRevoked(view: MembershipView): NodeId[] {
    return [...view.members].filter(([id, { revoked }]) => revoked !== null && !this.#revoked.has(id)).map(([id]) => id)
  }
}
