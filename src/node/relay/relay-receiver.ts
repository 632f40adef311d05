import type { NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { decodeWhole } from '../../domain/channel/frames.js'
import type { RelayableMessage } from '../../domain/channel/frames.js'
import type { RelayedFrame } from '../../domain/channel/relayed.js'
import type { Links } from '../../ports/mesh.js'
import type { Forwarder } from './forwarder.js'
import type { NextHop } from './next-hop.js'
import type { OriginSignature } from './origin-signature.js'
import type { RouteDiscovery } from './route-discovery.js'

/** Dependencies of {@link RelayReceiver}. */
interface RelayReceiverDeps {
  readonly self: NodeId
  readonly routes: Pick<RouteDiscovery, 'onAnswer'>
  readonly nextHop: Pick<NextHop, 'onUndelivered'>
  readonly forwarder: Pick<Forwarder, 'rejected' | 'pass' | 'relay'>
  readonly originSignature: Pick<OriginSignature, 'accept'>
  readonly links: Pick<Links, 'strike'>
}

/**
 * Takes the content of a frame for this node. Returns the fault of a message that no honest origin sends; null for
 * none.
 */
export type ContentHandler = (origin: NodeId, message: RelayableMessage, hops: readonly NodeId[]) => string | null

/** Receives relayed frames, and reports of undelivered ones: for this node, or to be passed on. */
export class RelayReceiver {
  readonly #deps: RelayReceiverDeps

  constructor(deps: RelayReceiverDeps) {
    this.#deps = deps
  }

  /**
   * Takes a frame. It counts as sent by its origin over a direct link; faults of its content count against the origin
   * only.
   */
  onFrame(neighbour: NodeId, frame: RelayedFrame, onContent: ContentHandler): void {
    const { originSignature, forwarder, routes, self, links } = this.#deps
    const accepted = originSignature.accept(neighbour, frame)
    if (!accepted.ok) return forwarder.rejected(neighbour, frame, accepted)
    const { origin, target, hops, content } = frame
    routes.onAnswer(origin, { via: neighbour, hops: hops.length })
    if (target !== self) return forwarder.pass(frame)
    const message = decodeWhole(content)
    const fault = typeof message === 'string' ? message : onContent(origin, message, hops)
    if (fault !== null) links.strike(origin, 'forged', fault)
  }

  /** A neighbour reports that a frame did not arrive. */
  onUndelivered(peer: NodeId, body: ControlBody<'undelivered'>): void {
    const { self, nextHop, forwarder } = this.#deps
    if (body.origin === self) nextHop.onUndelivered(peer, body)
    else forwarder.relay(peer, body)
  }
}
