import { messageOf } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { decodeControl } from '../domain/channel/control.js'
import type { ChannelMessage } from '../domain/channel/frames.js'
import type { SignedCard } from '../domain/membership/types.js'
import { AgentHost } from './agents.js'
import { Cards } from './cards.js'
import { Conversations } from './conversations.js'
import { Directory } from './directory.js'
import { NodeEvents } from './events.js'
import { Inbox } from './inbox.js'
import { Lookups } from './lookups.js'
import type { Incoming } from './inbox.js'
import { answerProposal } from './offers.js'
import { Outbox } from './outbox.js'
import type { NodeParts } from './parts.js'
import { Peers } from './peers.js'
import { Requests } from './requests.js'
import { Swarms } from './swarms.js'
import { Tasks } from './tasks.js'
import { Work } from './work.js'

/** Bytes of cards in one control message. */
const CARDS_BYTES = 96 * 1024

/** The use cases of one node, wired together. `NodeApi` bodies speak to this. */
export interface NodeCore {
  readonly parts: NodeParts
  readonly peers: Peers
  readonly cards: Cards
  readonly directory: Directory
  readonly agents: AgentHost
  readonly tasks: Tasks
  readonly requests: Requests
  readonly work: Work
  readonly swarms: Swarms
  readonly outbox: Outbox
  readonly lookups: Lookups
  readonly events: NodeEvents
  start(): Promise<void>
  close(): Promise<void>
}

/** Wires the use cases. Nothing runs before `start`. */
export function createNode(parts: NodeParts): NodeCore {
  const { clock, ids, telemetry, audit, log, links, membership, settings, sign, verify, store } = parts
  const self = membership.nodeId
  const events = new NodeEvents(clock, telemetry)
  const conversations = new Conversations(clock)
  const peers = new Peers({ clock, telemetry, links, log, nodeId: self })
  const cards = new Cards({ clock, sign, verify, telemetry, store, log, membership, certificateOf: (node) => peers.certificate(node) })
  const directory = new Directory({ self, log, peers, cards, ownCertificate: () => membership.certificate().body })
  const lookups = new Lookups({ clock, ids, peers, cards })
  const agents = new AgentHost({ source: parts.agents, compileSchema: parts.compileSchema, clock, telemetry })
  const tasks = new Tasks({ clock, ids, telemetry })
  const inbox: Inbox = new Inbox({
    clock,
    telemetry,
    audit,
    directory,
    conversations,
    rules: settings.rules,
    self,
    ttlMs: settings.defaultTtlMs,
    onRequest: (incoming) => work.onRequest(incoming),
    onNotification,
    onProposal: (incoming) =>
      answerProposal({ agents, outbox, onError: (error) => note('an offer could not be answered', error) }, incoming),
    refuse: (to, error) => work.refuse(to, error)
  })
  const outbox: Outbox = new Outbox({
    clock,
    ids,
    telemetry,
    audit,
    directory,
    peers,
    conversations,
    rules: settings.rules,
    self,
    deliverHere: (envelope) => inbox.receiveHere(envelope)
  })
  const requests: Requests = new Requests({
    clock,
    ids,
    outbox,
    peers,
    conversations,
    tasks,
    self,
    cancelHere: (key) => work.onCancel(self, key)
  })
  const { maxInFlight, maxInFlightPerPeer, leaseMs, heartbeatMs } = settings
  const work: Work = new Work({
    clock,
    telemetry,
    agents,
    directory,
    outbox,
    peers,
    conversations,
    tasks,
    self,
    limits: { maxInFlight, maxInFlightPerPeer, leaseMs, heartbeatMs, answerTtlMs: settings.defaultTtlMs },
    onHeartbeatHere: (keys) => onHeartbeat(self, keys),
    toAgentJson: parts.toAgentJson
  })
  const swarms = new Swarms({
    clock,
    ids,
    telemetry,
    directory,
    cards,
    peers,
    outbox,
    requests,
    tasks,
    events,
    self,
    limits: { leaseMs, deadlineMs: settings.swarmDeadlineMs }
  })

  function note(message: string, error: unknown): void {
    telemetry.log('warn', message, { reason: messageOf(error) })
  }

  function onNotification(incoming: Incoming): void {
    const ran = work.onNotification(incoming)
    const from = directory.shownAddress(incoming.sender)
    events.add('notification', `a notification came for ${incoming.recipient.agentId}`, {
      from,
      to: addressText(incoming.recipient),
      ran,
      payload: incoming.payload
    })
  }

  function onHeartbeat(peer: NodeId, keys: readonly string[]): void {
    requests.onHeartbeat(peer, keys)
    swarms.onHeartbeat(peer, keys)
  }

  function onMessage(peer: NodeId, message: ChannelMessage): void {
    if (isClosed) return
    if (message.kind === 'envelope') return inbox.receive(peer, message.bytes)
    if (message.kind !== 'control') return
    const control = decodeControl(message.name, message.body)
    if (!control.ok) return telemetry.log('warn', 'a malformed control message', { peer, reason: control.reason })
    switch (control.name) {
      case 'cards':
        return cards.fromPeer(peer, control.body.cards as SignedCard[], control.body.full)
      case 'cards-removed':
        return cards.removedByPeer(peer, control.body.agents)
      case 'heartbeat':
        return onHeartbeat(peer, control.body.requests)
      case 'cancel':
        return work.onCancel(peer, control.body.requestId)
      case 'lookup':
        return lookups.onLookup(peer, control.body)
      case 'found':
        return lookups.onFound(peer, control.body)
    }
  }

  function onOnline(peer: NodeId): void {
    if (isClosed) return
    events.add('peer', 'a peer is online', { peer: directory.ref(peer).name, id: peer })
    telemetry.log('info', 'peer online', { peer: directory.ref(peer).name })
    tellCards([peer], cards.own(), true)
    cards.publish()
    requests.onOnline(peer)
    work.onOnline(peer)
  }

  function onOffline(peer: NodeId): void {
    if (isClosed) return
    events.add('peer', 'a peer is offline', { peer: directory.ref(peer).name, id: peer })
    telemetry.log('info', 'peer offline', { peer: directory.ref(peer).name })
    swarms.onOffline(peer)
    work.onOffline(peer)
  }

  /** Tells peers of cards, in as few frames as fit. `full` only holds when one frame carries them all. */
  function tellCards(to: readonly NodeId[], signed: readonly SignedCard[], full: boolean): void {
    const groups = grouped(signed)
    for (const peer of to)
      for (const group of groups) send(peer, { kind: 'control', name: 'cards', body: { cards: group, full: full && groups.length === 1 } })
  }

  function send(peer: NodeId, message: ChannelMessage): void {
    try {
      peers.send(peer, message)
    } catch (error) {
      note('a peer could not be told', error)
    }
  }

  /** The agents or the certificate changed: new cards for everybody. */
  async function refreshCards(): Promise<void> {
    const { changed, removed } = await cards.refresh(agents.definitions())
    if (changed.length > 0) tellCards(peers.online(), changed, false)
    if (removed.length > 0)
      for (const peer of peers.online()) send(peer, { kind: 'control', name: 'cards-removed', body: { agents: removed } })
  }

  let stopLog: () => void = () => {}
  let isClosed = false
  return {
    parts,
    peers,
    cards,
    directory,
    agents,
    tasks,
    requests,
    work,
    swarms,
    outbox,
    lookups,
    events,
    start: async () => {
      await cards.start()
      await agents.start(() => {
        refreshCards().catch((error: unknown) => note('the cards could not be made anew', error))
      })
      await refreshCards()
      let certificate = membership.certificate().body.serial
      stopLog = log.onChange((view) => {
        cards.fromView(view)
        const { serial } = membership.certificate().body
        if (serial !== certificate) {
          certificate = serial
          refreshCards().catch((error: unknown) => note('the cards could not be made anew', error))
        }
      })
      work.start()
      swarms.start()
      await peers.start({ onOnline, onOffline, onMessage })
    },
    close: async () => {
      isClosed = true
      swarms.stop()
      work.stop()
      stopLog()
      cards.close()
      peers.stop()
      conversations.close()
      await agents.close()
    }
  }
}

function grouped(cards: readonly SignedCard[]): SignedCard[][] {
  const groups: SignedCard[][] = []
  let bytes = CARDS_BYTES
  for (const card of cards) {
    const size = JSON.stringify(card).length
    if (bytes + size > CARDS_BYTES) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)?.push(card)
    bytes += size
  }
  return groups
}
