import type { Clock } from '../kit/clock.js'
import type { Unsubscribe } from '../kit/events.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import type { AgentProvider } from '../kit/names/provider.js'
import type { CompileSchema, Hash, Sign, Verify } from '../kit/sign.js'
import type { CardAddresses } from '../domain/card/endpoints.js'
import type { RoutingRules } from '../domain/routing/decide.js'
import type { AgentSource } from '../ports/agent-runtime.js'
import type { Audit } from '../ports/audit.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { Ledger } from '../ports/ledger.js'
import type { GivenAddresses, Links, MemberLog, Membership, Pairing } from '../ports/mesh.js'
import type { ReachSource } from '../ports/network/reach.js'
import type { PolicySource } from '../ports/policy.js'
import type { LogProblem, Problem, ServedAddresses } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import type { Telemetry } from '../ports/telemetry.js'

/** Settings from the config. Milliseconds for names that end in Ms. */
export interface NodeSettings {
  /** How long `send` and `call` wait for an answer. Default 30,000. */
  readonly requestTimeoutMs: number
  /** Life of a request without a waiting caller. Default 86,400,000. */
  readonly defaultTtlMs: number
  /** Bytes of the ledger on disk at which new requests are refused. Default 4 GiB. */
  readonly ledgerMaxBytes: number
  /** The most unfinished requests from others. Default 2,048. */
  readonly maxInFlight: number
  /** The same for one peer. Default 256. */
  readonly maxInFlightPerPeer: number
  /** A lease without a heartbeat for this long is returned. Default 5,000. */
  readonly leaseMs: number
  /** Default 1,000. */
  readonly heartbeatMs: number
  /** How long a message waits for approval. Default 300,000. */
  readonly approvalTimeoutMs: number
  /** Default deadline of a swarm. Default 600,000. */
  readonly swarmDeadlineMs: number
  /** A channel without a link for this long closes and drops its pending messages. Default 60,000. */
  readonly channelGiveUpMs: number
  /** Whether messages between other members are relayed. Default true. */
  readonly forward: boolean
  /** Bytes of the state of one agent of a program. Default 262,144. */
  readonly maxStateBytes: number
  /** Bytes of JSON in a message that this node takes. Default 1,048,576, which every node takes. */
  readonly maxPayloadBytes: number
  /** Labels on the cards of this node's agents. Default none. */
  readonly labels: readonly string[]
  /** Where members reach this node by TCP and WebSocket. Default nowhere. */
  readonly addresses?: CardAddresses
  /** Provider of this node's agents that name none. Default null: none. */
  readonly provider: AgentProvider | null
  /** Name of the agent for messages to the node without agent and skill. Default null: as `rootAgent` says. */
  readonly defaultAgent: string | null
  readonly rules: RoutingRules
}

/** The state of the local copy of the mesh log. */
export interface LogState {
  /** The entries of {@link NodeDeps.problems} about an incomplete log: the log is not here, or lost a part. */
  problems(): readonly LogProblem[]
  /** Calls the listener when the problems may have changed. */
  onChange(listener: () => void): Unsubscribe
}

/** Facts of this process, for `status`. */
export interface ProcessFacts {
  readonly pid: number
  readonly home: string
  readonly network: string
  readonly version: string
  readonly socket: string
  /** Where members connect beside UDP. Default nowhere. */
  readonly served?: ServedAddresses
  readonly startedAt: number
}

/** The internal error by which an earlier process of the node ended. */
export interface LastFault {
  /** Its message. */
  readonly reason: string
  /** Forgets the error, once the runs of that time have ended. Never rejects. */
  settled(): Promise<void>
}

/** All dependencies of the node, wired in compose.ts. */
export interface NodeDeps {
  readonly clock: Clock
  readonly ids: IdSource
  /** A random number in [0, 1). */
  readonly chance: () => number
  readonly sign: Sign
  readonly verify: Verify
  readonly hash: Hash
  /** 32 bytes of the system's secure random source. */
  readonly secret: () => Uint8Array
  readonly compileSchema: CompileSchema
  /** Converts bytes of attachments into base64 text, the form for agents. */
  readonly toAgentJson: (value: unknown) => unknown
  readonly telemetry: Telemetry
  readonly audit: Audit
  /** The present problems below the node, for `status`. */
  readonly problems: () => readonly Problem[]
  /** Brings {@link NodeDeps.problems} up to date, in 3 s at most; never rejects. Absent: they are. */
  readonly lookForProblems?: () => Promise<void>
  /** The state of the local copy of the mesh log. */
  readonly logState: LogState
  readonly store: NodeStore
  readonly ledger: Ledger
  /** The internal error by which the previous process ended; absent for none. */
  readonly lastFault?: LastFault
  readonly membership: Membership & {
    readonly meshId: string
    readonly meshName: string
    readonly owner: string
    /** The problem of a member; null for none. */
    problemOf(nodeId: NodeId): Problem | null
  }
  /** The network below this node, as old as {@link NodeDeps.problems}. Absent: it has none. */
  readonly reach?: ReachSource
  readonly links: Links
  readonly givenAddresses: GivenAddresses
  readonly log: MemberLog
  readonly pairing: Pairing
  readonly documents: DocumentStreams
  readonly agents: AgentSource
  readonly policy: PolicySource
  readonly settings: NodeSettings
  readonly process: ProcessFacts
}
