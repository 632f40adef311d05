import type { NodeId } from '../kit/ids.js'
import { AgentRegistry } from '../domain/card/registry.js'
import { AgentHost } from './agents/agent-host.js'
import { CheckShare } from './agents/check-share.js'
import { CardGossip } from './cards/card-gossip.js'
import { ExchangeTable } from './messaging/exchange-table.js'
import { CutRuns } from './requests/callee/cut-runs.js'
import { Directory } from './cards/directory.js'
import { DocumentSessions } from './documents/sessions.js'
import { Documents } from './documents/documents.js'
import { Forks } from './documents/forks.js'
import { AskedElsewhere } from './agents/load-estimate.js'
import { NodeEvents } from './observe/events.js'
import { OriginSignature } from './relay/origin-signature.js'
import { LedgerQuota } from './ledger/quota.js'
import { Subscriptions } from './messaging/subscriptions.js'
import { AgentLookup } from './cards/agent-lookup.js'
import { rulesInForce } from './policy/mesh-rules.js'
import { LinkCalls } from './gateway/mesh/calls.js'
import { LocalCards } from './cards/local-cards.js'
import type { NodeDeps } from './dependencies.js'
import { Forwarder } from './relay/forwarder.js'
import { RelayReceiver } from './relay/relay-receiver.js'
import { ProviderStore } from './cards/provider-store.js'
import { RemoteCards } from './cards/remote-cards.js'
import { PeerTable } from './peers/peer-table.js'
import { Guests } from './policy/guests.js'
import { PeerTrust } from './policy/peer-trust.js'
import { PendingQuestions } from './policy/pending-questions.js'
import { PolicyStore } from './policy/policy-store.js'
import { Presence } from './peers/presence.js'
import { RequestStore } from './requests/store.js'
import { AccessControl } from './policy/access-control.js'
import { RouteDiscovery } from './relay/route-discovery.js'
import { A2AObservability } from './observe/observability.js'
import { ToolCalls } from './observe/tool-calls.js'
import { Traffic } from './observe/traffic.js'
import { TaskTable } from './tasks/task-table.js'
import { Tokens } from './access/tokens.js'
import { NextHop } from './relay/next-hop.js'
import { Visibility } from './cards/visibility.js'

/** The state and services of the node. */
export interface Services {
  readonly self: NodeId
  readonly events: NodeEvents
  readonly exchanges: ExchangeTable
  readonly registry: AgentRegistry
  readonly localCards: LocalCards
  readonly providers: ProviderStore
  readonly remoteCards: RemoteCards
  readonly peers: PeerTable
  readonly presence: Presence
  readonly directory: Directory
  readonly visibility: Visibility
  readonly agentLookup: AgentLookup
  readonly memberCalls: LinkCalls
  readonly agents: AgentHost
  readonly asked: AskedElsewhere
  readonly cardGossip: CardGossip
  readonly tasks: TaskTable
  readonly accessControl: AccessControl
  readonly observability: A2AObservability
  readonly toolCalls: ToolCalls
  readonly questions: PendingQuestions
  readonly traffic: Traffic
  readonly policy: PolicyStore
  readonly trust: PeerTrust
  readonly guests: Guests
  readonly subscriptions: Subscriptions
  readonly routes: RouteDiscovery
  readonly nextHop: NextHop
  readonly forwarder: Forwarder
  readonly originSignature: OriginSignature
  readonly relay: RelayReceiver
  readonly requestStore: RequestStore
  readonly cutRuns: CutRuns
  readonly checkShare: CheckShare
  readonly ledgerQuota: LedgerQuota
  readonly documents: Documents
  readonly documentSessions: DocumentSessions
  readonly tokens: Tokens
}

/** Builds the state and services of a node. */
export function createServices(deps: NodeDeps): Services {
  const { clock, ids, telemetry, log, membership, settings } = deps
  const [self, registry, events] = [membership.nodeId, new AgentRegistry(), new NodeEvents(clock, telemetry)]
  const peers = new PeerTable({ ...deps, nodeId: self, giveUpMs: settings.channelGiveUpMs })
  const observability = new A2AObservability()
  const cards = createCards(deps, { self, registry, peers })
  const { localCards, remoteCards } = cards
  const directory = new Directory({ self, log, peers, registry, membership })
  const agents = new AgentHost({ ...deps, source: deps.agents })
  const [traffic, exchanges] = [new Traffic({ ...deps, observability }), new ExchangeTable(clock)]
  const recording = { directory, events, traffic }
  const accessControl = new AccessControl({ ...deps, ...recording, rules: rulesInForce(log, settings.rules) })
  const visibility = new Visibility({ self, directory, agents, rules: () => accessControl.rules() })
  return {
    self,
    events,
    registry,
    ...createKept(deps),
    visibility,
    ...cards,
    peers,
    checkShare: new CheckShare({ clock, self, isAlone: (peer) => peers.isAlone(peer) }),
    presence: new Presence({ ...deps, peers, events }),
    directory,
    agents,
    asked: new AskedElsewhere(deps),
    exchanges,
    ...createRelay(deps, { self, peers, directory, exchanges, events, accessControl, traffic }),
    agentLookup: new AgentLookup({ clock, ids, peers, localCards, remoteCards, visibility }),
    cardGossip: new CardGossip({ clock, telemetry, agents, localCards, peers, visibility }),
    memberCalls: new LinkCalls({ clock, telemetry, peers }),
    accessControl,
    ...createPolicy(deps, { accessControl, directory, events, self }),
    observability,
    traffic,
    ...createTables(deps),
    ...createDocuments(deps, { self, peers, events })
  }
}

/** The rules of this node, and its view of others. */
function createPolicy(
  deps: NodeDeps,
  tables: Pick<Services, 'accessControl' | 'directory' | 'events' | 'self'>
): Pick<Services, 'trust' | 'policy' | 'guests'> {
  const trust = new PeerTrust(deps)
  const policy = new PolicyStore({ ...deps, ...tables, trust })
  return { trust, policy, guests: new Guests({ ...tables, log: deps.log, trust, policy }) }
}

/** The cards of all nodes. */
function createCards(
  deps: NodeDeps,
  { peers, ...of }: Pick<Services, 'self' | 'registry' | 'peers'>
): Pick<Services, 'localCards' | 'providers' | 'remoteCards'> {
  const providers = new ProviderStore(deps)
  const certificateOf = (node: NodeId): ReturnType<PeerTable['certificate']> => peers.certificate(node)
  return {
    localCards: new LocalCards({ ...deps, ...of }),
    providers,
    remoteCards: new RemoteCards({ ...deps, ...of, providers, certificateOf })
  }
}

/** The state that ends with the process and depends on no other. */
function createTables({
  clock,
  ids,
  telemetry
}: NodeDeps): Pick<Services, 'tasks' | 'toolCalls' | 'questions' | 'subscriptions'> {
  return {
    tasks: new TaskTable({ clock, ids, telemetry }),
    toolCalls: new ToolCalls(),
    questions: new PendingQuestions({ clock, ids, telemetry }),
    subscriptions: new Subscriptions(telemetry)
  }
}

/** The state that outlives the process. */
function createKept(deps: NodeDeps): Pick<Services, 'requestStore' | 'cutRuns' | 'ledgerQuota' | 'tokens'> {
  return {
    requestStore: new RequestStore(deps.ledger, deps.hash, deps.telemetry),
    cutRuns: new CutRuns({ clock: deps.clock, isAtFault: deps.lastFault !== undefined }),
    ledgerQuota: new LedgerQuota({ ...deps, maxBytes: deps.settings.ledgerMaxBytes }),
    tokens: new Tokens(deps)
  }
}

type RelayTables = Pick<Services, 'self' | 'peers' | 'directory' | 'exchanges' | 'events' | 'accessControl' | 'traffic'>

function createDocuments(
  deps: NodeDeps,
  tables: Pick<Services, 'self' | 'peers' | 'events'>
): Pick<Services, 'documents' | 'documentSessions'> {
  const documents = new Documents({ ...deps, ...tables, forks: new Forks({ ...deps, ...tables }) })
  return { documents, documentSessions: new DocumentSessions({ ...deps, ...tables, documents }) }
}

/** The relay: routes to members without a link, and forwarding for others. */
function createRelay(
  deps: NodeDeps,
  tables: RelayTables
): Pick<Services, 'routes' | 'originSignature' | 'nextHop' | 'forwarder' | 'relay'> {
  const common = { ...deps, ...tables }
  const routes = new RouteDiscovery(common)
  const originSignature = new OriginSignature(common)
  const [nextHop, forwarder] = [new NextHop({ ...common, routes }), new Forwarder({ ...common, routes })]
  const relay = new RelayReceiver({ ...common, routes, originSignature, nextHop, forwarder })
  return { routes, originSignature, nextHop, forwarder, relay }
}
