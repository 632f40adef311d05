import type { NodeId } from '../kit/ids.js'
import { decodeControl } from '../domain/channel/control.js'
import type { ControlMessage, ControlName } from '../domain/channel/control.js'
import { decodeWhole } from '../domain/channel/frames.js'
import type { ChannelMessage, RelayableMessage } from '../domain/channel/frames.js'
import type { RelayedFrame } from '../domain/channel/relayed.js'
import type { Links } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Approvals } from './policy/approvals.js'
import type { CardGossip } from './cards/card-gossip.js'
import type { Channels } from './sdk/channels.js'
import type { Conversations } from './messaging/exchange-table.js'
import type { DocumentSessions } from './documents/sessions.js'
import type { Directory } from './cards/directory.js'
import type { NodeEvents } from './observe/events.js'
import type { Forwarded } from './relay/origin-signature.js'
import type { Inbox } from './messaging/inbound.js'
import type { Lanes } from './reliable/lanes.js'
import type { Lookups } from './cards/agent-lookup.js'
import type { LinkCalls } from './gateway/mesh/calls.js'
import type { OwnCards } from './cards/local-cards.js'
import type { PeerCards } from './cards/remote-cards.js'
import type { PeersHandlers } from './peers/peer-table.js'
import type { Passing } from './relay/forwarder.js'
import type { Presence } from './peers/presence.js'
import type { Requests } from './requests/caller/requests.js'
import type { Routes } from './relay/route-discovery.js'
import type { SwarmDocuments } from './documents/swarm-documents.js'
import type { Swarms } from './swarms/swarm-table.js'
import type { NextHop } from './relay/next-hop.js'
import type { Work } from './requests/callee/executor.js'

/** Who is told of what peers do and say. */
export interface PeerMessagesParts {
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly directory: Directory
  readonly ownCards: OwnCards
  readonly peerCards: PeerCards
  readonly cardGossip: CardGossip
  readonly lookups: Lookups
  readonly memberCalls: LinkCalls
  readonly inbox: Inbox
  readonly lanes: Lanes
  readonly requests: Requests
  readonly work: Work
  readonly swarms: Swarms
  readonly approvals: Approvals
  readonly channels: Channels
  readonly conversations: Conversations
  readonly presence: Presence
  readonly self: NodeId
  readonly routes: Routes
  readonly nextHop: NextHop
  readonly passing: Passing
  readonly forwarded: Forwarded
  readonly links: Pick<Links, 'strike'>
  readonly documentSessions: DocumentSessions
  readonly swarmDocuments: SwarmDocuments
}

/** Control messages that are relayed: those of lanes and of requests, between the two nodes that they concern. */
const RELAYED_CONTROLS: ReadonlySet<ControlName> = new Set(['greet', 'ack', 'heartbeat', 'approval', 'cancel'])

/** Passes what comes from peers to those whom it concerns. */
export class PeerMessages implements PeersHandlers {
  readonly #parts: PeerMessagesParts
  #isStopped = false

  constructor(parts: PeerMessagesParts) {
    this.#parts = parts
    const { lanes, requests, nextHop } = parts
    nextHop.onRefusedFrame((refused) => lanes.onRefused(refused))
    nextHop.onFound((peer) => {
      if (this.#isStopped) return
      lanes.onPath(peer)
      requests.onReachable(peer)
    })
  }

  /** Nothing is passed on any more, and calls are over. */
  stop(): void {
    this.#isStopped = true
    this.#parts.memberCalls.stop()
  }

  onOnline(peer: NodeId): void {
    if (this.#isStopped) return
    const { approvals, cardGossip, ownCards, requests, routes, work } = this.#parts
    this.#note(peer, 'online')
    routes.onOnline(peer)
    this.#parts.lanes.onPath(peer)
    cardGossip.tellAll(peer)
    ownCards.publish()
    requests.onReachable(peer)
    work.onOnline(peer)
    approvals.onOnline(peer)
    this.#parts.channels.onOnline(peer)
  }

  onRelinked(peer: NodeId): void {
    if (this.#isStopped) return
    this.#parts.cardGossip.tellAll(peer)
    this.#parts.ownCards.publish()
    // What went over the other link may be lost.
    this.#parts.lanes.onPath(peer)
    this.#parts.memberCalls.onLinks(peer)
  }

  onLinkLost(peer: NodeId): void {
    if (!this.#isStopped) this.#parts.memberCalls.onLinks(peer)
  }

  onOffline(peer: NodeId, isRest: boolean): void {
    if (this.#isStopped) return
    this.#parts.presence.onOffline(peer, isRest)
    this.#parts.memberCalls.onLinks(peer)
    this.#parts.routes.onOffline(peer)
    this.#parts.lanes.onOffline(peer)
    this.#note(peer, isRest ? 'online without a link' : 'offline')
    this.#parts.peerCards.onOffline(peer)
    this.#parts.swarms.onOffline(peer)
    this.#parts.requests.onOffline(peer)
    this.#parts.work.onOffline(peer)
    this.#parts.approvals.onOffline(peer)
    this.#parts.channels.onOffline(peer)
  }

  isInUse(peer: NodeId): boolean {
    const { channels, conversations, lanes, memberCalls, requests, swarms } = this.#parts
    const isAsked = lanes.load(peer).count > 0 || conversations.isOpenWith(peer) || requests.has(peer)
    return isAsked || memberCalls.has(peer) || channels.has(peer) || swarms.participants.has(peer)
  }

  onGivenUp(peer: NodeId, lost: number): void {
    if (this.#isStopped || lost === 0) return
    const { events, directory, telemetry } = this.#parts
    telemetry.count('errors', 'delivery', lost)
    events.add('delivery-failed', 'a peer did not come back in time for the messages that waited for it', {
      code: 'DELIVERY_FAILED',
      peer: directory.ref(peer).name,
      messages: lost
    })
  }

  onMessage(peer: NodeId, message: ChannelMessage): string | null {
    if (this.#isStopped) return null
    if (message.kind === 'envelope') this.#parts.inbox.receive(peer, message.bytes)
    if (message.kind === 'reliable') this.#parts.lanes.onMessage(peer, message.frame)
    if (message.kind === 'relayed') this.#onRelayed(peer, message.frame)
    if (message.kind === 'call') return this.#parts.memberCalls.onPart(peer, message.bytes)
    if (message.kind !== 'control') return null
    const control = decodeControl(message.name, message.body)
    if (!control.ok) return control.reason
    if (control.name === 'coordination' || control.name === 'swarm') this.#parts.swarms.participants.onWord(peer, control)
    else this.#onControl(peer, control)
    return null
  }

  /** A frame of another node, or for one. What its origin put into it is taken as over a link to it, and held against it alone. */
  #onRelayed(neighbour: NodeId, frame: RelayedFrame): void {
    const { forwarded, passing, routes, self, links } = this.#parts
    const accepted = forwarded.accept(neighbour, frame)
    if (!accepted.ok) return passing.rejected(neighbour, frame, accepted)
    const { origin, target, hops, content } = frame
    routes.onAnswer(origin, { via: neighbour, hops: hops.length })
    if (target !== self) return passing.pass(frame)
    const message = decodeWhole(content)
    const fault = typeof message === 'string' ? message : this.#onContent(origin, message, hops)
    if (fault !== null) links.strike(origin, 'forged', fault)
  }

  #onContent(origin: NodeId, message: RelayableMessage, hops: readonly NodeId[]): string | null {
    if (message.kind === 'envelope') this.#parts.inbox.receive(origin, message.bytes, hops)
    if (message.kind === 'reliable') this.#parts.lanes.onMessage(origin, message.frame, hops)
    if (message.kind !== 'control') return null
    if (!RELAYED_CONTROLS.has(message.name)) return 'a control message that is not relayed'
    const control = decodeControl(message.name, message.body)
    if (!control.ok) return control.reason
    if (control.name !== 'coordination' && control.name !== 'swarm') this.#onControl(origin, control)
    return null
  }

  #onControl(peer: NodeId, control: Exclude<ControlMessage, { name: 'coordination' | 'swarm' }>): void {
    const { approvals, lanes, peerCards, lookups, passing, presence, requests, routes, self, swarms, nextHop, work } = this.#parts
    switch (control.name) {
      case 'cards':
        return peerCards.fromPeer(peer, control.body.cards, control.body.all)
      case 'cards-removed':
        return peerCards.removedByPeer(peer, control.body.agents)
      case 'heartbeat':
        requests.onHeartbeat(peer, control.body.requests, control.body.waiting)
        return swarms.onHeartbeat(peer, control.body.requests)
      case 'approval':
        requests.onApproval(peer, control.body.requests)
        return swarms.onApproval(peer, control.body.requests)
      case 'cancel':
        approvals.onCancel(peer, control.body.requestId)
        return work.onCancel(peer, control.body.requestId)
      case 'lookup':
        return lookups.onLookup(peer, control.body)
      case 'found':
        return lookups.onFound(peer, control.body)
      case 'way':
        return routes.onWay(peer, control.body)
      case 'way-found':
        return routes.onWayFound(peer, control.body)
      case 'linked':
        return presence.onLinked(peer, control.body)
      case 'linked-to':
        return presence.onLinkedTo(peer, control.body)
      case 'presence':
        return this.#parts.documentSessions.onPresence(peer, control.body)
      case 'swarm-document':
        return this.#parts.swarmDocuments.onAsked(peer, control.body)
      case 'greet':
        return lanes.onGreet(peer, control.body)
      case 'ack':
        return lanes.onAck(peer, control.body)
      case 'undelivered':
        return control.body.origin === self ? nextHop.onUndelivered(peer, control.body) : passing.relay(peer, control.body)
    }
  }

  #note(peer: NodeId, state: 'online' | 'online without a link' | 'offline'): void {
    const { events, directory, telemetry } = this.#parts
    const { name } = directory.ref(peer)
    events.add('peer', `a peer is ${state}`, { peer: name, id: peer })
    telemetry.log('info', `peer ${state}`, { peer: name })
  }
}
