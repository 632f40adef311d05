import type { AbortSignalLike } from '../kit/clock.js'
import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { MeshId, NodeId } from '../kit/ids.js'
import type { AgentProvider } from '../kit/names/provider.js'
import type { CapabilityDescriptor } from '../domain/card/card.js'
import type { NodeEventType, TrafficEventType } from '../kit/names/event-types.js'
import type { Tier, TierText } from '../domain/routing/tier.js'
import type { Severity, QuestionAnswer, QuestionKind } from '../domain/task/question.js'
import type { AgentPrompt, HealthFinding } from './agent-runtime.js'
import type { ContextCalls } from './task-api.js'
import type { DocumentCalls, DocumentWatches } from './document-api.js'
import type { ReachInfo } from './network/reach.js'
import type { PeerCalls, PeerList } from './peer-api.js'
import type {
  ApprovalDetail,
  ApprovalList,
  ApprovalResult,
  MessageEvent,
  PolicyInfo,
  PolicyTestQuery,
  PolicyTestResult
} from './policy-api.js'
import type { ImportedServerInfo, RemoteCalls } from './imported-tools.js'
import type { SwarmEvent, SwarmInfo, SwarmPreview, SwarmRequest, SwarmResults, SwarmRetry } from './swarm-api.js'
import type { TaskEventInfo, TaskInfo, TaskList, TaskQuery } from './task-api.js'
import type { MetricsSnapshot } from './telemetry.js'
import type { TokenCalls } from './token-api.js'
import type { ToolCallCalls } from './tool-calls.js'

export type { SwarmEvent, SwarmInfo, SwarmRequest, SwarmResults, TaskInfo }

/** The caller. The node decides by it, never by the content of a call. A `client` is one of the OAuth server. */
export interface Principal {
  readonly kind: 'operator' | 'page' | 'token' | 'client' | 'mcp' | 'peer' | 'agent'
  readonly name: string
  /** Which one it is of several that may share a name: a token's id. */
  readonly id?: string
  /** The agent of this node (of a peer: of its own) that sends; absent: its messages are the operator's. */
  readonly agentId?: string | undefined
  /** Effective tier; never more powerful than the node's certificate. */
  readonly tier: Tier
  readonly sandboxId: string | null
  /** `read` (look), `send` (send, call, swarm), `admin` (membership, stop). */
  readonly scopes: readonly ('read' | 'send' | 'admin')[]
  /** It may ask for these capabilities alone; absent: for any. */
  readonly capabilities?: readonly string[]
  /** It sees and asks agents of these ids alone, as globs with `*`, sees their tasks, no swarm; absent: any agent. */
  readonly agents?: readonly string[]
  /** Its MCP list has these tools alone, as globs with `*`: a choice of the caller, no right. Absent: all. */
  readonly tools?: readonly string[]
}

/** Names of a node for people and scripts. */
export interface NodeRef {
  readonly id: NodeId
  readonly name: string
}

/** This node, as `start` prints it first. */
export interface NodeInfo {
  readonly node: NodeRef & { readonly tier: TierText }
  readonly mesh: { readonly id: MeshId; readonly name: string }
  readonly pid: number
  readonly socket: string
  /** `http://127.0.0.1:7420`; null when it serves no HTTP. */
  readonly http: string | null
  /** `127.0.0.1:7421`; absent when it serves no gRPC. */
  readonly grpc?: string
  /** The agent that takes messages to the node which name neither agent nor skill; null or absent: none. */
  readonly defaultAgent?: string | null
}

/** A fault and its next step. */
export interface Problem {
  readonly code: string
  readonly message: string
  readonly next: string
}

/** Where members connect to a node beside UDP. Absent: an earlier build. */
export interface ServedAddresses {
  /** `ws://0.0.0.0:7421/mesh`, as bound; null: not by WebSocket. */
  readonly websocket?: string | null
  /** URLs under which other machines reach it. */
  readonly websocketUrls?: readonly string[]
  /** `0.0.0.0:40123`, as bound; null: not by TCP. */
  readonly tcp?: string | null
  /** `host:port` at which other machines reach it. */
  readonly tcpAddresses?: readonly string[]
}

/** `status`. */
export interface StatusInfo extends ServedAddresses {
  readonly state: 'running' | 'stopping'
  readonly node: NodeInfo['node']
  readonly pid: number
  readonly uptimeMs: number
  readonly version: string
  readonly home: string
  readonly network: string
  /** Null: there is no network below it. Absent: an earlier build. */
  readonly reach?: ReachInfo | null
  /** As in {@link NodeInfo}. */
  readonly http: string | null
  readonly grpc?: string
  readonly mesh: {
    readonly id: MeshId
    readonly name: string
    readonly members: number
    readonly online: number
    /** The other members, by how this node regards them. Absent in answers of earlier builds. */
    readonly trust?: { readonly mine: number; readonly guests: number }
  }
  readonly agents: {
    readonly ready: readonly string[]
    readonly faults: readonly { readonly file: string; readonly line: number | null; readonly reason: string }[]
  }
  readonly tasks: { readonly running: number; readonly queued: number }
  /** Messages that wait for a person of this node. */
  readonly approvals: { readonly waiting: number }
  readonly outbox: { readonly pending: number }
  readonly problems: readonly Problem[]
  /** Provider of the agents of this node that name none (`a2a.provider`). Absent: none. */
  readonly provider?: AgentProvider
  /**
   * The last reload of the config (SIGHUP of a detached node); null before the first. Absent in answers of earlier
   * builds.
   */
  readonly reload?: ReloadInfo | null
}

/** A reload of the config of a running node. Settings are named `section.key`. */
export interface ReloadInfo {
  /** ISO time. */
  readonly at: string
  /** Changed settings that are in force now. */
  readonly applied: readonly string[]
  /** Changed settings that wait for a restart. */
  readonly needRestart: readonly string[]
  /** Why the config was not loaded, so that the old one stays in force; null else. */
  readonly error: string | null
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

/** Why this node does not know all of its mesh: the log is missing, or lost a part. */
export interface LogProblem extends Problem {
  readonly code: ErrorCode
}

/** A reading of the mesh log. */
export interface LogReading {
  /** Why the reading may be incomplete. Empty when the log is whole, as far as this node knows. */
  readonly problems: readonly LogProblem[]
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
  readonly labels: readonly string[]
  readonly capabilities: readonly string[]
  readonly revision: number
  readonly status: 'ready' | 'busy' | 'unhealthy' | 'offline'
  /** The organization that offers it. Absent: none, or for an agent of another node, none received. */
  readonly provider?: AgentProvider
  /** Could it take work at the last check, and since when? Absent: unknown; of other nodes only `unhealthy`. */
  readonly health?: HealthFinding & { readonly since: string }
}

/** `agents show`. */
export interface AgentDetail extends Omit<AgentInfo, 'capabilities'> {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly capabilities: readonly CapabilityDescriptor[]
  /** Prompts of its file; only for agents of this node. */
  readonly prompts: readonly AgentPrompt[]
  readonly source: string | null
}

/** The result of `send` and `call`. */
export interface Reply {
  readonly requestId: string
  readonly correlationId: string
  /** `id@node name`, or `*` for a broadcast. */
  readonly agent: string
  readonly taskId: string | null
  /**
   * FAILED: a broadcast failed at a target that no rule left out, or none took it. COMPLETED: a notification was handed
   * to link or agent.
   */
  readonly outcome: 'COMPLETED' | 'FAILED' | 'UNKNOWN' | 'QUEUED'
  readonly payload: unknown
  readonly error: ErrorBody | null
  readonly latencyMs: number
  /** Of a call in a context. */
  readonly contextId?: string
  /** Broadcast only. */
  readonly targets?: readonly BroadcastTarget[]
}

/** The outcome of a broadcast at one agent. */
export interface BroadcastTarget {
  readonly agent: string
  /** `COMPLETED`, `DELIVERED`, `QUEUED`, `UNKNOWN`, `SKIPPED`, `SIDE_EFFECT`, or the code of an error. */
  readonly outcome: string
  /** The rule of either node that left it out; null: it was asked. */
  readonly rule: string | null
  /** Why it failed, for people; absent where it did not. At most 256 characters. */
  readonly reason?: string
  readonly taskId?: string | null
  /** Its answer; of one of more than 16 KiB the beginning of its JSON, as text. */
  readonly payload?: unknown
}

/** `mesh show`: the owner's settings for the whole mesh, else the shipped ones. */
export interface MeshSettingsInfo extends LogReading {
  /** Rises with each change; 0 as shipped. */
  readonly serial: number
  readonly changedAt: string | null
  /** A tier without a rule may open to no tier. `justification`: opening to L0 or L1 from a weaker tier needs one. */
  readonly tiers: readonly {
    readonly from: TierText
    readonly to: readonly TierText[]
    readonly justification: boolean
  }[]
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

/**
 * Parameters of `events`. An event must match all of them. Default: all events that are not about one message or tool
 * call.
 */
export interface EventQuery {
  readonly follow?: boolean
  /** Also events of single messages and tool calls. */
  readonly all?: boolean
  /** Types of events, those of messages and tool calls included. */
  readonly types?: readonly (NodeEventType | TrafficEventType)[]
  /** Text in the message or the data, e.g. a name of an agent, a node or a tool. */
  readonly about?: string
  /** Only refusals, errors and failures. */
  readonly failed?: boolean
  /** Unix milliseconds of the earliest event. */
  readonly since?: number
  /** The most recent events of these before new ones. */
  readonly limit?: number
}

/** Parameters of `backup`. */
export interface BackupRequest {
  /** Absolute. */
  readonly file: string
  /** A file of that name may be replaced. */
  readonly force?: boolean
}

/** A backup that was written. */
export interface BackupInfo {
  readonly file: string
  readonly bytes: number
  readonly parts: number
  readonly createdAt: string
  readonly node: { readonly id: string; readonly name: string }
  readonly mesh: { readonly id: string; readonly name: string }
}

/** Abilities of the client that follows a call. Without them, or a watch, the owner of the node answers forms. */
export interface CallAbilities {
  /** Kinds of the agent's questions that it answers by `message.answer`. Default: none. */
  readonly takes?: readonly QuestionKind[]
  /** Least level of the agent's log lines. Absent: none. */
  readonly logLevel?: Severity
}

/**
 * Every call with its parameters and result. Parameters that name a node or agent take ids, names and unique prefixes.
 */
export interface Calls extends PeerCalls, DocumentCalls, TokenCalls, RemoteCalls, ToolCallCalls, ContextCalls {
  'node.info': { params: Record<string, never>; result: NodeInfo }
  'node.status': { params: Record<string, never>; result: StatusInfo }
  'node.id': { params: Record<string, never>; result: IdInfo }
  'node.stop': { params: Record<string, never>; result: { readonly pid: number } }
  'node.metrics': { params: Record<string, never>; result: MetricsSnapshot }
  /** Writes waiting audit lines to disk; resolves when they are written. */
  'audit.flush': { params: Record<string, never>; result: { readonly flushed: true } }
  /** Backs up identity, settings and stores into one file that only its user may read. */
  'node.backup': { params: BackupRequest; result: BackupInfo }
  'node.config': { params: Record<string, never>; result: { readonly path: string; readonly config: unknown } }
  'mesh.settings': { params: Record<string, never>; result: MeshSettingsInfo }
  'mesh.set': {
    /** Omitted settings stay. `reset` begins with the defaults; `serial` is the expected current serial. */
    params: {
      readonly tiers?: readonly { readonly from: Tier; readonly to: readonly Tier[]; readonly justification: boolean }[]
      readonly sandboxes?: { readonly enforced: boolean; readonly allow: readonly string[] }
      readonly serial?: number
      readonly reset?: boolean
    }
    /** `changed` false: that was in force before, and nothing was signed. */
    result: MeshSettingsInfo & { readonly changed: boolean }
  }
  'agents.list': {
    params: { readonly origin?: 'local' | 'remote' }
    /** `problems`: why agents that one may expect are not among them. */
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
      /** It may be run again after an unknown outcome, whatever its capability says. Default false. */
      readonly allowRepeat?: boolean
      /** Of `*`: also agents whose default capability has side effects (`write`, `exec`). Default false. */
      readonly all?: boolean
    } & CallAbilities
    result: Reply
  }
  /**
   * Which of these calls the rules of this node refuse to the caller. Nothing is sent or recorded.
   * @throws NodeError AGENT_NOT_FOUND
   */
  'message.judge': {
    params: { readonly agent: string; readonly capabilities: readonly string[] }
    result: { readonly refused: readonly { readonly capability: string; readonly error: ErrorBody }[] }
  }
  'message.call': {
    params: {
      readonly agent: string | null
      readonly capability: string
      readonly input: unknown
      readonly justification?: string
      readonly timeoutMs?: number
      readonly wait?: boolean
      /** It may be run again after an unknown outcome, whatever its capability says. Default false. */
      readonly allowRepeat?: boolean
      /**
       * Does the ledger record it? Default true. Without it, work that only reads and may be repeated is faster, and
       * lost when either node stops; other work is recorded all the same.
       */
      readonly record?: boolean
      /**
       * The payload is a tool result of MCP (`{content, structuredContent?, _meta?}`, bytes as byte arrays) where the
       * agent has one. Default false: its plain value.
       */
      readonly wantsContent?: boolean
      /**
       * A context of which it is the next turn, by its id or a unique prefix; `new` begins one. For the operator alone,
       * see {@link ContextCalls}.
       */
      readonly context?: string
    } & CallAbilities
    result: Reply
  }
  /** Answers a question of a call that this caller follows. Another form of answer counts as a refusal. */
  'message.answer': {
    params: { readonly id: string; readonly answer: QuestionAnswer }
    result: { readonly id: string }
  }
  'swarm.start': { params: SwarmRequest; result: { readonly id: string } }
  'swarm.preview': { params: SwarmRequest; result: SwarmPreview }
  'swarm.list': { params: Record<string, never>; result: { readonly swarms: readonly SwarmInfo[] } }
  'swarm.show': { params: { readonly id: string }; result: SwarmInfo }
  'swarm.results': { params: { readonly id: string }; result: SwarmResults }
  /** Starts a swarm of items of an ended one that failed. */
  'swarm.retry': { params: SwarmRetry; result: { readonly id: string } }
  'swarm.cancel': { params: { readonly id: string }; result: SwarmInfo }
  'tasks.list': { params: TaskQuery; result: TaskList }
  'tasks.show': { params: { readonly id: string }; result: TaskInfo & { readonly events: readonly TaskEventInfo[] } }
  'tasks.cancel': { params: { readonly id: string }; result: TaskInfo }
  /** The imported MCP servers of this node and their tools. */
  'tools.list': { params: Record<string, never>; result: { readonly servers: readonly ImportedServerInfo[] } }
  /**
   * Asks one server, or all, for its tools now. `accept` (of one server): sha256 of the list that is in force from then
   * on.
   */
  'tools.refresh': {
    params: { readonly server?: string; readonly accept?: string }
    result: { readonly servers: readonly ImportedServerInfo[] }
  }
  'policy.show': { params: Record<string, never>; result: PolicyInfo }
  'policy.test': { params: PolicyTestQuery; result: PolicyTestResult }
  /** `machines`: asks also the other machines of the owner. */
  'approvals.list': { params: { readonly machines?: boolean }; result: ApprovalList }
  'approvals.show': { params: { readonly id: string }; result: ApprovalDetail }
  /** `remember` writes a rule for this sender, agent and capability into the policy file. */
  'approvals.allow': {
    /** `content`: of a form that an agent asks for. */
    params: { readonly id: string; readonly remember?: boolean; readonly content?: unknown }
    result: ApprovalResult
  }
  'approvals.deny': { params: { readonly id: string; readonly remember?: boolean }; result: ApprovalResult }
}

/**
 * Every watch with its parameters and lines. Snapshot first, then changes; `gap` reports lost lines. Where every line
 * is the whole (status, peers, agents, tasks), a slow reader gets only the newest one.
 */
export interface Watches extends DocumentWatches {
  'node.status': { params: Record<string, never>; item: StatusInfo }
  'peers.list': { params: { readonly all?: boolean }; item: PeerList }
  /**
   * A line when agents come or go, or their cards, prompts or nodes' presence change. Busy agents are shown as of then.
   */
  'agents.list': { params: Calls['agents.list']['params']; item: Calls['agents.list']['result'] }
  'tasks.list': { params: TaskQuery; item: TaskList }
  /** The calls of these names with their progress: the reasons of waits, and last the result. */
  'message.send': { params: Calls['message.send']['params']; item: MessageEvent<Reply> }
  'message.call': { params: Calls['message.call']['params']; item: MessageEvent<Reply> }
  'approvals.list': { params: Calls['approvals.list']['params']; item: ApprovalList }
  /** From the swarm's first event to its `done`. */
  'swarm.watch': { params: { readonly id: string }; item: SwarmEvent }
  /** Recent ones first, by time; with `follow` it continues with new ones. */
  'node.events': { params: EventQuery; item: EventInfo }
}

/** Name of a call. */
export type CallName = keyof Calls
/** Name of a watch. */
export type WatchName = keyof Watches

/** Options of a call or watch. */
export interface CallOptions {
  /** Ends it. */
  readonly signal?: AbortSignalLike
  /** Milliseconds that the node may wait for others, such as for a change of the mesh log. Each call has a default. */
  readonly timeoutMs?: number
}

/**
 * The calls of a node for people, programs and gateways. One port, two bodies (in process; over the control socket),
 * one contract suite. Each caller holds the one of its own principal. Failures are NodeError; a watch ends by its
 * signal.
 */
export interface NodeApi {
  call<N extends CallName>(name: N, params: Calls[N]['params'], options?: CallOptions): Promise<Calls[N]['result']>
  watch<N extends WatchName>(
    name: N,
    params: Watches[N]['params'],
    options?: CallOptions
  ): AsyncIterable<Watches[N]['item']>
}
