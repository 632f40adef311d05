import type { NodeId } from '../../kit/ids.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { AbortSignalLike } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { shown } from '../../kit/text.js'
import { isActive } from '../../domain/membership/view.js'
import type { CallerAuthority, CertifiedPower } from '../../domain/routing/effective.js'
import type { OAuthCalls, OAuthAdmin } from '../../ports/oauth-api.js'
import type { ImportedTools } from '../../ports/imported-tools.js'
import type { ContextStore } from '../../ports/task-api.js'
import type { PushAdmin } from '../../ports/push-api.js'
import type {
  BackupInfo,
  BackupRequest,
  CallName,
  Calls,
  NodeApi,
  NodeInfo,
  Principal,
  ReloadInfo,
  StatusInfo,
  WatchName
} from '../../ports/node-api.js'
import { beyondAuthority, refuseBeyondAuthority } from './call-rights.js'
import { CONTEXT_CALLS, contextStore } from './contexts.js'
import { callCapability, judgeCalls, listAgents, sendText, showAgent } from './messages.js'
import { listApprovals } from './approvals.js'
import { decideAnywhere, listMachines, showAnywhere } from './machine-approvals.js'
import { answerCall } from './call-questions.js'
import { callerName, certified, ownerOf, powerIn } from './principal.js'
import { policyInfo, testPolicy } from './policy.js'
import {
  amendPeer,
  createInvite,
  keptOutProblem,
  listInvites,
  listPeers,
  renamePeer,
  pingPeer,
  revokeInvite,
  revokePeer,
  selfInfo,
  showId,
  showPeer,
  trustPeer
} from './peers.js'
import { examinePeer } from './peer-exam.js'
import { changeAddress } from './peer-addresses.js'
import { findSwarm, listSwarms, watchSwarm, cancelTask, listTasks, showTask, watchTasks } from './tasks.js'
import { setSettings, showSettings } from '../policy/mesh-rules.js'
import {
  followMessage,
  queueFor,
  type ToError,
  watchAgents,
  watchApprovals,
  watchEvents,
  watching,
  watchPeers,
  type WatchRow,
  watchStatus
} from './watches.js'
import { DOCUMENT_CALLS, DOCUMENT_WATCHES } from './documents.js'
import type { DocumentApiCaller } from './named-document.js'
import type { NodeCore } from '../node.js'
import { agentProblems, withLogProblem } from '../agents/health.js'
import { rootAgent } from '../../domain/gateway/root-agent.js'

type Scope = Principal['scopes'][number]

/** Dependencies of an API beside the node. */
export interface ApiHost {
  readonly node: NodeCore
  /** The config for `config show` of the running node. */
  readonly config: { readonly path: string; readonly config: unknown }
  /** The last reload of the config; null before the first. */
  reload(): ReloadInfo | null
  /** The imported MCP servers. */
  readonly tools: ImportedTools
  /**
   * Finds the A2A agent of a card.
   * @throws NodeError CAPABILITY_NOT_FOUND; USAGE when there is no room for its agent
   */
  findRemote(params: Calls['a2a.find']['params']): Promise<Calls['a2a.find']['result']>
  /** The OAuth server; null when it is off. */
  oauth(): OAuthAdmin | null
  /** Writes a backup of this node. */
  backup(request: BackupRequest): Promise<BackupInfo>
  /** Begins a clean stop; it must not wait for the calling request. */
  stop(): void
  isStopping(): boolean
  /** URL of the HTTP listener with the bound address, which may be a wildcard; null without one. */
  http(): string | null
  /** The bound address of the gRPC listener; absent or null without one. */
  readonly grpc?: string | null
  /** Push notifications of the A2A gateway; null without one. */
  push(): PushAdmin | null
  /** Conversations of callers of the A2A gateway; null without one. */
  contexts(): ContextStore | null
}

/** Facts of this node, as `start` prints them. */
export function nodeInfo({ node, http, grpc = null }: Pick<ApiHost, 'node' | 'http' | 'grpc'>): NodeInfo {
  const { membership, process: facts } = node.deps
  return {
    node: selfInfo(node),
    mesh: { id: membership.meshId, name: safeName(membership.meshName, NODE_NAME) },
    pid: facts.pid,
    socket: facts.socket,
    http: http(),
    ...(grpc === null ? {} : { grpc }),
    defaultAgent: rootAgent(node.deps.settings.defaultAgent, node.agents.definitions())
  }
}

/** `status`: every number is counted now, from links, queues and the log's view. */
export function statusInfo(host: ApiHost): StatusInfo {
  const { node, isStopping } = host
  const { process: facts, clock, log } = node.deps
  const view = log.view()
  const members = view.members.size === 0 ? [] : [...view.members.keys()].filter((id) => isActive(view, id))
  const left = new Set([...node.localCards.surplus(), ...node.localCards.misplaced().map(({ id }) => id)])
  const isReady = (id: string): boolean => !left.has(id) && node.agents.health(id)?.state !== 'unhealthy'
  const ready = node.agents.definitions().flatMap(({ id }) => (isReady(id) ? [id] : []))
  return {
    state: isStopping() ? 'stopping' : 'running',
    ...nodeInfo(host),
    uptimeMs: clock.now() - facts.startedAt,
    version: facts.version,
    home: facts.home,
    network: facts.network,
    reach: node.deps.reach?.info() ?? null,
    ...facts.served,
    mesh: {
      ...nodeInfo(host).mesh,
      members: Math.max(1, members.length),
      online: 1 + node.presence.online().length,
      trust: trustCounts(node, members)
    },
    agents: { ready, faults: node.agents.faults() },
    tasks: node.executor.counts(),
    approvals: { waiting: node.approvals.list().length },
    outbox: { pending: node.requests.waitingCount() + node.lanes.waiting },
    problems: [node.deps, node.policy, node.ledgerQuota, node.documents, node.orphans]
      .flatMap((part) => part.problems())
      .concat(agentProblems(node))
      .concat(members.flatMap((peer) => keptOutProblem(node, peer) ?? [])),
    ...(node.deps.settings.provider === null ? {} : { provider: node.deps.settings.provider }),
    reload: host.reload()
  }
}

/** The other members, by how this node regards them. */
function trustCounts({ trust, self }: NodeCore, members: readonly NodeId[]): NonNullable<StatusInfo['mesh']['trust']> {
  const others = members.filter((id) => id !== self)
  const mine = others.filter((id) => trust.of(id) === 'mine').length
  return { mine, guests: others.length - mine }
}

function tierOf({ deps }: NodeCore): Tier {
  return deps.membership.certificate().body.maxTier
}

/** An invite of `mine` says of its newcomers what `peers.trust` says of a peer, so it needs the same rights. */
function makeInvite(
  { node, principal, by, timeoutMs }: ApiCall,
  params: Calls['invite.create']['params']
): Promise<Calls['invite.create']['result']> {
  const refusal = beyondAuthority('peers.trust', principal, tierOf(node))
  if (refusal !== null && params.trust === 'mine') throw refusal
  return createInvite(node, refusal === null ? params : { ...params, trust: 'guest' }, { by, timeoutMs })
}

/** A caller, and its node. */
interface ApiCall extends DocumentApiCaller {
  readonly host: ApiHost
  readonly node: NodeCore
  readonly principal: Principal
  /** The rights of work in the operator's name. */
  readonly by: CallerAuthority
  /** The same in the form for other nodes. */
  readonly certified: Required<CertifiedPower>
}

function apiCall(host: ApiHost, principal: Principal): ApiCall {
  return { host, node: host.node, principal, by: powerIn(principal), certified: certified(principal) }
}

/** The caller of a message. */
function senderIn(caller: ApiCall) {
  const { principal, by } = caller
  return { by, as: principal.agentId, owner: ownerOf(principal), store: () => contextStore(caller) }
}

/** The required scope and the function of each call. */
type CallTable = {
  readonly [N in CallName]: readonly [
    Scope,
    (
      caller: ApiCall,
      params: Calls[N]['params'],
      signal: AbortSignalLike | undefined
    ) => Calls[N]['result'] | Promise<Calls[N]['result']>
  ]
}

type SwarmCall = Extract<CallName, `swarm.${string}`>

const SWARM_CALLS: Pick<CallTable, SwarmCall> = {
  'swarm.start': ['send', async ({ node, certified: by }, params) => ({ id: await node.swarms.launch(params, by) })],
  'swarm.preview': ['send', ({ node, certified: by }, params) => node.swarms.preview(params, by)],
  'swarm.list': ['read', async ({ node, by }) => ({ swarms: await listSwarms(node, by) })],
  'swarm.show': ['read', async ({ node, by }, { id }) => (await findSwarm(node, id, by)).info()],
  'swarm.results': ['read', async ({ node, by }, { id }) => (await findSwarm(node, id, by)).results()],
  'swarm.retry': [
    'send',
    async ({ node, by, certified: power }, { id, ...which }) => ({
      id: await node.swarms.launch({ id: (await findSwarm(node, id, by)).head.id, ...which }, power)
    })
  ],
  'swarm.cancel': [
    'send',
    async ({ node, by, principal }, { id }) =>
      node.swarms.cancel((await findSwarm(node, id, by)).head.id, callerName(principal))
  ]
}

/** For the operator alone: a client that could create or approve clients would have the operator's rights. */
const OAUTH_CALLS: Pick<CallTable, keyof OAuthCalls> = {
  'oauth.client.create': ['admin', (caller, params) => oauthAdmin(caller)['oauth.client.create'](params)],
  'oauth.client.list': ['admin', (caller, params) => oauthAdmin(caller)['oauth.client.list'](params)],
  'oauth.client.revoke': ['admin', (caller, params) => oauthAdmin(caller)['oauth.client.revoke'](params)],
  'oauth.requests': ['admin', (caller, params) => oauthAdmin(caller)['oauth.requests'](params)],
  'oauth.show': ['admin', (caller, params) => oauthAdmin(caller)['oauth.show'](params)],
  'oauth.approve': ['admin', (caller, params) => oauthAdmin(caller)['oauth.approve'](params)],
  'oauth.deny': ['admin', (caller, params) => oauthAdmin(caller)['oauth.deny'](params)],
  'oauth.rotate': ['admin', (caller, params) => oauthAdmin(caller)['oauth.rotate'](params)]
}

type ClientCall = Extract<CallName, `token.${string}` | `push.${string}` | `tools.${string}`>

/**
 * The calls about HTTP callers and services. Accepting a list of tools decides what this node runs, as its config does.
 */
const CLIENT_CALLS: Pick<CallTable, ClientCall> = {
  'token.create': ['admin', ({ node, principal }, params) => node.tokens.create(params, principal)],
  'token.list': ['admin', ({ node }) => ({ tokens: node.tokens.list() })],
  'token.revoke': ['admin', ({ node }, { id }) => node.tokens.revoke(id)],
  'push.list': ['admin', async ({ host }) => await pushAdmin(host).list()],
  'push.retry': [
    'admin',
    async ({ host }, { id, all = false }) => {
      if ((id === undefined) !== all) throw new NodeError('USAGE', 'name one notification, or all that were given up')
      return { ids: await pushAdmin(host).retry(id ?? null) }
    }
  ],
  'tools.calls': ['admin', ({ node }, params) => ({ calls: node.toolCalls.list(params) })],
  'tools.list': ['read', ({ host }) => ({ servers: host.tools.list() })],
  'tools.refresh': [
    'admin',
    async ({ host }, { server = null, accept = null }) => {
      if (accept !== null && server === null)
        throw new NodeError('USAGE', 'tool lists are accepted one server at a time: name the server')
      return { servers: await host.tools.refresh(server, accept) }
    }
  ]
}

type PolicyCall = Extract<CallName, `policy.${string}` | `approvals.${string}`>

const POLICY_CALLS: Pick<CallTable, PolicyCall> = {
  'policy.show': ['read', ({ node, by }) => policyInfo(node, by)],
  'policy.test': ['read', ({ node, by }, params) => testPolicy(node, params, by)],
  'approvals.list': [
    'read',
    async ({ node, principal }, { machines = false }) => ({
      ...listApprovals(node),
      ...(machines ? { machines: await listMachines(node, principal) } : {})
    })
  ],
  'approvals.show': ['read', ({ node, principal }, { id }) => showAnywhere(node, id, principal)],
  'approvals.allow': [
    'admin',
    ({ node, principal: caller }, params) => decideAnywhere(node, 'allow', { ...params, caller })
  ],
  'approvals.deny': [
    'admin',
    ({ node, principal: caller }, params) => decideAnywhere(node, 'deny', { ...params, caller })
  ]
}

const CALLS: CallTable = {
  'node.info': ['read', ({ host }) => nodeInfo(host)],
  'node.status': [
    'read',
    async ({ host }) => {
      await host.node.deps.lookForProblems?.()
      return statusInfo(host)
    }
  ],
  'node.id': ['read', ({ node }) => showId(node)],
  'node.stop': ['admin', ({ host }) => stop(host)],
  'node.metrics': ['read', ({ node, principal }) => metricsOf(node, principal)],
  'audit.flush': ['read', async ({ node }) => await node.deps.audit.flush().then(() => ({ flushed: true }))],
  'node.backup': ['admin', ({ host }, params) => host.backup(params)],
  'node.config': ['read', ({ host }) => host.config],
  'peers.list': ['read', ({ node, by }, params) => listPeers(node, params, by)],
  'peers.show': ['read', ({ node, by }, { peer }) => showPeer(node, node.directory.node(peer), by)],
  'peers.rename': [
    'admin',
    ({ node, by, timeoutMs }, { peer, name }) => renamePeer(node, node.directory.node(peer), { name, by, timeoutMs })
  ],
  'peers.tier': [
    'admin',
    ({ node, by, timeoutMs }, { peer, tier }) => amendPeer(node, node.directory.node(peer), { tier, by, timeoutMs })
  ],
  'peers.trust': [
    'admin',
    ({ node, by, timeoutMs }, { peer, trust }) => trustPeer(node, node.directory.node(peer), { trust, by, timeoutMs })
  ],
  'peers.revoke': [
    'admin',
    ({ node, by, timeoutMs }, { peer, reason = '' }) =>
      revokePeer(node, node.directory.node(peer), { reason, by, timeoutMs })
  ],
  'peers.address': ['admin', ({ node, by }, params) => changeAddress(node, params, by)],
  'peers.ping': [
    'read',
    ({ node, timeoutMs }, { peer, count = 1 }) => pingPeer(node, node.directory.node(peer), { count, timeoutMs })
  ],
  'peers.examine': ['admin', ({ node, by }, { peer }) => examinePeer(node, node.directory.node(peer), by)],
  'invite.create': ['admin', makeInvite],
  'invite.list': ['admin', ({ node }) => listInvites(node)],
  'invite.revoke': ['admin', ({ node, timeoutMs }, { id }) => revokeInvite(node, id, timeoutMs)],
  'mesh.settings': ['read', ({ node }) => showSettings(node)],
  'mesh.set': ['admin', ({ node, timeoutMs }, params) => setSettings(node, params, timeoutMs)],
  'agents.list': ['read', ({ node, by }, params) => listAgents(node, params, by)],
  'agents.show': ['read', ({ node, by }, { agent }) => showAgent(node, agent, by)],
  'message.send': ['send', (caller, params, signal) => sendText(caller.node, params, { ...senderIn(caller), signal })],
  'message.call': [
    'send',
    (caller, params, signal) => callCapability(caller.node, params, { ...senderIn(caller), signal })
  ],
  'message.answer': ['send', ({ node, principal }, params) => answerCall(node, params, principal)],
  'message.judge': [
    'send',
    ({ node, principal, by }, params) => judgeCalls(node, params, { by, as: principal.agentId })
  ],
  'tasks.list': ['read', ({ node, by }, params) => listTasks(node, params, by)],
  'tasks.show': ['read', ({ node, by }, { id }) => showTask(node, id, by)],
  'tasks.cancel': [
    'send',
    ({ node, by, principal }, { id }) => cancelTask(node, id, { by, caller: callerName(principal) })
  ],
  'a2a.find': ['send', (caller, params) => findRemote(caller, params)],
  ...SWARM_CALLS,
  ...POLICY_CALLS,
  ...CLIENT_CALLS,
  ...OAUTH_CALLS,
  ...CONTEXT_CALLS,
  ...DOCUMENT_CALLS
}

/** Tool names name agents of every sandbox, so a sandboxed caller gets no measurements of tools. */
function metricsOf(
  { deps, agents, observability }: NodeCore,
  { sandboxId }: Principal
): Calls['node.metrics']['result'] {
  const own = { ...deps.telemetry.snapshot(), agents: agents.measured() }
  return sandboxId === null ? { ...own, a2a: observability.getMetrics() } : own
}

/** Finds an agent by any URL. @throws NodeError FORBIDDEN, and the errors of the search */
function findRemote(
  { host, principal }: ApiCall,
  params: Calls['a2a.find']['params']
): ReturnType<ApiHost['findRemote']> {
  if (principal.kind !== 'operator')
    throw new NodeError('FORBIDDEN', 'only the operator of the node asks agents by the URL of their card')
  return host.findRemote(params)
}

/** @throws NodeError FORBIDDEN, USAGE */
function oauthAdmin({ host, principal: { kind } }: ApiCall): OAuthAdmin {
  if (kind !== 'operator' && kind !== 'page')
    throw new NodeError('FORBIDDEN', 'only the operator of the node decides about clients')
  const found = host.oauth()
  if (found !== null) return found
  const next = ['a2a-node config path   # a2a: { oauth: { enabled: true } }', 'a2a-node start --http <[host:]port>']
  throw new NodeError('USAGE', 'this node gives no tokens by OAuth: set a2a.oauth.enabled, and serve HTTP', { next })
}

/** Push notifications cover the tasks of all callers, so they are for the node's admins. @throws NodeError CONFLICT */
function pushAdmin({ push }: ApiHost): PushAdmin {
  const found = push()
  if (found !== null) return found
  const fault = 'this node serves A2A neither over HTTP nor to members, so it sends no push notifications'
  throw new NodeError('CONFLICT', fault, { next: ['a2a-node start --http <[host:]port>'] })
}

/** Each watch pushes a snapshot, then the changes, and returns its stop function. */
const WATCHES: { readonly [N in WatchName]: WatchRow<N, ApiCall> } = {
  'node.status': [
    'read',
    ({ host }, _params, { push }) => watchStatus(host.node.deps, () => push(statusInfo(host))),
    'newest'
  ],
  'peers.list': [
    'read',
    ({ node, by }, params, { push }) => watchPeers(node, () => push(listPeers(node, params, by))),
    'newest'
  ],
  'agents.list': [
    'read',
    ({ node, by }, params, { push }) => watchAgents(node, () => listAgents(node, params, by), push),
    'newest'
  ],
  'tasks.list': [
    'read',
    ({ node, by }, params, { push }) => watchTasks(node, () => push(listTasks(node, params, by))),
    'newest'
  ],
  'approvals.list': [
    'read',
    ({ node, principal }, { machines = false }, { push }) => watchApprovals(node, machines ? principal : null, push),
    'newest'
  ],
  'message.send': [
    'send',
    (caller, params, to) =>
      followMessage(caller.node, (hooks) => sendText(caller.node, params, { ...senderIn(caller), ...hooks }), to),
    'all'
  ],
  'message.call': [
    'send',
    (caller, params, to) =>
      followMessage(caller.node, (hooks) => callCapability(caller.node, params, { ...senderIn(caller), ...hooks }), to),
    'all'
  ],
  ...DOCUMENT_WATCHES,
  'swarm.watch': ['read', async ({ node, by }, { id }, to) => watchSwarm(await findSwarm(node, id, by), to), 'all'],
  'node.events': [
    'read',
    ({ node }, params, to) => watchEvents(node, params, to),
    ({ node }, lost) => node.events.gap(lost)
  ]
}

/** The in-process implementation of NodeApi for one principal. */
export function createApi(host: ApiHost, principal: Principal): NodeApi {
  const caller = apiCall(host, principal)
  function allow(scope: Scope, name: CallName | WatchName): void {
    if (!principal.scopes.includes(scope))
      throw new NodeError('FORBIDDEN', `${name} needs the scope ${scope}, which this caller does not have`)
    refuseBeyondAuthority(name, principal, tierOf(host.node))
  }
  const { peers, deps } = host.node
  const toError: ToError = (error) => withLogProblem(asNodeError(error), deps.logState.problems)
  return {
    call: async (name, params, options) => {
      const row = Object.hasOwn(CALLS, name) ? CALLS[name] : undefined
      if (row === undefined) throw new NodeError('USAGE', `no call ${shown(name)}`)
      const [scope, run] = row
      allow(scope, name)
      peers.usedHere()
      try {
        const { timeoutMs, signal } = options ?? {}
        return await run(timeoutMs === undefined ? caller : { ...caller, timeoutMs }, params, signal)
      } catch (error) {
        const failure = toError(error)
        if (failure.code === 'INTERNAL')
          deps.telemetry.log('error', 'a call failed', { call: name, reason: failure.message })
        throw failure
      }
    },
    watch: (name, params, options) => {
      const row = Object.hasOwn(WATCHES, name) ? WATCHES[name] : undefined
      if (row === undefined) throw new NodeError('USAGE', `no watch ${shown(name)}`)
      const [scope, open, keeps] = row
      const opened = async (to: Parameters<typeof open>[2]): Promise<Unsubscribe> => {
        allow(scope, name)
        peers.usedHere()
        return await open(caller, params, to)
      }
      const kept = typeof keeps === 'function' ? (lost: number) => keeps(caller, lost) : keeps
      return watching(opened, queueFor(kept, options?.signal), toError)
    }
  }
}

function stop(host: ApiHost): { pid: number } {
  host.stop()
  return { pid: host.node.deps.process.pid }
}
