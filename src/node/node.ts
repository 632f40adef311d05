import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { AgentHost } from './agents.js'
import { CardNews } from './card-news.js'
import { Cards } from './cards.js'
import { Conversations } from './conversations.js'
import { Directory } from './directory.js'
import { NodeEvents } from './events.js'
import { Inbox } from './inbox.js'
import type { Incoming } from './inbox.js'
import { Lookups } from './lookups.js'
import { answerProposal } from './offers.js'
import { Outbox } from './outbox.js'
import type { NodeParts } from './parts.js'
import { PeerMessages } from './peer-messages.js'
import { Peers } from './peers.js'
import { Requests } from './requests.js'
import { Swarms } from './swarms.js'
import { Tasks } from './tasks.js'
import { Work } from './work.js'

/** What the node knows and holds. */
interface Tables {
  readonly self: NodeId
  readonly events: NodeEvents
  readonly conversations: Conversations
  readonly peers: Peers
  readonly cards: Cards
  readonly directory: Directory
  readonly lookups: Lookups
  readonly agents: AgentHost
  readonly tasks: Tasks
}

/** What messages and work pass through. */
interface Roads {
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly requests: Requests
  readonly work: Work
  readonly swarms: Swarms
}

/** The use cases of one node, wired together. `NodeApi` bodies speak to this. */
export interface NodeCore extends Tables, Roads {
  readonly parts: NodeParts
  start(): Promise<void>
  close(): Promise<void>
}

/** Wires the use cases. Nothing runs before `start`. */
export function createNode(parts: NodeParts): NodeCore {
  const tables = createTables(parts)
  const roads = createRoads(parts, tables)
  const core = { parts, ...tables, ...roads }
  const { agents, cards, conversations, peers, swarms, work } = core
  const news = new CardNews({ ...core, telemetry: parts.telemetry, log: parts.log, membership: parts.membership })
  const messages = new PeerMessages({ ...core, telemetry: parts.telemetry, news })
  return {
    ...core,
    start: async () => {
      await cards.start()
      await agents.start(() => news.refreshSoon())
      await news.start()
      work.start()
      swarms.start()
      await peers.start(messages)
    },
    close: async () => {
      messages.stop()
      swarms.stop()
      work.stop()
      news.stop()
      cards.close()
      peers.stop()
      conversations.close()
      await agents.close()
    }
  }
}

function createTables(parts: NodeParts): Tables {
  const { clock, ids, telemetry, log, membership } = parts
  const self = membership.nodeId
  const peers = new Peers({ ...parts, nodeId: self })
  const cards = new Cards({ ...parts, certificateOf: (node) => peers.certificate(node) })
  return {
    self,
    peers,
    cards,
    events: new NodeEvents(clock, telemetry),
    conversations: new Conversations(clock),
    directory: new Directory({ self, log, peers, cards, ownCertificate: () => membership.certificate().body }),
    lookups: new Lookups({ clock, ids, peers, cards }),
    agents: new AgentHost({ ...parts, source: parts.agents }),
    tasks: new Tasks({ clock, ids, telemetry })
  }
}

function createRoads(parts: NodeParts, tables: Tables): Roads {
  const { settings } = parts
  const { self } = tables
  const { leaseMs, defaultTtlMs: ttlMs, swarmDeadlineMs: deadlineMs, rules } = settings
  const common = { ...parts, ...tables, rules }
  const inbox: Inbox = new Inbox({
    ...common,
    ttlMs,
    onRequest: (incoming) => work.onRequest(incoming),
    onNotification: (incoming) => noteNotification(tables, incoming, work.onNotification(incoming)),
    onProposal: (incoming) => answerProposal({ ...common, outbox }, incoming),
    refuse: (to, error) => work.refuse(to, error)
  })
  const outbox: Outbox = new Outbox({ ...common, deliverHere: (envelope) => inbox.receiveHere(envelope) })
  const requests: Requests = new Requests({ ...common, outbox, cancelHere: (key) => work.onCancel(self, key) })
  const swarms: Swarms = new Swarms({ ...common, outbox, requests, limits: { leaseMs, deadlineMs } })
  const work: Work = new Work({
    ...common,
    outbox,
    limits: { ...settings, answerTtlMs: ttlMs },
    onHeartbeatHere: (keys) => {
      requests.onHeartbeat(self, keys)
      swarms.onHeartbeat(self, keys)
    }
  })
  return { inbox, outbox, requests, work, swarms }
}

function noteNotification({ events, directory }: Tables, { sender, recipient, payload }: Incoming, ran: boolean): void {
  const from = directory.shownAddress(sender)
  events.add('notification', `a notification came for ${recipient.agentId}`, { from, to: addressText(recipient), ran, payload })
}
