import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { StageStatus } from '../domain/swarm/graph.js'
import type { Plan } from '../domain/swarm/plan.js'

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
  /** What it is left out of, where a swarm looks for several. */
  readonly capability?: string
}

/** What `swarm run` asks. */
export interface SwarmRequest {
  readonly goal: string
  /** What agents are asked for; of a pipeline the first stage, of a plan the first sub-task. */
  readonly capability: string
  readonly strategy: SwarmStrategy
  /** For `map`: 1..10,000 items. */
  readonly items?: readonly SwarmItemInput[]
  /** The input of everyone, of the first stage, or `{input}` in a plan; default `{}`. Not for `map`. */
  readonly input?: unknown
  /** For `pipeline`: what its stages ask for, in their order; 1..64. */
  readonly stages?: readonly string[]
  /** For `race` and `vote`: how many agents answer. Default: all that may, at most 64. */
  readonly answers?: number
  /** For `vote`: a capability that decides in the place of the majority. */
  readonly judge?: string
  /** For `plan`. */
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

/** Which time of a loop this is. */
export interface SwarmRound {
  /** From 1. */
  readonly number: number
  /** What the check said of the round before, at most 64 KiB; '' in the first. */
  readonly check: string
  /** Id of the swarm of the first round; absent in it. */
  readonly first?: string
}

/** How the work of a swarm is cut and put together. */
export type SwarmStrategy = 'each' | 'map' | 'race' | 'vote' | 'pipeline' | 'plan'

/**
 * What became of an item. `unknown`: it may not be repeated, and nobody can say whether it was done. `skipped`: it was not
 * to be done. `canceled`: nobody needed it any more.
 */
export type SwarmItemStatus = 'completed' | 'failed' | 'unknown' | 'skipped' | 'canceled'

/** A sub-task of a swarm, as it was launched. */
export interface SwarmStage {
  readonly id: string
  readonly capability: string
  readonly labels: readonly string[]
  /** How many items it has. */
  readonly items: number
  readonly needs: readonly string[]
}

/** A sub-task of a swarm, as it stands. */
export interface SwarmStageInfo extends SwarmStage {
  readonly status: StageStatus
  /** Why it was skipped or failed; '' else. */
  readonly reason: string
}

/** Where a swarm stands. */
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
  /** Where a sub-task stands changed; not told of the one of `each` and `map`. */
  | { readonly type: 'stage'; readonly stage: string; readonly status: StageStatus; readonly reason: string }
  /** One more is left out: it declined, or its node refused the offer. */
  | ({ readonly type: 'left-out' } & LeftOut)
  | { readonly type: 'lease'; readonly stage?: string; readonly item: string; readonly agent: string; readonly attempt: number }
  /** Its node says that the lease waits for a person there (`approval`), or that the work goes on (null). */
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
   * It has nobody who could do what waits, or no majority of its participants (`stalled`; `reason` tells which, when it is the
   * second), or somebody again (`running`). What nobody can do for long has failed.
   */
  | { readonly type: 'status'; readonly status: 'running' | 'stalled'; readonly reason?: string }
  /** Another participant coordinates it; null: nobody does; `isHere`: this node. Only it tells of leases. Told only of swarms that have several. */
  | { readonly type: 'coordinator'; readonly coordinator: string | null; readonly epoch: number; readonly isHere?: true }
  | { readonly type: 'gap'; readonly lost: number }
  | {
      readonly type: 'done'
      readonly id: string
      readonly status: Exclude<SwarmStatus, 'running' | 'stalled'>
      readonly counts: SwarmCounts
      readonly durationMs: number
      readonly error: ErrorBody | null
      /** What its results make together; absent where they stand for themselves, or there are none. */
      readonly result?: unknown
    }

/** Items of a swarm by fate. */
export interface SwarmCounts {
  readonly total: number
  readonly completed: number
  /** Those whose outcome is unknown among them. */
  readonly failed: number
  /** Those that were skipped or canceled; absent for none. */
  readonly skipped?: number
  /** Of how many of the failed ones nobody knows whether they were done; absent for none. */
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
  /** Of a swarm that several nodes can coordinate: who does (null: nobody, or it has ended), in which epoch, and who could. Names of nodes. */
  readonly coordination?: { readonly coordinator: string | null; readonly epoch: number; readonly participants: readonly string[] }
  /**
   * Somebody at this node asked to cancel it, and nobody has done so yet: whoever coordinates it will, or, while nobody does, once
   * a majority of its participants can reach each other; at its deadline it ends anyway. Absent else.
   */
  readonly willBeCanceled?: true
  readonly createdAt: string
  /** What is not done by then is given up. */
  readonly deadlineAt: string
  readonly durationMs: number
  /** Why it ended as it did; null while it runs, or when all went well. */
  readonly error: ErrorBody | null
}

/** `swarm results`. */
export interface SwarmResults {
  readonly id: string
  readonly status: SwarmStatus
  /** What the results make together; absent where they stand for themselves, and until there is one. */
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

/** What `swarm run --dry-run` shows: nothing of it has begun. */
export interface SwarmPreview {
  readonly stages: readonly (SwarmStage & {
    /** `id@node name` of those that would be offered a part. */
    readonly agents: readonly string[]
    readonly leftOut: readonly LeftOut[]
    /** Is every item for one certain agent? */
    readonly isPinned: boolean
  })[]
  /** Why it would not be launched; null when it would. */
  readonly error: ErrorBody | null
}
