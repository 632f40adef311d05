import type { AbortSignalLike } from '../kit/clock.js'
import type { ErrorBody } from '../kit/errors.js'
import type { MeshId, NodeId } from '../kit/ids.js'
import type { CapabilityDescriptor } from '../domain/card/card.js'
import type { Tier, TierText } from '../domain/routing/tier.js'
import type { LinkPath } from './mesh.js'
import type { ApprovalInfo, MessageEvent, PolicyInfo, PolicyTestQuery, PolicyTestResult } from './policy-api.js'
import type { TaskEventInfo, TaskInfo, TaskList, TaskQuery } from './task-api.js'
import type { MetricsSnapshot } from './telemetry.js'

export type { TaskInfo }

/** Who calls. The node decides by it, never by what a call says of itself. */
export interface Principal {
  readonly kind: 'operator' | 'page' | 'token' | 'mcp' | 'peer'
  readonly name: string
  /** Effective tier; never more powerful than the node's certificate. */
  readonly tier: Tier
  readonly sandboxId: string | null
  /** `read` (look), `send` (send, call, swarm), `admin` (membership, stop). */
  readonly scopes: readonly ('read' | 'send' | 'admin')[]
}

/** Names of a node for people and scripts. */
export interface NodeRef {
  readonly id: NodeId
  readonly name: string
}

/** This node: what `start` prints first. */
export interface NodeInfo {
  readonly node: NodeRef & { readonly tier: TierText }
  readonly mesh: { readonly id: MeshId; readonly name: string }
  readonly pid: number
  readonly socket: string
  readonly http: null
}

/** Something that is wrong and what to do. */
export interface Problem {
  readonly code: string
  readonly message: string
  readonly next: string
}

/** `status`. */
export interface StatusInfo {
  readonly state: 'running' | 'stopping'
  readonly node: NodeInfo['node']
  readonly pid: number
  readonly uptimeMs: number
  readonly version: string
  readonly home: string
  readonly network: string
  readonly mesh: { readonly id: MeshId; readonly name: string; readonly members: number; readonly online: number }
  readonly agents: {
    readonly ready: readonly string[]
    readonly faults: readonly { readonly file: string; readonly line: number | null; readonly reason: string }[]
  }
  readonly tasks: { readonly running: number; readonly queued: number }
  readonly outbox: { readonly pending: number }
  readonly problems: readonly Problem[]
}

/** `id`. */
export interface IdInfo {
  readonly node: NodeInfo['node']
  readonly mesh: NodeInfo['mesh'] & { readonly owner: NodeRef }
  readonly certificate: {
    readonly tier: TierText
    readonly sandboxId: string | null
    readonly mayInvite: boolean
    readonly mayWrite: boolean
    readonly issuer: NodeRef
    readonly issuedAt: string
    readonly expiresAt: string | null
    readonly serial: number
  }
}

/** One row of `peers`. */
export interface PeerInfo {
  readonly id: NodeId
  readonly name: string
  readonly tier: TierText
  readonly status: 'online' | 'offline' | 'revoked'
  readonly path: LinkPath | null
  readonly rttMs: number | null
  /** Agent ids of its cards, `operator` left out. */
  readonly agents: readonly string[]
  /** ISO time; null when this node never had a link to it. */
  readonly lastSeenAt: string | null
}

/** `peers show`. */
export interface PeerDetail extends PeerInfo {
  /** It is the node that tells. */
  readonly self: boolean
  readonly admin: boolean
  readonly writer: boolean
  readonly owner: boolean
  readonly sandboxId: string | null
  readonly issuer: NodeRef
  readonly version: string | null
  readonly revoked: null | { readonly by: NodeRef; readonly at: string; readonly reason: string }
}

/** One row of `agents`. */
export interface AgentInfo {
  readonly id: string
  /** `id@node name`. */
  readonly address: string
  readonly node: NodeRef
  readonly tier: TierText
  readonly origin: 'local' | 'remote'
  readonly sandboxId: string | null
  readonly capabilities: readonly string[]
  readonly revision: number
  readonly status: 'ready' | 'busy' | 'offline'
}

/** `agents show`. */
export interface AgentDetail extends Omit<AgentInfo, 'capabilities'> {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly capabilities: readonly CapabilityDescriptor[]
  readonly source: string | null
}

/** One row of `invite ls`. */
export interface InviteInfo {
  readonly id: string
  readonly tier: TierText
  readonly admin: boolean
  readonly sandboxId: string | null
  readonly uses: number
  readonly used: number
  readonly expiresAt: string
  readonly state: 'open' | 'used' | 'expired' | 'revoked'
  readonly by: NodeRef
}

/** What `send` and `call` give. */
export interface Reply {
  readonly requestId: string
  readonly correlationId: string
  /** `id@node name`, or `*` for a broadcast. */
  readonly agent: string
  readonly taskId: string | null
  /** `PARTIAL`: a broadcast that some took and that failed at others; those whom a rule leaves out do not count. */
  readonly outcome: 'COMPLETED' | 'FAILED' | 'UNKNOWN' | 'QUEUED' | 'PARTIAL'
  readonly payload: unknown
  readonly error: ErrorBody | null
  readonly latencyMs: number
  /** Broadcast only. */
  readonly targets?: readonly { readonly agent: string; readonly outcome: string; readonly rule: string | null }[]
}

/** One element of a mapped input: its name as given and the input made of it. */
export interface SwarmItemInput {
  readonly item: string
  /** JSON; Uint8Array members travel as bytes. */
  readonly input: unknown
}

/** What `swarm run` asks. */
export interface SwarmRequest {
  readonly goal: string
  readonly capability: string
  readonly strategy: 'each' | 'map'
  /** For `map`: 1..10,000 items. */
  readonly items?: readonly SwarmItemInput[]
  /** For `each`: the input of everyone; default `{}`. */
  readonly input?: unknown
  readonly maxParallel?: number
  /** Failed runs of an item that are tried again. Default 2. */
  readonly retries?: number
  /** Milliseconds. Default 600,000. */
  readonly deadlineMs?: number
  readonly justification?: string
}

/** Where a swarm stands. */
export type SwarmStatus = 'running' | 'completed' | 'failed' | 'partial' | 'canceled' | 'stalled'

/** A line of `swarm run --json` and `swarm watch --json`. */
export type SwarmEvent =
  | {
      readonly type: 'swarm'
      readonly id: string
      readonly agents: readonly string[]
      readonly leftOut: readonly { readonly agent: string; readonly rule: string }[]
    }
  | { readonly type: 'lease'; readonly item: string; readonly agent: string; readonly attempt: number }
  /** Its node says that the lease waits for a person there (`approval`), or that the work goes on (null). */
  | {
      readonly type: 'waiting'
      readonly item: string
      readonly agent: string
      readonly attempt: number
      readonly waitingFor: 'approval' | null
    }
  | { readonly type: 'released'; readonly item: string; readonly agent: string; readonly attempt: number; readonly reason: string }
  | {
      readonly type: 'item'
      readonly item: string
      readonly agent: string
      readonly attempt: number
      readonly status: 'completed' | 'failed'
      readonly result: unknown
      readonly error: ErrorBody | null
    }
  | { readonly type: 'gap'; readonly lost: number }
  | {
      readonly type: 'done'
      readonly id: string
      readonly status: Exclude<SwarmStatus, 'running' | 'stalled'>
      readonly counts: SwarmCounts
      readonly durationMs: number
      readonly error: ErrorBody | null
    }

/** Items of a swarm by fate. */
export interface SwarmCounts {
  readonly total: number
  readonly completed: number
  readonly failed: number
}

/** One row of `swarm ls`, and `swarm show`. */
export interface SwarmInfo {
  readonly id: string
  readonly goal: string
  readonly capability: string
  readonly strategy: 'each' | 'map'
  readonly status: SwarmStatus
  /** `id@node name` of agents that hold or held a lease. */
  readonly participants: readonly string[]
  readonly leftOut: readonly { readonly agent: string; readonly rule: string }[]
  readonly counts: SwarmCounts
  /** Leases that are worked on. */
  readonly running: number
  /** Leases that wait for a person of their node. */
  readonly waitingForApproval: number
  readonly createdAt: string
  readonly durationMs: number
}

/** `swarm results`. */
export interface SwarmResults {
  readonly id: string
  readonly status: SwarmStatus
  readonly results: readonly {
    readonly item: string
    readonly agent: string
    readonly attempt: number
    readonly status: 'completed' | 'failed'
    readonly result: unknown
    readonly error: ErrorBody | null
    readonly durationMs: number
  }[]
}

/** `mesh show`: what the owner set for the whole mesh, else what is shipped. */
export interface MeshSettingsInfo {
  /** Rises with each change; 0 as shipped. */
  readonly serial: number
  readonly changedAt: string | null
  /** A tier without a rule opens to nobody. `justification`: opening to L0 or L1 from a weaker tier needs one. */
  readonly tiers: readonly { readonly from: TierText; readonly to: readonly TierText[]; readonly justification: boolean }[]
  /** `allow`: agents that every sandboxed agent may reach, as `id` (on any node) or `id@node`. */
  readonly sandboxes: { readonly enforced: boolean; readonly allow: readonly string[] }
}

/** A line of `events --json`. */
export interface EventInfo {
  readonly at: string
  readonly type: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Every call: what goes in, what comes out. Parameters that name a node or agent take ids, names and unique prefixes. */
export interface Calls {
  'node.info': { params: Record<string, never>; result: NodeInfo }
  'node.status': { params: Record<string, never>; result: StatusInfo }
  'node.id': { params: Record<string, never>; result: IdInfo }
  'node.stop': { params: Record<string, never>; result: { readonly pid: number } }
  'node.metrics': { params: Record<string, never>; result: MetricsSnapshot }
  /** Puts on disk what waits to be put on record; resolves when it is. */
  'audit.flush': { params: Record<string, never>; result: { readonly flushed: true } }
  'node.config': { params: Record<string, never>; result: { readonly path: string; readonly config: unknown } }
  'peers.list': { params: { readonly all?: boolean }; result: { readonly peers: readonly PeerInfo[] } }
  'peers.show': { params: { readonly peer: string }; result: PeerDetail }
  'peers.rename': { params: { readonly peer: string; readonly name: string }; result: PeerDetail }
  'peers.tier': { params: { readonly peer: string; readonly tier: Tier }; result: PeerDetail }
  'peers.revoke': {
    params: { readonly peer: string; readonly reason?: string }
    /** `wasRevoked`: it was out before; `revoked` says since when, and the reason given now goes nowhere. */
    result: PeerDetail & { readonly wasRevoked: boolean }
  }
  'peers.ping': {
    params: { readonly peer: string; readonly count?: number }
    result: { readonly peer: NodeRef; readonly path: LinkPath; readonly rttMs: readonly number[] }
  }
  'invite.create': {
    params: { readonly tier?: Tier; readonly admin?: boolean; readonly ttlMs?: number; readonly uses?: number; readonly sandboxId?: string }
    result: { readonly id: string; readonly code: string; readonly expiresAt: string; readonly uses: number; readonly tier: TierText }
  }
  'mesh.settings': { params: Record<string, never>; result: MeshSettingsInfo }
  'mesh.set': {
    /** What is not given stays; `reset` begins with what is shipped. */
    params: {
      readonly tiers?: readonly { readonly from: Tier; readonly to: readonly Tier[]; readonly justification: boolean }[]
      readonly sandboxes?: { readonly enforced: boolean; readonly allow: readonly string[] }
      readonly reset?: boolean
    }
    result: MeshSettingsInfo
  }
  'invite.list': { params: Record<string, never>; result: { readonly invites: readonly InviteInfo[] } }
  'invite.revoke': { params: { readonly id: string }; result: InviteInfo }
  'agents.list': {
    params: { readonly origin?: 'local' | 'remote' }
    /** `problems`: why agents of this node that one may expect are not among them. */
    result: { readonly agents: readonly AgentInfo[]; readonly problems: readonly Problem[] }
  }
  'agents.show': { params: { readonly agent: string }; result: AgentDetail }
  'message.send': {
    params: {
      readonly agent: string
      readonly text: string
      readonly type?: 'request' | 'notification'
      readonly justification?: string
      readonly timeoutMs?: number
      readonly wait?: boolean
    }
    result: Reply
  }
  'message.call': {
    params: {
      readonly agent: string | null
      readonly capability: string
      readonly input: unknown
      readonly justification?: string
      readonly timeoutMs?: number
      readonly wait?: boolean
    }
    result: Reply
  }
  'swarm.start': { params: SwarmRequest; result: { readonly id: string } }
  'swarm.list': { params: Record<string, never>; result: { readonly swarms: readonly SwarmInfo[] } }
  'swarm.show': { params: { readonly id: string }; result: SwarmInfo }
  'swarm.results': { params: { readonly id: string }; result: SwarmResults }
  'swarm.cancel': { params: { readonly id: string }; result: SwarmInfo }
  'tasks.list': { params: TaskQuery; result: TaskList }
  'tasks.show': { params: { readonly id: string }; result: TaskInfo & { readonly events: readonly TaskEventInfo[] } }
  'tasks.cancel': { params: { readonly id: string }; result: TaskInfo }
  'policy.show': { params: Record<string, never>; result: PolicyInfo }
  'policy.test': { params: PolicyTestQuery; result: PolicyTestResult }
  'approvals.list': { params: Record<string, never>; result: { readonly approvals: readonly ApprovalInfo[] } }
  /** `remember` writes a rule for this sender, agent and capability into the policy file. */
  'approvals.allow': { params: { readonly id: string; readonly remember?: boolean }; result: ApprovalInfo }
  'approvals.deny': { params: { readonly id: string; readonly remember?: boolean }; result: ApprovalInfo }
}

/**
 * Every watch: what goes in, what each line is. Snapshot first, then changes; `gap` says that lines were lost. Where every
 * line is the whole (status, peers, tasks), a reader that is behind gets the newest one only.
 */
export interface Watches {
  'node.status': { params: Record<string, never>; item: StatusInfo }
  'peers.list': { params: { readonly all?: boolean }; item: { readonly peers: readonly PeerInfo[] } }
  'tasks.list': { params: TaskQuery; item: TaskList }
  /** The calls of these names, told of while they are under way: what holds them up, and last what they give. */
  'message.send': { params: Calls['message.send']['params']; item: MessageEvent<Reply> }
  'message.call': { params: Calls['message.call']['params']; item: MessageEvent<Reply> }
  'approvals.list': { params: Record<string, never>; item: { readonly approvals: readonly ApprovalInfo[] } }
  /** From the swarm's first event to its `done`. */
  'swarm.watch': { params: { readonly id: string }; item: SwarmEvent }
  /** Recent ones first; with `follow` it goes on. */
  'node.events': { params: { readonly follow?: boolean }; item: EventInfo }
}

/** Name of a call. */
export type CallName = keyof Calls
/** Name of a watch. */
export type WatchName = keyof Watches

/**
 * What a node offers to people, programs and gateways. One port, two bodies (in process; over the control socket), one
 * contract suite. A caller holds the one made for its own principal. Failures are NodeError; a watch ends by its signal.
 */
export interface NodeApi {
  call<N extends CallName>(
    name: N,
    params: Calls[N]['params'],
    options?: { readonly signal?: AbortSignalLike }
  ): Promise<Calls[N]['result']>
  watch<N extends WatchName>(
    name: N,
    params: Watches[N]['params'],
    options?: { readonly signal?: AbortSignalLike }
  ): AsyncIterable<Watches[N]['item']>
}
