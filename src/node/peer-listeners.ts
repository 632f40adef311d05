import type { NodeId } from '../kit/ids.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { ControlHandlers, PeerListeners } from './peer-dispatch.js'
import type { Pipelines } from './pipelines.js'
import type { Services } from './services.js'

type Parts = Services & Pipelines & { readonly telemetry: Telemetry }

/** The listeners of a node to the links of its peers. */
export function peerListeners(parts: Parts): PeerListeners {
  const { approvals, cardGossip, channels, executor, lanes, localCards, memberCalls } = parts
  const { presence, remoteCards, requests, routes, swarms } = parts
  const tellCards = (peer: NodeId): void => {
    cardGossip.tellAll(peer)
    localCards.publish()
  }
  return {
    onOnline: [
      (peer) => note(parts, peer, 'online'),
      (peer) => routes.onOnline(peer),
      (peer) => lanes.onPath(peer),
      tellCards,
      (peer) => requests.onReachable(peer),
      ...[executor, approvals, channels].map((part) => (peer: NodeId) => part.onOnline(peer))
    ],
    // Messages on the former link may be lost.
    onRelinked: [tellCards, (peer) => lanes.onPath(peer), (peer) => memberCalls.onLinks(peer)],
    onLinkLost: [(peer) => memberCalls.onLinks(peer)],
    onOffline: [
      (peer, isRest) => presence.onOffline(peer, isRest),
      (peer) => memberCalls.onLinks(peer),
      (peer) => routes.onOffline(peer),
      (peer) => lanes.onOffline(peer),
      (peer, isRest) => note(parts, peer, isRest ? 'online without a link' : 'offline'),
      ...[remoteCards, swarms, requests, executor, approvals, channels].map(
        (part) => (peer: NodeId) => part.onOffline(peer)
      )
    ],
    onFound: [(peer) => lanes.onPath(peer), (peer) => requests.onReachable(peer)],
    onGivenUp: (peer, lost) => noteLost(parts, peer, lost),
    isInUse: (peer) => isInUse(parts, peer)
  }
}

function note(
  { events, directory, telemetry }: Parts,
  peer: NodeId,
  state: 'online' | 'online without a link' | 'offline'
): void {
  const { name } = directory.ref(peer)
  events.add('peer', `a peer is ${state}`, { peer: name, id: peer })
  telemetry.log('info', `peer ${state}`, { peer: name })
}

function noteLost({ events, directory, telemetry }: Parts, peer: NodeId, lost: number): void {
  telemetry.count('errors', 'delivery', lost)
  events.add('delivery-failed', 'a peer did not come back in time for the messages that waited for it', {
    code: 'DELIVERY_FAILED',
    peer: directory.ref(peer).name,
    messages: lost
  })
}

function isInUse({ channels, exchanges, lanes, memberCalls, requests, swarms }: Parts, peer: NodeId): boolean {
  const isAsked = lanes.load(peer).count > 0 || exchanges.isOpenWith(peer) || requests.has(peer)
  return isAsked || memberCalls.has(peer) || channels.has(peer) || swarms.participants.has(peer)
}

/** The handlers of a node of the control messages of its peers. */
export function controlHandlers(parts: Services & Pipelines): ControlHandlers {
  const { agentLookup, approvals, documentSessions, executor, lanes, presence } = parts
  const { relay, remoteCards, requests, routes, swarmDocuments, swarms } = parts
  return {
    cards: (peer, { body: { cards, all, unable, providers = [] } }) => {
      remoteCards.fromPeer(peer, cards, all)
      if (unable !== undefined) remoteCards.unableFromPeer(peer, unable)
      remoteCards.providersFromPeer(peer, providers)
    },
    'cards-removed': (peer, { body }) => remoteCards.removedByPeer(peer, body.agents),
    heartbeat: (peer, { body }) => {
      requests.reports.onHeartbeat(peer, body.requests, body.waiting)
      swarms.onHeartbeat(peer, body.requests)
    },
    approval: (peer, { body }) => {
      requests.reports.onApproval(peer, body.requests, body.approvals)
      swarms.onHeartbeat(peer, body.requests, true)
    },
    cancel: (peer, { body }) => {
      approvals.onCancel(peer, body.requestId)
      executor.onCancel(peer, body.requestId)
    },
    answer: (peer, { body }) => executor.onAnswer(peer, body),
    lookup: (peer, { body }) => agentLookup.onLookup(peer, body),
    found: (peer, { body }) => agentLookup.onFound(peer, body),
    way: (peer, { body }) => routes.onRouteRequest(peer, body),
    'way-found': (peer, { body }) => routes.onRouteFound(peer, body),
    linked: (peer, { body }) => presence.onLinked(peer, body),
    'linked-to': (peer, { body }) => presence.onLinkedTo(peer, body),
    presence: (peer, { body }) => documentSessions.onPresence(peer, body),
    'swarm-document': (peer, { body }) => swarmDocuments.onAsked(peer, body),
    coordination: (peer, message) => swarms.participants.onWord(peer, message),
    swarm: (peer, message) => swarms.participants.onWord(peer, message),
    greet: (peer, { body }) => lanes.incoming.onGreet(peer, body),
    ack: (peer, { body }) => lanes.onAck(peer, body),
    undelivered: (peer, { body }) => relay.onUndelivered(peer, body)
  }
}
