import type { NodeId } from '../kit/ids.js'
import { AgentRegistry } from '../domain/card/registry.js'
import { AgentHost } from './agents/agent-host.js'
import { CheckShare } from './agents/check-share.js'
import { CardGossip } from './cards/card-gossip.js'
import { Conversations } from './messaging/exchange-table.js'
import { CutRuns } from './requests/callee/cut-runs.js'
import { Directory } from './cards/directory.js'
import { DocumentSessions } from './documents/sessions.js'
import { Documents } from './documents/documents.js'
import { AskedElsewhere } from './agents/load-estimate.js'
import { NodeEvents } from './observe/events.js'
import { Forwarded } from './relay/origin-signature.js'
import { LedgerQuota } from './ledger/quota.js'
import { Listeners } from './messaging/subscriptions.js'
import { Lookups } from './cards/agent-lookup.js'
import { rulesInForce } from './policy/mesh-rules.js'
import { LinkCalls } from './gateway/mesh/calls.js'
import { OwnCards } from './cards/local-cards.js'
import type { NodeParts } from './dependencies.js'
import { Passing } from './relay/forwarder.js'
import { PeerCards } from './cards/remote-cards.js'
import { Peers } from './peers/peer-table.js'
import { PolicyStore } from './policy/policy-store.js'
import { Presence } from './peers/presence.js'
import { RequestStore } from './requests/store.js'
import { Router } from './policy/access-control.js'
import { Routes } from './relay/route-discovery.js'
import { A2AObservability } from './observe/observability.js'
import { Traffic } from './observe/traffic.js'
import { Tasks } from './tasks/task-table.js'
import { Tokens } from './access/tokens.js'
import { NextHop } from './relay/next-hop.js'
import { Visibility } from './cards/visibility.js'

/** What the node knows and holds. */
export interface Tables {
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
  readonly memberCalls: LinkCalls
  readonly agents: AgentHost
  readonly asked: AskedElsewhere
  readonly cardGossip: CardGossip
  readonly tasks: Tasks
  readonly router: Router
  readonly observability: A2AObservability
  readonly traffic: Traffic
  readonly policy: PolicyStore
  readonly listeners: Listeners
  readonly routes: Routes
  readonly nextHop: NextHop
  readonly passing: Passing
  readonly forwarded: Forwarded
  readonly requestStore: RequestStore
  readonly cutRuns: CutRuns
  readonly checkShare: CheckShare
  readonly ledgerQuota: LedgerQuota
  readonly documents: Documents
  readonly documentSessions: DocumentSessions
  readonly tokens: Tokens
}

/** Builds what a node knows and holds. */
export function createTables(parts: NodeParts): Tables {
  const { clock, ids, telemetry, log, membership, settings } = parts
  const self = membership.nodeId
  const [registry, events] = [new AgentRegistry(), new NodeEvents(clock, telemetry)]
  const peers = new Peers({ ...parts, nodeId: self, giveUpMs: settings.channelGiveUpMs })
  const [ownCards, observability] = [new OwnCards({ ...parts, registry }), new A2AObservability()]
  const peerCards = new PeerCards({ ...parts, registry, self, certificateOf: (node) => peers.certificate(node) })
  const directory = new Directory({ self, log, peers, registry, ownCertificate: () => membership.certificate().body })
  const [agents, asked] = [new AgentHost({ ...parts, source: parts.agents }), new AskedElsewhere(parts)]
  const traffic = new Traffic({ ...parts, observability })
  const router = new Router({ ...parts, directory, events, traffic, rules: rulesInForce(parts.log, settings.rules) })
  const [conversations, visibility] = [new Conversations(clock), new Visibility({ self, directory, agents, rules: () => router.rules() })]
  return {
    self,
    events,
    registry,
    ...createKept(parts),
    visibility,
    ownCards,
    peerCards,
    peers,
    checkShare: new CheckShare({ clock, self, isAlone: (peer) => peers.isAlone(peer) }),
    presence: new Presence({ ...parts, peers, events }),
    directory,
    agents,
    asked,
    conversations,
    ...createRelay(parts, { self, peers, directory, conversations, events, router, traffic }),
    lookups: new Lookups({ clock, ids, peers, ownCards, peerCards, visibility }),
    cardGossip: new CardGossip({ clock, telemetry, agents, ownCards, peers, visibility }),
    memberCalls: new LinkCalls({ clock, telemetry, peers }),
    tasks: new Tasks({ clock, ids, telemetry }),
    router,
    policy: new PolicyStore({ ...parts, router, directory, events, self }),
    observability,
    traffic,
    listeners: new Listeners(telemetry),
    ...createDocuments(parts, { self, peers, events })
  }
}

/** What outlives the process. */
function createKept(parts: NodeParts): Pick<Tables, 'requestStore' | 'cutRuns' | 'ledgerQuota' | 'tokens'> {
  return {
    requestStore: new RequestStore(parts.ledger, parts.hash, parts.telemetry),
    cutRuns: new CutRuns({ clock: parts.clock, isAtFault: parts.lastFault !== undefined }),
    ledgerQuota: new LedgerQuota({ ...parts, maxBytes: parts.settings.ledgerMaxBytes }),
    tokens: new Tokens(parts)
  }
}

type RelayTables = Pick<Tables, 'self' | 'peers' | 'directory' | 'conversations' | 'events' | 'router' | 'traffic'>

function createDocuments(
  parts: NodeParts,
  tables: Pick<Tables, 'self' | 'peers' | 'events'>
): Pick<Tables, 'documents' | 'documentSessions'> {
  const documents = new Documents({ ...parts, ...tables })
  return { documents, documentSessions: new DocumentSessions({ ...parts, ...tables, documents }) }
}

/** What brings messages to members without a link, and carries those of others. */
function createRelay(parts: NodeParts, tables: RelayTables): Pick<Tables, 'routes' | 'forwarded' | 'nextHop' | 'passing'> {
  const common = { ...parts, ...tables }
  const routes = new Routes(common)
  return {
    routes,
    forwarded: new Forwarded(common),
    nextHop: new NextHop({ ...common, routes }),
    passing: new Passing({ ...common, routes })
  }
}
