import type { Clock } from '../kit/clock.js'
import type { Unsubscribe } from '../kit/events.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import type { CompileSchema, Hash, Sign, Verify } from '../kit/sign.js'
import type { RoutingRules } from '../domain/routing/decide.js'
import type { AgentSource } from '../ports/agent-runtime.js'
import type { Audit } from '../ports/audit.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { Ledger } from '../ports/ledger.js'
import type { Links, MemberLog, Membership, Pairing } from '../ports/mesh.js'
import type { PolicySource } from '../ports/policy.js'
import type { LogProblem, Problem } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import type { Telemetry } from '../ports/telemetry.js'

/** Numbers and rules that the config sets for the node. Milliseconds where the name says Ms. */
export interface NodeSettings {
  /** How long `send` and `call` wait for an answer. Default 30,000. */
  readonly requestTimeoutMs: number
  /** Life of a request that nobody waits for. Default 86,400,000. */
  readonly defaultTtlMs: number
  /** Bytes on disk that the ledger may have before new requests are refused. Default 4 GiB. */
  readonly ledgerMaxBytes: number
  /** Requests from others that may be unfinished here. Default 2,048. */
  readonly maxInFlight: number
  /** The same for one peer. Default 256. */
  readonly maxInFlightPerPeer: number
  /** A lease without a heartbeat for this long goes back. Default 5,000. */
  readonly leaseMs: number
  /** Default 1,000. */
  readonly heartbeatMs: number
  /** How long a message waits for a person to allow it. Default 300,000. */
  readonly approvalTimeoutMs: number
  /** Default deadline of a swarm. Default 600,000. */
  readonly swarmDeadlineMs: number
  /** A channel without a link for this long closes, with what waits for it. Default 60,000. */
  readonly channelGiveUpMs: number
  /** Messages between other members are carried. Default true. */
  readonly forward: boolean
  /** What the cards of this node's agents say of it. Default none. */
  readonly labels: readonly string[]
  readonly rules: RoutingRules
}

/** How much of the log of the mesh is here. */
export interface LogState {
  /** Those of {@link NodeDeps.problems} for which the log tells less than there is: it is not here, or lost a part. */
  problems(): readonly LogProblem[]
  /** Calls the listener when they may be others. */
  onChange(listener: () => void): Unsubscribe
}

/** What the facts of this process are, for `status`. */
export interface ProcessFacts {
  readonly pid: number
  readonly home: string
  readonly network: string
  readonly version: string
  readonly socket: string
  readonly startedAt: number
}

/** An error of its own by which a process of the node ended. */
export interface LastFault {
  /** What it said. */
  readonly reason: string
  /** What ran then has been ended: forgets it. Never rejects. */
  settled(): Promise<void>
}

/** Everything the node is made of. Wired in compose.ts. */
export interface NodeDeps {
  readonly clock: Clock
  readonly ids: IdSource
  /** In [0, 1). */
  readonly chance: () => number
  readonly sign: Sign
  readonly verify: Verify
  readonly hash: Hash
  /** 32 bytes of the system's secure random source. */
  readonly secret: () => Uint8Array
  readonly compileSchema: CompileSchema
  /** Makes bytes of attachments into base64 text, as agents get them. */
  readonly toAgentJson: (value: unknown) => unknown
  readonly telemetry: Telemetry
  readonly audit: Audit
  /** What is wrong now below the node, for `status`. */
  readonly problems: () => readonly Problem[]
  /** How much of the log of the mesh is here. */
  readonly logState: LogState
  readonly store: NodeStore
  readonly ledger: Ledger
  /** The error of its own by which the process before ended; absent for none. */
  readonly lastFault?: LastFault
  readonly membership: Membership & {
    readonly meshId: string
    readonly meshName: string
    readonly owner: string
    /** What is wrong with a member; null when nothing is. */
    problemOf(nodeId: NodeId): Problem | null
  }
  readonly links: Links
  readonly log: MemberLog
  readonly pairing: Pairing
  readonly documents: DocumentStreams
  readonly agents: AgentSource
  readonly policy: PolicySource
  readonly settings: NodeSettings
  readonly process: ProcessFacts
}
