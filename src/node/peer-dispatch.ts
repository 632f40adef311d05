import type { NodeId } from '../kit/ids.js'
import { decodeControl } from '../domain/channel/control.js'
import type { ControlBody, ControlMessage, ControlName } from '../domain/channel/control.js'
import { decodeWhole } from '../domain/channel/frames.js'
import type { ChannelMessage, RelayableMessage } from '../domain/channel/frames.js'
import type { RelayedFrame } from '../domain/channel/relayed.js'
import type { Links } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Approvals } from './policy/approvals.js'
import type { CardGossip } from './cards/card-gossip.js'
import type { Channels } from './sdk/channels.js'
import type { ExchangeTable } from './messaging/exchange-table.js'
import type { DocumentSessions } from './documents/sessions.js'
import type { Directory } from './cards/directory.js'
import type { NodeEvents } from './observe/events.js'
import type { OriginSignature } from './relay/origin-signature.js'
import type { Inbound } from './messaging/inbound.js'
import type { Lanes } from './reliable/lanes.js'
import type { AgentLookup } from './cards/agent-lookup.js'
import type { LinkCalls } from './gateway/mesh/calls.js'
import type { LocalCards } from './cards/local-cards.js'
import type { RemoteCards } from './cards/remote-cards.js'
import type { PeerHandlers } from './peers/peer-table.js'
import type { Forwarder } from './relay/forwarder.js'
import type { Presence } from './peers/presence.js'
import type { Requests } from './requests/caller/requests.js'
import type { RouteDiscovery } from './relay/route-discovery.js'
import type { SwarmDocuments } from './documents/swarm-documents.js'
import type { SwarmTable } from './swarms/swarm-table.js'
import type { NextHop } from './relay/next-hop.js'
import type { Executor } from './requests/callee/executor.js'

/** The receivers of peers' events and messages. */
export interface PeerDispatchDeps {
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly directory: Directory
  readonly localCards: LocalCards
  readonly remoteCards: RemoteCards
  readonly cardGossip: CardGossip
  readonly agentLookup: AgentLookup
  readonly memberCalls: LinkCalls
  readonly inbound: Inbound
  readonly lanes: Lanes
  readonly requests: Requests
  readonly executor: Executor
  readonly swarms: SwarmTable
  readonly approvals: Approvals
  readonly channels: Channels
  readonly exchanges: ExchangeTable
  readonly presence: Presence
  readonly self: NodeId
  readonly routes: RouteDiscovery
  readonly nextHop: NextHop
  readonly forwarder: Forwarder
  readonly originSignature: OriginSignature
  readonly links: Pick<Links, 'strike'>
  readonly documentSessions: DocumentSessions
  readonly swarmDocuments: SwarmDocuments
}

/** Relayed control messages: those of lanes and of requests, between the two nodes concerned. */
const RELAYED_CONTROLS: ReadonlySet<ControlName> = new Set(['greet', 'ack', 'heartbeat', 'approval', 'cancel'])

/** Passes the events and messages of peers to their receivers. */
export class PeerDispatch implements PeerHandlers {
  readonly #deps: PeerDispatchDeps
  #isStopped = false

  constructor(deps: PeerDispatchDeps) {
    this.#deps = deps
    const { lanes, requests, nextHop } = deps
    nextHop.onRefusedFrame((refused) => lanes.onRefused(refused))
    nextHop.onFound((peer) => {
      if (this.#isStopped) return
      lanes.onPath(peer)
      requests.onReachable(peer)
    })
  }

  /** Stops passing, and ends the calls. */
  stop(): void {
    this.#isStopped = true
    this.#deps.memberCalls.stop()
  }

  onOnline(peer: NodeId): void {
    if (this.#isStopped) return
    const { approvals, cardGossip, localCards, requests, routes, executor } = this.#deps
    this.#note(peer, 'online')
    routes.onOnline(peer)
    this.#deps.lanes.onPath(peer)
    cardGossip.tellAll(peer)
    localCards.publish()
    requests.onReachable(peer)
    executor.onOnline(peer)
    approvals.onOnline(peer)
    this.#deps.channels.onOnline(peer)
  }

  onRelinked(peer: NodeId): void {
    if (this.#isStopped) return
    this.#deps.cardGossip.tellAll(peer)
    this.#deps.localCards.publish()
    // Messages on the former link may be lost.
    this.#deps.lanes.onPath(peer)
    this.#deps.memberCalls.onLinks(peer)
  }

  onLinkLost(peer: NodeId): void {
    if (!this.#isStopped) this.#deps.memberCalls.onLinks(peer)
  }

  onOffline(peer: NodeId, isRest: boolean): void {
    if (this.#isStopped) return
    this.#deps.presence.onOffline(peer, isRest)
    this.#deps.memberCalls.onLinks(peer)
    this.#deps.routes.onOffline(peer)
    this.#deps.lanes.onOffline(peer)
    this.#note(peer, isRest ? 'online without a link' : 'offline')
    this.#deps.remoteCards.onOffline(peer)
    this.#deps.swarms.onOffline(peer)
    this.#deps.requests.onOffline(peer)
    this.#deps.executor.onOffline(peer)
    this.#deps.approvals.onOffline(peer)
    this.#deps.channels.onOffline(peer)
  }

  isInUse(peer: NodeId): boolean {
    const { channels, exchanges, lanes, memberCalls, requests, swarms } = this.#deps
    const isAsked = lanes.load(peer).count > 0 || exchanges.isOpenWith(peer) || requests.has(peer)
    return isAsked || memberCalls.has(peer) || channels.has(peer) || swarms.participants.has(peer)
  }

  onGivenUp(peer: NodeId, lost: number): void {
    if (this.#isStopped || lost === 0) return
    const { events, directory, telemetry } = this.#deps
    telemetry.count('errors', 'delivery', lost)
    events.add('delivery-failed', 'a peer did not come back in time for the messages that waited for it', {
      code: 'DELIVERY_FAILED',
      peer: directory.ref(peer).name,
      messages: lost
    })
  }

  onMessage(peer: NodeId, message: ChannelMessage): string | null {
    if (this.#isStopped) return null
    if (message.kind === 'envelope') this.#deps.inbound.receive(peer, message.bytes)
    if (message.kind === 'reliable') this.#deps.lanes.incoming.onMessage(peer, message.frame)
    if (message.kind === 'relayed') this.#onRelayed(peer, message.frame)
    if (message.kind === 'call') return this.#deps.memberCalls.onPart(peer, message.bytes)
    if (message.kind !== 'control') return null
    const control = decodeControl(message.name, message.body)
    if (!control.ok) return control.reason
    if (control.name === 'coordination' || control.name === 'swarm') this.#deps.swarms.participants.onWord(peer, control)
    else this.#onControl(peer, control)
    return null
  }

  /** A relayed frame for this node or another. It counts as sent by its origin over a direct link; faults count against the origin only. */
  #onRelayed(neighbour: NodeId, frame: RelayedFrame): void {
    const { originSignature, forwarder, routes, self, links } = this.#deps
    const accepted = originSignature.accept(neighbour, frame)
    if (!accepted.ok) return forwarder.rejected(neighbour, frame, accepted)
    const { origin, target, hops, content } = frame
    routes.onAnswer(origin, { via: neighbour, hops: hops.length })
    if (target !== self) return forwarder.pass(frame)
    const message = decodeWhole(content)
    const fault = typeof message === 'string' ? message : this.#onContent(origin, message, hops)
    if (fault !== null) links.strike(origin, 'forged', fault)
  }

  #onContent(origin: NodeId, message: RelayableMessage, hops: readonly NodeId[]): string | null {
    if (message.kind === 'envelope') this.#deps.inbound.receive(origin, message.bytes, hops)
    if (message.kind === 'reliable') this.#deps.lanes.incoming.onMessage(origin, message.frame, hops)
    if (message.kind !== 'control') return null
    if (!RELAYED_CONTROLS.has(message.name)) return 'a control message that is not relayed'
    const control = decodeControl(message.name, message.body)
    if (!control.ok) return control.reason
    if (control.name !== 'coordination' && control.name !== 'swarm') this.#onControl(origin, control)
    return null
  }

  #onControl(peer: NodeId, control: Exclude<ControlMessage, { name: 'coordination' | 'swarm' }>): void {
    const { approvals, lanes, remoteCards, agentLookup, presence, requests, routes, swarms, executor } = this.#deps
    switch (control.name) {
      case 'cards':
        return remoteCards.fromPeer(peer, control.body.cards, control.body.all)
      case 'cards-removed':
        return remoteCards.removedByPeer(peer, control.body.agents)
      case 'heartbeat':
        requests.onHeartbeat(peer, control.body.requests, control.body.waiting)
        return swarms.onHeartbeat(peer, control.body.requests)
      case 'approval':
        requests.onApproval(peer, control.body.requests)
        return swarms.onHeartbeat(peer, control.body.requests, true)
      case 'cancel':
        approvals.onCancel(peer, control.body.requestId)
        return executor.onCancel(peer, control.body.requestId)
      case 'lookup':
        return agentLookup.onLookup(peer, control.body)
      case 'found':
        return agentLookup.onFound(peer, control.body)
      case 'way':
        return routes.onRouteRequest(peer, control.body)
      case 'way-found':
        return routes.onRouteFound(peer, control.body)
      case 'linked':
        return presence.onLinked(peer, control.body)
      case 'linked-to':
        return presence.onLinkedTo(peer, control.body)
      case 'presence':
        return this.#deps.documentSessions.onPresence(peer, control.body)
      case 'swarm-document':
        return this.#deps.swarmDocuments.onAsked(peer, control.body)
      case 'greet':
        return lanes.incoming.onGreet(peer, control.body)
      case 'ack':
        return lanes.onAck(peer, control.body)
      case 'undelivered':
        return this.#onUndelivered(peer, control.body)
    }
  }

  #onUndelivered(peer: NodeId, body: ControlBody<'undelivered'>): void {
    const { self, nextHop, forwarder } = this.#deps
    if (body.origin === self) nextHop.onUndelivered(peer, body)
    else forwarder.relay(peer, body)
  }

  #note(peer: NodeId, state: 'online' | 'online without a link' | 'offline'): void {
    const { events, directory, telemetry } = this.#deps
    const { name } = directory.ref(peer)
    events.add('peer', `a peer is ${state}`, { peer: name, id: peer })
    telemetry.log('info', `peer ${state}`, { peer: name })
  }
}
