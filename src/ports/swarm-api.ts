import type { ErrorBody, ErrorCode } from '../kit/errors.js'

/** One element of a mapped input: its name as given and the input made of it. */
export interface SwarmItemInput {
  readonly item: string
  /** JSON; Uint8Array members travel as bytes. */
  readonly input: unknown
}

/** An agent that could, but does not take part. */
export interface LeftOut {
  /** `id@node name`. */
  readonly agent: string
  /** The rule or reason. */
  readonly rule: string
  /** What its own node refused the offer with; absent when this node left it out, or the agent declined. */
  readonly code?: ErrorCode
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
  /** Items that may have begun are done again, though their capability says that they may not be repeated. */
  readonly allowRepeat?: boolean
  /** 1..256 characters. The same one with the same request names the same swarm, until 24 hours after its end. */
  readonly idempotencyKey?: string
}

/** What became of an item. `unknown`: it may not be repeated, and nobody can say whether it was done. */
export type SwarmItemStatus = 'completed' | 'failed' | 'unknown'

/** Where a swarm stands. */
export type SwarmStatus = 'running' | 'completed' | 'failed' | 'partial' | 'canceled' | 'stalled'

/** A line of `swarm run --json` and `swarm watch --json`. */
export type SwarmEvent =
  | {
      readonly type: 'swarm'
      readonly id: string
      readonly agents: readonly string[]
      readonly leftOut: readonly LeftOut[]
    }
  /** One more is left out: it declined, or its node refused the offer. */
  | ({ readonly type: 'left-out' } & LeftOut)
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
      readonly status: SwarmItemStatus
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
  /** Those whose outcome is unknown among them. */
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
  readonly leftOut: readonly LeftOut[]
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
    readonly status: SwarmItemStatus
    readonly result: unknown
    readonly error: ErrorBody | null
    readonly durationMs: number
  }[]
}
