import { NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { AgentRegistry } from '../domain/card/registry.js'
import { AgentHost } from './agents.js'
import { Approvals } from './approvals.js'
import { Attached } from './attached.js'
import type { AttachOptions, AttachedAgent } from './attached.js'
import { CardNews } from './card-news.js'
import { Channels } from './channels.js'
import { Conversations } from './conversations.js'
import { Directory } from './directory.js'
import { NodeEvents } from './events.js'
import { Forwarded } from './forwarded.js'
import { Inbox, threadOf } from './inbox.js'
import type { Incoming } from './inbox.js'
import { Listeners } from './listeners.js'
import { Lookups } from './lookups.js'
import { MemberChanges } from './member-changes.js'
import { rulesInForce } from './mesh-settings.js'
import { Members } from './members.js'
import { takeStream } from './mesh-router.js'
import { Negotiations } from './negotiations.js'
import { answerProposal } from './offers.js'
import type { OffersParts } from './offers.js'
import { Outbox } from './outbox.js'
import { OwnCards } from './own-cards.js'
import type { NodeParts } from './parts.js'
import { Passing } from './passing.js'
import { PeerCards } from './peer-cards.js'
import { PeerMessages } from './peer-messages.js'
import { Peers } from './peers.js'
import { PolicyBook } from './policy-book.js'
import { Presence } from './presence.js'
import { Requests } from './requests.js'
import { Router } from './router.js'
import { Routes } from './routes.js'
import { A2AObservability } from './observability.js'
import { Traffic } from './traffic.js'
import { sizeOf } from './size.js'
import { Swarms } from './swarms.js'
import { Tasks } from './tasks.js'
import { Work } from './work.js'
import { Ways } from './ways.js'
import { Visibility } from './visibility.js'

/** Payloads of notifications over this size are left out of the events, in bytes. */
const EVENT_PAYLOAD_BYTES = 4096

/** What the node knows and holds. */
interface Tables {
  readonly self: NodeId
  readonly events: NodeEvents
  readonly conversations: Conversations
  readonly registry: AgentRegistry
  readonly ownCards: OwnCards
  readonly peerCards: PeerCards
  readonly peers: Peers
  readonly presence: Presence
  readonly directory: Directory
  readonly visibility: Visibility
  readonly lookups: Lookups
  readonly agents: AgentHost
  readonly news: CardNews
  readonly tasks: Tasks
  readonly router: Router
  readonly observability: A2AObservability
  readonly traffic: Traffic
  readonly policy: PolicyBook
  readonly listeners: Listeners
  readonly routes: Routes
  readonly ways: Ways
  readonly passing: Passing
  readonly forwarded: Forwarded
}

/** What messages and work pass through. */
interface Roads {
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly requests: Requests
  readonly work: Work
  readonly swarms: Swarms
  readonly attached: Attached
  readonly approvals: Approvals
  readonly channels: Channels
  readonly negotiations: Negotiations
}

/** The use cases of one node, wired together. `NodeApi` bodies speak to this. */
export interface NodeCore extends Tables, Roads {
  readonly parts: NodeParts
  start(): Promise<void>
  close(): Promise<void>
  /** Makes a program of this process an agent of the node. @throws NodeError USAGE (id taken), INVALID_CARD. */
  attach(options: AttachOptions): Promise<AttachedAgent>
}

/** Wires the use cases. Nothing runs before `start`. */
export function createNode(parts: NodeParts): NodeCore {
  const tables = createTables(parts)
  const roads = createRoads(parts, tables)
  const core = { ...tables, ...roads }
  const { agents, approvals, attached, channels, conversations, negotiations, news } = core
  const { outbox, ownCards, peers, policy, presence, requests, swarms, work } = core
  const members = new Members({ ...parts, ...tables })
  const changes = new MemberChanges({ ...parts, ...tables })
  const messages = new PeerMessages({ ...core, telemetry: parts.telemetry })
  return {
    parts,
    ...core,
    attach: (options) => attached.attach(options),
    start: async () => {
      policy.start(() => approvals.onPolicy())
      await changes.start()
      await ownCards.start()
      await agents.start(() => news.refreshSoon())
      await news.refresh()
      members.start({
        onCertificate: () => news.refreshSoon(),
        onView: () => ownCards.publish(),
        onRevoked: (peer) => {
          for (const part of [requests, approvals, work]) part.onRevoked(peer)
        }
      })
      for (const part of [work, requests, swarms]) part.start()
      await peers.start(messages)
      presence.start()
    },
    close: async () => {
      await channels.closeAll()
      for (const part of [messages, members, presence, approvals, swarms, requests, work, negotiations, peers]) await part.stop()
      for (const part of [policy, ownCards, news, outbox, conversations]) part.close()
      await Promise.all([agents.close(), changes.stop()])
    }
  }
}

function createTables(parts: NodeParts): Tables {
  const { clock, ids, telemetry, log, membership, settings } = parts
  const self = membership.nodeId
  const registry = new AgentRegistry()
  const events = new NodeEvents(clock, telemetry)
  const peers = new Peers({ ...parts, nodeId: self, giveUpMs: settings.channelGiveUpMs })
  const ownCards = new OwnCards({ ...parts, registry })
  const peerCards = new PeerCards({ ...parts, registry, self, certificateOf: (node) => peers.certificate(node) })
  const directory = new Directory({ self, log, peers, registry, ownCertificate: () => membership.certificate().body })
  const agents = new AgentHost({ ...parts, source: parts.agents })
  const observability = new A2AObservability()
  const traffic = new Traffic({ ...parts, observability })
  const router = new Router({ ...parts, directory, events, traffic, rules: rulesInForce(parts.log, settings.rules) })
  const visibility = new Visibility({ self, directory, rules: () => router.rules() })
  const conversations = new Conversations(clock)
  return {
    self,
    events,
    registry,
    visibility,
    ownCards,
    peerCards,
    peers,
    presence: new Presence({ ...parts, peers, events }),
    directory,
    agents,
    conversations,
    ...createWays(parts, { self, peers, directory, conversations, events, router, traffic }),
    lookups: new Lookups({ clock, ids, peers, ownCards, peerCards, visibility }),
    news: new CardNews({ clock, telemetry, agents, ownCards, peers, visibility }),
    tasks: new Tasks({ clock, ids, telemetry }),
    router,
    policy: new PolicyBook({ ...parts, router, directory, events, self }),
    observability,
    traffic,
    listeners: new Listeners(telemetry)
  }
}

type WayTables = Pick<Tables, 'self' | 'peers' | 'directory' | 'conversations' | 'events' | 'router' | 'traffic'>

/** What brings messages to members without a link, and carries those of others. */
function createWays(parts: NodeParts, tables: WayTables): Pick<Tables, 'routes' | 'forwarded' | 'ways' | 'passing'> {
  const common = { ...parts, ...tables }
  const routes = new Routes(common)
  return {
    routes,
    forwarded: new Forwarded(common),
    ways: new Ways({ ...common, routes }),
    passing: new Passing({ ...common, routes })
  }
}

function createRoads(parts: NodeParts, tables: Tables): Roads {
  const { settings } = parts
  const { self } = tables
  const { leaseMs, defaultTtlMs: ttlMs, swarmDeadlineMs: deadlineMs } = settings
  const common = { ...parts, ...tables }
  const { listeners } = tables
  const inbox: Inbox = new Inbox({
    ...common,
    ttlMs,
    onLetIn: ({ recipient, header, payload }) => listeners.received(recipient.agentId, header, payload),
    onRequest: (incoming) => attached.onRequest(incoming) || work.onRequest(incoming),
    onNotification: (incoming) => attached.onNotification(incoming) || noteNotification(tables, incoming, work.onNotification(incoming)),
    onProposal: (incoming) => takeProposal({ ...common, outbox, negotiations, work }, incoming),
    onStream: (incoming) => takeStream(tables, incoming),
    refuse: (thread, error) => work.refuse(thread, error),
    hold: (held) => approvals.hold(held)
  })
  const outbox: Outbox = new Outbox({
    ...common,
    onSent: (envelope) => listeners.sent(envelope),
    deliverHere: (envelope) => inbox.receiveHere(envelope)
  })
  const attached = new Attached({ ...common, outbox })
  const cancelHere = (key: string): void => [approvals, work].forEach((part) => part.onCancel(self, key))
  const requests: Requests = new Requests({ ...common, outbox, limits: settings, cancelHere })
  const swarms: Swarms = new Swarms({ ...common, outbox, requests, limits: { leaseMs, deadlineMs } })
  const negotiations: Negotiations = new Negotiations({ ...common, outbox })
  const channels = new Channels({ ...common, outbox, giveUpMs: settings.channelGiveUpMs })
  const work: Work = new Work({
    ...common,
    outbox,
    limits: { ...settings, answerTtlMs: ttlMs },
    onHeartbeatHere: ({ requests: keys, waiting }) => {
      requests.onHeartbeat(self, keys, waiting)
      swarms.onHeartbeat(self, keys)
    }
  })
  const approvals: Approvals = new Approvals({ ...common, inbox, work, requests, swarms, limits: settings })
  return { inbox, outbox, requests, work, swarms, attached, approvals, channels, negotiations }
}

function takeProposal(parts: OffersParts & Pick<Roads, 'negotiations' | 'work'>, incoming: Incoming): void {
  const taken = parts.negotiations.onProposal(incoming)
  if (taken === 'nobody') answerProposal(parts, incoming)
  if (taken === 'full') parts.work.refuse(threadOf(incoming), new NodeError('OVERLOADED', 'too many proposals wait here').toBody())
}

function noteNotification({ events, directory }: Tables, { sender, recipient, payload }: Incoming, ran: boolean): void {
  const bytes = sizeOf(payload)
  events.add('notification', `a notification came for ${recipient.agentId}`, {
    from: directory.shownAddress(sender),
    to: addressText(recipient),
    ran,
    ...(bytes > EVENT_PAYLOAD_BYTES ? { bytes } : { payload })
  })
}
