import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { StageStatus } from '../domain/swarm/graph.js'
import type { Plan } from '../domain/swarm/plan.js'
import type { NodeRef } from './node-api.js'

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
  readonly rule: string
  /** The code with which its node refused the offer; absent when this node left it out, or the agent declined. */
  readonly code?: ErrorCode
  /** The capability that it is excluded from, where a swarm needs several. */
  readonly capability?: string
}

/** Parameters of `swarm run`. */
export interface SwarmRequest {
  readonly goal: string
  /** The capability of the agents; of a pipeline the first stage, of a plan the first sub-task. */
  readonly capability: string
  readonly strategy: SwarmStrategy
  /** For `map`: 1..10,000 items. */
  readonly items?: readonly SwarmItemInput[]
  /** The input of everyone, of the first stage, or `{input}` in a plan; default `{}`. Not for `map`. */
  readonly input?: unknown
  /** For `pipeline`: the capabilities of its stages, in their order; 1..64. */
  readonly stages?: readonly string[]
  /** For `race` and `vote`: the number of answers. Default: one of each eligible agent, at most 64. */
  readonly answers?: number
  /** For `vote`: a capability that decides in the place of the majority. */
  readonly judge?: string
  readonly plan?: Plan
  /** Makes one of the results: `concat`, `merge`, `count`, `first`, or a capability that is asked to. */
  readonly reduce?: string
  /** Labels that the nodes of its agents must carry; not for a plan, whose sub-tasks name their own. */
  readonly labels?: readonly string[]
  readonly maxParallel?: number
  /** Failed runs of an item that are tried again. Default 2. */
  readonly retries?: number
  /** Milliseconds. Default 600,000. */
  readonly deadlineMs?: number
  readonly justification?: string
  /** Items that may have begun are done again, though their capability says that they may not be repeated. */
  readonly allowRepeat?: boolean
  /** May another node coordinate it when this one stays away? Default true; it takes at least three nodes. */
  readonly takeover?: boolean
  readonly round?: SwarmRound
  /** 1..256 characters. The same one with the same request names the same swarm, until 24 hours after its end. */
  readonly idempotencyKey?: string
}

/** Parameters of `swarm retry`. Without a flag the failed items are tried again. */
export interface SwarmRetry {
  /** Of an ended swarm over items, at its launcher. */
  readonly id: string
  readonly failed?: boolean
  /** Items with an unknown outcome: a part of their work may be done. */
  readonly unknown?: boolean
}

/** Which time of a loop this is. */
export interface SwarmRound {
  /** From 1. */
  readonly number: number
  /** Output of the check in the round before, at most 64 KiB; '' in the first. */
  readonly check: string
  /** Id of the swarm of the first round; absent in it. */
  readonly first?: string
}

/** How the work of a swarm is cut and put together. */
export type SwarmStrategy = 'each' | 'map' | 'race' | 'vote' | 'pipeline' | 'plan'

/**
 * The end of an item. `unknown`: it may not be repeated, and it is unknown whether it was done. `skipped`: its sub-task
 * had a false condition or lacked its needs. `canceled`: its result was no longer needed.
 */
export type SwarmItemStatus = 'completed' | 'failed' | 'unknown' | 'skipped' | 'canceled'

/** A sub-task of a swarm, as it was launched. */
export interface SwarmStage {
  readonly id: string
  readonly capability: string
  readonly labels: readonly string[]
  readonly items: number
  readonly needs: readonly string[]
}

/** A sub-task of a swarm with its state. */
export interface SwarmStageInfo extends SwarmStage {
  readonly status: StageStatus
  /** Why it was skipped or failed; '' else. */
  readonly reason: string
}

/** State of a swarm. */
export type SwarmStatus = 'running' | 'completed' | 'failed' | 'partial' | 'canceled' | 'stalled'

/** A line of `swarm run --json` and `swarm watch --json`. */
export type SwarmEvent =
  | {
      readonly type: 'swarm'
      readonly id: string
      readonly agents: readonly string[]
      readonly leftOut: readonly LeftOut[]
      readonly stages: readonly SwarmStage[]
    }
  /** A sub-task changed its state; not emitted for the one of `each` and `map`. */
  | { readonly type: 'stage'; readonly stage: string; readonly status: StageStatus; readonly reason: string }
  /** One more is left out: it declined, or its node refused the offer. */
  | ({ readonly type: 'left-out' } & LeftOut)
  | {
      readonly type: 'lease'
      readonly stage?: string
      readonly item: string
      readonly agent: string
      readonly attempt: number
    }
  /** Its node reports that the lease waits for a person there (`approval`), or that the work continues (null). */
  | {
      readonly type: 'waiting'
      readonly stage?: string
      readonly item: string
      readonly agent: string
      readonly attempt: number
      readonly waitingFor: 'approval' | null
    }
  | {
      readonly type: 'released'
      readonly stage?: string
      readonly item: string
      readonly agent: string
      readonly attempt: number
      readonly reason: string
    }
  | {
      readonly type: 'item'
      /** Its sub-task, where a swarm has several. */
      readonly stage?: string
      readonly item: string
      readonly agent: string
      readonly attempt: number
      readonly status: SwarmItemStatus
      readonly result: unknown
      readonly error: ErrorBody | null
    }
  /**
   * `stalled`: no eligible agent for the remaining items, or no majority of participants (`reason` tells the second).
   * `running`: it resumed. An item that stalls for too long fails.
   */
  | { readonly type: 'status'; readonly status: 'running' | 'stalled'; readonly reason?: string }
  /**
   * Another participant coordinates it; null: none does. `isHere`: this node, which alone emits lease events. Only for
   * swarms with several participants.
   */
  | {
      readonly type: 'coordinator'
      readonly coordinator: string | null
      readonly epoch: number
      readonly isHere?: true
    }
  | { readonly type: 'gap'; readonly lost: number }
  | {
      readonly type: 'done'
      readonly id: string
      readonly status: Exclude<SwarmStatus, 'running' | 'stalled'>
      readonly counts: SwarmCounts
      readonly durationMs: number
      readonly error: ErrorBody | null
      /** The reduced result; absent without a reduction or without results. */
      readonly result?: unknown
    }

/** Items of a swarm by fate. */
export interface SwarmCounts {
  readonly total: number
  readonly completed: number
  /** Includes items with an unknown outcome. */
  readonly failed: number
  /** Skipped or canceled items; absent for none. */
  readonly skipped?: number
  /** Failed items whose outcome is unknown; absent for none. */
  readonly unknown?: number
}

/** One row of `swarm ls`, and `swarm show`. */
export interface SwarmInfo {
  readonly id: string
  readonly goal: string
  readonly capability: string
  readonly strategy: SwarmStrategy
  readonly stages: readonly SwarmStageInfo[]
  /** Of a loop: which time it is, and the swarm of the first; absent elsewhere. */
  readonly round?: { readonly number: number; readonly first: string }
  readonly status: SwarmStatus
  /** `id@node name` of agents that hold or held a lease. */
  readonly participants: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly counts: SwarmCounts
  /** Leases that are worked on; null: not known here, where it is not coordinated. */
  readonly running: number | null
  /** Leases that wait for a person of their node; null: the same. */
  readonly waitingForApproval: number | null
  /**
   * For a swarm with several participants, by names of nodes: its coordinator (null: none, or it has ended), the epoch
   * and the participants.
   */
  readonly coordination?: {
    readonly coordinator: string | null
    readonly epoch: number
    readonly participants: readonly string[]
  }
  /**
   * This node requested a cancellation that is not yet done. The coordinator does it; without one, a majority of
   * participants does once they connect. At its deadline the swarm ends anyway. Absent else.
   */
  readonly willBeCanceled?: true
  /**
   * The author of its cancellation. The coordinator records the node that the request came from. `caller`: kind and
   * name of the API's caller there, as that node knows it; null elsewhere when another node coordinated the swarm.
   * Absent: not canceled, or canceled by an earlier build or a restore.
   */
  readonly canceledBy?: { readonly node: NodeRef; readonly caller: string | null; readonly at: string }
  readonly createdAt: string
  /** Unfinished items are given up then. */
  readonly deadlineAt: string
  readonly durationMs: number
  /** Why it ended as it did; null while it runs, or when all went well. */
  readonly error: ErrorBody | null
}

/** `swarm results`. */
export interface SwarmResults {
  readonly id: string
  readonly status: SwarmStatus
  /** The reduced result; absent without a reduction, and until there is one. */
  readonly result?: unknown
  readonly results: readonly {
    readonly stage?: string
    readonly item: string
    readonly agent: string
    readonly attempt: number
    readonly status: SwarmItemStatus
    readonly result: unknown
    readonly error: ErrorBody | null
    /** From its last lease to its outcome; null when it is not known when that was given. */
    readonly durationMs: number | null
  }[]
}

/** Result of `swarm run --dry-run`: nothing has begun. */
export interface SwarmPreview {
  readonly stages: readonly (SwarmStage & {
    /** `id@node name` of the agents that would get an offer. */
    readonly agents: readonly string[]
    readonly leftOut: readonly LeftOut[]
    /** Is every item for one certain agent? */
    readonly isPinned: boolean
  })[]
  /** Why it would not be launched; null when it would. */
  readonly error: ErrorBody | null
}
