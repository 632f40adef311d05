import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import type { MembershipView } from '../../domain/membership/types.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { RemoteCards } from '../cards/remote-cards.js'

/** What following the members needs. */
export interface MemberSyncDeps {
  readonly log: MemberLog
  readonly membership: Membership
  readonly remoteCards: RemoteCards
}

/** What the node is told of its mesh. */
export interface MemberSyncHandlers {
  /** This node has another certificate. */
  onCertificate(): void
  /** The log's view has changed. */
  onView(): void
  /** A member was put out. */
  onRevoked(peer: NodeId): void
}

/** Follows the log: takes its cards, and tells of revocations and of this node's own certificate. */
export class MemberSync {
  readonly #deps: MemberSyncDeps
  readonly #revoked = new Set<NodeId>()
  #serial = -1
  #stop: Unsubscribe = () => {}

  constructor(deps: MemberSyncDeps) {
    this.#deps = deps
  }

  /** Takes what the log says now and begins to follow it. */
  start(handlers: MemberSyncHandlers): void {
    const { log, membership, remoteCards } = this.#deps
    this.#serial = membership.certificate().body.serial
    for (const nodeId of this.#newlyRevoked(log.view())) this.#revoked.add(nodeId)
    remoteCards.fromView(log.view())
    this.#stop = log.onChange((view) => {
      remoteCards.fromView(view)
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
