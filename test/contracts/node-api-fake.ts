import { type ErrorCode, NodeError } from '../../src/kit/errors.js'
import { AsyncQueue } from '../../src/kit/queue.js'
import type {
  AgentDetail,
  CallName,
  Calls,
  EventInfo,
  NodeApi,
  NodeInfo,
  Reply,
  StatusInfo,
  TaskInfo,
  WatchName,
  Watches
} from '../../src/ports/node-api.js'
import type { InviteInfo, PeerDetail, PeerInfo } from '../../src/ports/peer-api.js'
import type { DocumentLiveEvent } from '../../src/ports/document-api.js'
import type { ImportedServerInfo } from '../../src/ports/imported-tools.js'
import type { SwarmEvent, SwarmInfo } from '../../src/ports/swarm-api.js'
import type { ApprovalElsewhere, ApprovalInfo, MessageEvent, RenamedInPolicy } from '../../src/ports/policy-api.js'
import type { TaskList, TaskQuery } from '../../src/ports/task-api.js'
import type { OAuthClientInfo } from '../../src/ports/oauth-api.js'
import type { TokenInfo } from '../../src/ports/token-api.js'

const KEY = 'y'.repeat(52)
const MESH_KEY = 'b'.repeat(52)
const AT = '2026-01-02T03:04:05.000Z'

type Handlers = {
  [N in CallName]?: (
    params: Calls[N]['params'],
    signal: AbortSignal | undefined
  ) => Calls[N]['result'] | Promise<Calls[N]['result']>
}

/** What a test tells the fake to be. */
export interface FakeState {
  readonly peers?: readonly PeerDetail[]
  readonly agents?: readonly AgentDetail[]
  readonly tasks?: readonly TaskInfo[]
  readonly swarms?: readonly SwarmInfo[]
  readonly swarmEvents?: readonly SwarmEvent[]
  readonly events?: readonly EventInfo[]
  readonly status?: Partial<StatusInfo>
  readonly approvals?: readonly ApprovalInfo[]
  readonly elsewhere?: readonly ApprovalElsewhere[]
  readonly servers?: readonly ImportedServerInfo[]
  /** What a rename tells of the policy. */
  readonly renamed?: readonly RenamedInPolicy[]
  /** What a send or call is told to wait for before its reply. */
  readonly waiting?: readonly MessageEvent<Reply>[]
  /** What a program hears that holds a document. */
  readonly live?: readonly DocumentLiveEvent[]
  /** Replace single calls. */
  readonly calls?: Handlers
  readonly pid?: number
  readonly socket?: string
  readonly http?: string
}

/**
 * A NodeApi without a node behind it: the owner of an otherwise empty mesh, plus what a test adds. Records every call.
 */
export class FakeNodeApi implements NodeApi {
  readonly seen: { name: string; params: unknown }[] = []
  /** Signals of the watches, in order. */
  readonly signals: AbortSignal[] = []
  readonly #state: FakeState
  readonly #invites: InviteInfo[] = []
  readonly #tokens: TokenInfo[] = []
  readonly #clients: OAuthClientInfo[] = []
  readonly #handlers: Handlers

  constructor(state: FakeState = {}) {
    this.#state = state
    this.#handlers = { ...this.#defaults(), ...state.calls }
  }

  async call<N extends CallName>(
    name: N,
    params: Calls[N]['params'],
    options?: { readonly signal?: unknown }
  ): Promise<Calls[N]['result']> {
    this.seen.push({ name, params })
    const handler = this.#handlers[name]
    if (handler === undefined) throw new NodeError('INTERNAL', `the fake has no ${name}`)
    return await handler(params, options?.signal as AbortSignal | undefined)
  }

  async *watch<N extends WatchName>(
    name: N,
    params: Watches[N]['params'],
    options?: { readonly signal?: unknown }
  ): AsyncGenerator<Watches[N]['item']> {
    this.seen.push({ name, params })
    const signal = options?.signal as AbortSignal | undefined
    if (signal !== undefined) this.signals.push(signal)
    if (signal?.aborted) return
    if (name === 'message.send' || name === 'message.call') {
      yield* this.#followed(name, params, signal) as AsyncGenerator<Watches[N]['item']>
      return
    }
    for (const item of this.#snapshot(name, params)) yield item as Watches[N]['item']
    if (name === 'swarm.watch' || (name === 'node.events' && !(params as { follow?: boolean }).follow)) return
    yield* new AsyncQueue<Watches[N]['item']>(10, never, signal)
  }

  /** As a node tells of a message: what holds it up, then its end. */
  async *#followed(
    name: 'message.send' | 'message.call',
    params: unknown,
    signal: AbortSignal | undefined
  ): AsyncGenerator<MessageEvent<Reply>> {
    yield* this.#state.waiting ?? []
    const handler = this.#handlers[name] as
      | ((params: unknown, signal: AbortSignal | undefined) => Reply | Promise<Reply>)
      | undefined
    try {
      if (handler === undefined) throw new NodeError('INTERNAL', `the fake has no ${name}`)
      yield { type: 'reply', reply: await handler(params, signal) }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      yield { type: 'failed', error: error.toBody() }
    }
  }

  #snapshot(name: WatchName, params: unknown): unknown[] {
    if (name === 'node.status') return [this.#status()]
    if (name === 'peers.list') return [{ peers: this.#peers(), problems: [] }]
    if (name === 'tasks.list') return [this.#tasks(params as TaskQuery)]
    if (name === 'approvals.list') return [{ approvals: this.#state.approvals ?? [] }]
    if (name === 'documents.live') return [...(this.#state.live ?? [])]
    if (name === 'node.events') return [...(this.#state.events ?? [])]
    if (this.#state.swarmEvents === undefined) this.#swarm((params as { id: string }).id)
    return [...(this.#state.swarmEvents ?? [])]
  }

  #defaults(): Handlers {
    const state = this.#state
    return {
      'node.info': () => this.#info(),
      'node.status': () => this.#status(),
      'node.id': () => ({
        node: this.#info().node,
        mesh: { ...this.#info().mesh, owner: this.#info().node },
        certificate: {
          tier: 'L0',
          sandboxId: null,
          mayInvite: true,
          mayWrite: true,
          issuer: this.#info().node,
          issuedAt: AT,
          expiresAt: null,
          serial: 1
        }
      }),
      'node.stop': () => ({ pid: this.#info().pid }),
      'node.metrics': () => ({
        counters: [{ name: 'messages_sent', label: 'request', value: 3 }],
        timings: [{ name: 'routing_ms', count: 2, sumMs: 1.5, maxMs: 1 }]
      }),
      'audit.flush': () => ({ flushed: true }),
      'node.config': () => ({ path: '/fake/config.yaml', config: {} }),
      'peers.list': () => ({ peers: this.#peers(), problems: [] }),
      'peers.show': ({ peer }) => this.#peer(peer),
      'peers.rename': ({ peer, name }) => ({ ...this.#peer(peer), name, policy: this.#state.renamed ?? [] }),
      'peers.tier': ({ peer, tier }) => ({ ...this.#peer(peer), tier: `L${tier}` }),
      'peers.revoke': ({ peer, reason }) => ({
        ...this.#peer(peer),
        status: 'revoked',
        revoked: { by: this.#info().node, at: AT, reason: reason ?? '' },
        wasRevoked: this.#peer(peer).status === 'revoked'
      }),
      'peers.address': ({ peer }) => ({ ...this.#peer(peer), changed: true }),
      'peers.ping': ({ peer, count }) => ({
        peer: this.#peer(peer),
        path: 'direct',
        rttMs: Array.from({ length: count ?? 4 }, (_, i) => 1 + i / 4)
      }),
      'peers.examine': ({ peer }) => ({
        ...this.#peer(peer),
        relayedBy: null,
        ownVersion: 'a2a-node/1',
        reach: null,
        sight: { isAnnounced: true, udp: null, webSockets: [], clockAheadMs: 0 },
        policy: { allow: ['text'], ask: [], deny: ['host'] },
        verdict: { ok: true, text: `${peer} is linked directly`, next: `a2a-node ping ${peer}` }
      }),
      ...this.#inviteCalls(),
      ...this.#tokenCalls(),
      ...this.#oauthCalls(),
      'agents.list': ({ origin }) => ({
        agents: (state.agents ?? [])
          .filter((one) => origin === undefined || one.origin === origin)
          .map((one) => ({ ...one, capabilities: one.capabilities.map(({ id }) => id) })),
        problems: state.status?.problems ?? []
      }),
      'agents.show': ({ agent }) => found(state.agents, agent, 'AGENT_NOT_FOUND'),
      'message.send': ({ agent }) => void found(state.agents, agent, 'AGENT_NOT_FOUND') as never,
      'message.call': ({ agent, capability }) => {
        if (agent === null) throw new NodeError('CAPABILITY_NOT_FOUND', `nobody has ${capability}`)
        return void found(state.agents, agent, 'AGENT_NOT_FOUND') as never
      },
      'message.judge': ({ agent }) => {
        found(state.agents, agent, 'AGENT_NOT_FOUND')
        return { refused: [] }
      },
      'swarm.start': ({ capability }) => {
        if (state.swarmEvents === undefined) throw new NodeError('NO_CAPABLE_AGENT', `nobody can do ${capability}`)
        return { id: 'swarm_fake' }
      },
      'swarm.list': () => ({ swarms: state.swarms ?? [] }),
      'swarm.show': ({ id }) => this.#swarm(id),
      'swarm.results': ({ id }) => ({ id: this.#swarm(id).id, status: this.#swarm(id).status, results: [] }),
      'swarm.retry': ({ id }) => ({ id: this.#swarm(id).id }),
      'swarm.cancel': ({ id }) => ({ ...this.#swarm(id), status: 'canceled' }),
      'tasks.list': (query) => this.#tasks(query),
      'tasks.show': ({ id }) => ({ ...found(state.tasks, id, 'TASK_NOT_FOUND'), events: [] }),
      'tasks.cancel': ({ id }) => ({ ...found(state.tasks, id, 'TASK_NOT_FOUND'), state: 'canceled' }),
      'policy.show': () => ({
        file: '/fake/policy.yaml',
        rules: [],
        fault: null,
        faults: [],
        moreFaults: 0,
        warnings: [],
        unasked: [],
        approvalTimeoutMs: 300_000
      }),
      'tools.list': () => ({ servers: state.servers ?? [] }),
      'tools.refresh': ({ server, accept }) => {
        if (accept !== undefined && server === undefined) throw new NodeError('USAGE', 'name the server')
        const servers = (state.servers ?? []).filter(({ name }) => server === undefined || name === server)
        if (server !== undefined && servers.length === 0) throw new NodeError('TOOL_SERVER_NOT_FOUND', `no ${server}`)
        return { servers }
      },
      'approvals.list': () => ({ approvals: state.approvals ?? [], elsewhere: state.elsewhere ?? [] }),
      'approvals.allow': ({ id }) => found(state.approvals, id, 'APPROVAL_NOT_FOUND'),
      'approvals.deny': ({ id }) => found(state.approvals, id, 'APPROVAL_NOT_FOUND')
    }
  }

  #inviteCalls(): Handlers {
    return {
      'invite.create': ({ tier, admin, uses, ttlMs, sandboxId, trust = 'guest' }) => {
        const expiresAt = new Date(Date.now() + (ttlMs ?? 600_000)).toISOString()
        const terms = {
          id: `inv${this.#invites.length}${'x'.repeat(10)}`,
          tier: `L${tier ?? 1}` as const,
          uses: uses ?? 1,
          expiresAt,
          trust
        }
        this.#invites.push({
          ...terms,
          admin: admin ?? false,
          sandboxId: sandboxId ?? null,
          used: 0,
          state: 'open',
          by: this.#info().node
        })
        return { ...terms, sandboxId: sandboxId ?? null, code: 'code'.repeat(15), longCode: 'code'.repeat(26) }
      },
      'invite.list': () => ({ invites: this.#invites, problems: [] }),
      'invite.revoke': ({ id }) => {
        const index = this.#invites.indexOf(found(this.#invites, id, 'INVITE_NOT_FOUND'))
        return (this.#invites[index] = { ...this.#invites[index], state: 'revoked' })
      }
    }
  }

  #oauthCalls(): Handlers {
    const request = {
      flow: 'device',
      client: { id: 'cli_0', name: 'ci' },
      scopes: ['a2a:send'],
      redirectUri: null,
      expiresAt: AT
    } as const
    const asked = ({ code }: { readonly code: string }): typeof request => {
      if (code !== 'BCDF-GHJK') throw new NodeError('APPROVAL_NOT_FOUND', 'nobody waits with this code')
      return request
    }
    return {
      'oauth.client.create': ({
        name = 'client',
        isPublic = false,
        tier = 3,
        scopes = ['a2a:read'],
        redirectUris = []
      }) => {
        const type = isPublic ? ('public' as const) : ('confidential' as const)
        const made = {
          id: `cli_${this.#clients.length}`,
          name,
          type,
          tier: `L${tier}` as const,
          scopes,
          redirectUris,
          createdAt: AT
        }
        this.#clients.push(made)
        return { ...made, secret: isPublic ? null : 'S'.repeat(43), issuer: 'http://127.0.0.1:7420' }
      },
      'oauth.client.list': () => ({ clients: this.#clients }),
      'oauth.client.revoke': ({ id }) => {
        const one = found(this.#clients, id, 'CLIENT_NOT_FOUND')
        this.#clients.splice(this.#clients.indexOf(one), 1)
        return one
      },
      'oauth.requests': () => ({ requests: [request] }),
      'oauth.show': asked,
      'oauth.approve': asked,
      'oauth.deny': asked,
      'oauth.rotate': () => ({ kid: 'kid', keys: 2 })
    }
  }

  #tokenCalls(): Handlers {
    return {
      'token.create': ({
        name = 'token',
        tier = 1,
        sandboxId = null,
        scopes = ['read', 'send'],
        ttlMs = 90 * 86_400_000
      }) => {
        const expiresAt = ttlMs === null ? null : new Date(Date.now() + ttlMs).toISOString()
        const terms = { name, tier: `L${tier}` as const, sandboxId, scopes, createdAt: AT, expiresAt, lastUsedAt: null }
        const made = { id: `tok_${this.#tokens.length}${'y'.repeat(15)}`, ...terms, state: 'active' } as const
        this.#tokens.push(made)
        return { ...made, token: `a2a_${'A'.repeat(43)}` }
      },
      'context.list': () => ({ contexts: [] }),
      'context.show': ({ id }) => {
        throw new NodeError('TASK_NOT_FOUND', `no context ${id}`)
      },
      'push.list': () => ({ configs: [], waiting: [], dead: [], pushedOut: 0, more: false }),
      'push.retry': ({ id, all = false }) => {
        if ((id === undefined) !== all) throw new NodeError('USAGE', 'name one notification, or all that were given up')
        if (id !== undefined) throw new NodeError('NOTIFICATION_NOT_FOUND', `there is no ${id}`)
        return { ids: [] }
      },
      'token.list': () => ({ tokens: this.#tokens }),
      'token.revoke': ({ id }) => {
        const one = found(this.#tokens, id, 'TOKEN_NOT_FOUND')
        this.#tokens.splice(this.#tokens.indexOf(one), 1)
        return one
      }
    }
  }

  #info(): NodeInfo {
    return {
      node: { id: KEY, name: 'laptop', tier: 'L0' },
      mesh: { id: MESH_KEY, name: 'home' },
      pid: this.#state.pid ?? process.pid,
      socket: this.#state.socket ?? '/fake/control.sock',
      http: this.#state.http ?? null
    }
  }

  #status(): StatusInfo {
    const { node, mesh, pid, http } = this.#info()
    const agents = {
      ready: (this.#state.agents ?? []).filter((one) => one.origin === 'local').map((one) => one.id),
      faults: []
    }
    const counts = {
      tasks: { running: 0, queued: 0 },
      approvals: { waiting: this.#state.approvals?.length ?? 0 },
      outbox: { pending: 0 },
      problems: []
    }
    const base = {
      state: 'running',
      node,
      pid,
      uptimeMs: 7_800_000,
      version: '0.1.0',
      home: '/fake',
      network: 'public',
      http,
      agents,
      ...counts
    } as const
    return { ...base, mesh: { ...mesh, members: 1 + this.#peers().length, online: 1 }, ...this.#state.status }
  }

  #tasks({ limit }: TaskQuery): TaskList {
    const all = this.#state.tasks ?? []
    const tasks = all.slice(0, limit)
    return { tasks, more: all.length - tasks.length }
  }

  #peers(): readonly PeerInfo[] {
    return this.#state.peers ?? []
  }

  #peer(name: string): PeerDetail {
    return found(this.#state.peers, name, 'PEER_NOT_FOUND')
  }

  #swarm(id: string): SwarmInfo {
    return found(this.#state.swarms, id, 'SWARM_NOT_FOUND')
  }
}

function found<T extends { readonly id: string }>(all: readonly T[] | undefined, wanted: string, code: ErrorCode): T {
  const one = all?.find(
    (each) =>
      each.id === wanted || ('name' in each && each.name === wanted) || ('address' in each && each.address === wanted)
  )
  if (one === undefined) throw new NodeError(code, `nothing is called ${wanted}`)
  return one
}

/** Nothing is ever pushed, so nothing is ever lost. */
function never(): never {
  throw new Error('a gap without items')
}
