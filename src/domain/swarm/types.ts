import type { ErrorBody } from '../../kit/errors.js'

/** Spec of a swarm. Times and spans in milliseconds, of one monotonic clock. */
export interface SwarmParts {
  readonly id: string
  /** Up to 10,000. `pinnedTo` is the address of the only agent that may do the item. */
  readonly items: readonly ItemSpec[]
  /** Leases at once; at least 1. */
  readonly maxParallel: number
  /** How often a failed run of an item is tried again. */
  readonly retries: number
  readonly deadlineAt: number
  /** A lease without a heartbeat for this long goes back. */
  readonly leaseMs: number
  /** Number before the first lease: other coordinators use other numbers. Default 0. */
  readonly numberedFrom?: number
}

/** One item as a swarm is made of it. */
export interface ItemSpec {
  readonly name: string
  /** Address of the only agent that may do it. */
  readonly pinnedTo?: string
  /** Index of the need of the swarm that its agent must meet. Default 0. */
  readonly need?: number
  /** It waits for `open`. Default false. */
  readonly isBlocked?: boolean
  /** Of items of one group no agent does two. */
  readonly group?: number
}

/** Inputs of a swarm. */
export type SwarmInput =
  /** An agent joins, anew or again, with its number of slots. */
  | ({ readonly type: 'accepted' } & Recruit)
  /** Several join at once: work is shared out only when all of them are in. */
  | { readonly type: 'recruited'; readonly agents: readonly Recruit[] }
  /**
   * An agent is out for good: it declined, was revoked or removed. `error` ends the items pinned to it (default
   * PEER_OFFLINE). With `need` it is out for items of that need alone.
   */
  | {
      readonly type: 'left'
      readonly agent: string
      readonly reason: string
      readonly error?: ErrorBody
      readonly need?: number
    }
  /** Items that were blocked may be given out now. */
  | ({ readonly type: 'open' } & Range)
  /** Items in the range without an outcome get this one: they are not needed. */
  | ({ readonly type: 'drop'; readonly status: 'skipped' | 'canceled'; readonly reason: string } & Range)
  /** The link to these agents is lost; they may come back with `accepted`. */
  | { readonly type: 'gone'; readonly agents: readonly string[]; readonly reason: string }
  /** A worker holds these leases still. The caller has checked that it is the one they were given to. */
  | { readonly type: 'heartbeat'; readonly leases: readonly { readonly index: number; readonly attempt: number }[] }
  | {
      readonly type: 'result'
      readonly index: number
      readonly attempt: number
      readonly agent: string
      readonly outcome: RunOutcome
    }
  /** The worker had no room for the lease. */
  | { readonly type: 'busy'; readonly index: number; readonly attempt: number; readonly agent: string }
  | { readonly type: 'tick' }
  | { readonly type: 'cancel' }

/** Items next to each other. */
export interface Range {
  readonly from: number
  readonly count: number
}

/** An agent that takes part. */
export interface Recruit {
  readonly agent: string
  /** Runs it takes at once. */
  readonly slots: number
  /** May its begun work go to another agent after an unknown outcome? Default true. */
  readonly isRepeatable?: boolean
  /** Index of the need that it meets. Default 0. */
  readonly need?: number
}

/** How one run of an item ended. */
export type RunOutcome =
  | { readonly ok: true; readonly result: unknown }
  /**
   * `isRefusal`: the agent may not do the item, so it is not asked again; another may do it. `isUnknown`: it may have
   * been done; an item that may not be repeated ends so. `isUnsent`: the lease certainly never left the coordinator.
   */
  | {
      readonly ok: false
      readonly error: ErrorBody
      readonly isRefusal?: boolean
      readonly isUnknown?: boolean
      readonly isUnsent?: boolean
    }

/** Effects for the owner of a swarm, in this order. */
export type SwarmEffect =
  /** Send the item to the agent. */
  | { readonly type: 'lease'; readonly index: number; readonly agent: string; readonly attempt: number }
  /** The lease is void: tell the worker to stop, if it can be reached. */
  | {
      readonly type: 'release'
      readonly index: number
      readonly agent: string
      readonly attempt: number
      readonly reason: string
    }
  /**
   * The run failed and the item is tried again, in `afterMs` milliseconds at the earliest. The worker has finished;
   * nothing to tell it.
   */
  | {
      readonly type: 'retry'
      readonly index: number
      readonly agent: string
      readonly attempt: number
      readonly error: ErrorBody
      readonly afterMs: number
    }
  /** The one accepted outcome of an item. `agent` is '' and `attempt` 0 for an item that was never leased. */
  | {
      readonly type: 'item'
      readonly index: number
      readonly agent: string
      readonly attempt: number
      readonly status: ItemOutcome
      readonly result: unknown
      readonly error: ErrorBody | null
      /** From the last lease to now; null when it is not known when that was given. */
      readonly durationMs: number | null
    }
  | { readonly type: 'done'; readonly status: FinalSwarmStatus; readonly counts: ItemCounts }

/** How a swarm ends. */
export type FinalSwarmStatus = 'completed' | 'failed' | 'partial' | 'canceled'

/**
 * The end of an item. `unknown`: it may not be repeated, and may have been done. `skipped`: its sub-task had a false
 * condition or lacked its needs. `canceled`: it was no longer needed.
 */
export type ItemOutcome = 'completed' | 'failed' | 'unknown' | 'skipped' | 'canceled'

/** Items by fate. */
export interface ItemCounts {
  readonly total: number
  readonly completed: number
  /** Includes items with an unknown outcome. */
  readonly failed: number
  /** Skipped or canceled items; absent for none. */
  readonly skipped?: number
}

/** One element of the swarm's input. */
export interface ItemState {
  readonly name: string
  readonly pinnedTo: string | null
  readonly need: number
  /** Its siblings' indexes, when no agent may do two of them; null without such a group. */
  readonly siblings: readonly number[] | null
  status: 'blocked' | 'waiting' | 'leased' | ItemOutcome
  /** Number of the last lease, 0 before the first. */
  attempt: number
  failures: number
  /** The agent of the current or last lease; '' before the first. */
  agent: string
  leasedAt: number
  /** When that lease was given, also by a launcher before this one; null when that is not known. */
  givenAt: number | null
  /** May the run of its last lease be repeated? */
  isRepeatable: boolean
  /** Agents that had it without a result, for another to be preferred. */
  readonly tried: string[]
  /** The agents that may not do it. */
  readonly barred: string[]
  /** Times that it was taken from an agent for being slow. */
  takeovers: number
}

/** A node whose agents take part. Credit is given to nodes, since a node can invent agents. */
export interface HostState {
  /** Leases of items that others could do, its agents together: few at first, one more with each result. */
  allowed: number
  inUse: number
  /** Has it brought a result since it was last found slow? */
  isProven: boolean
  /**
   * Until then it gets no work that others could do, while others are there: it missed heartbeats and has sent nothing
   * since.
   */
  silentUntil: number
}

/** One participant. */
export interface SwarmAgentState {
  readonly address: string
  readonly host: HostState
  /** False: its link is lost or it left. */
  isPresent: boolean
  /** The needs that it meets, and whether such runs of it may be repeated. */
  readonly needs: Map<number, boolean>
  slots: number
  inUse: number
  /** Counts leases of the whole swarm: the lower, the longer ago it got one. */
  lastLease: number
  /** It gets no lease before this. */
  backoffUntil: number
  /** Times it was busy in a row. */
  refusals: number
  /** Indexes of waiting items that only it may do. */
  readonly pinned: Set<number>
}

/** A swarm. Owned by its caller: stepSwarm changes it in place. */
export interface SwarmState {
  readonly createdAt: number
  readonly parts: Omit<SwarmParts, 'items'>
  readonly items: readonly ItemState[]
  readonly agents: Map<string, SwarmAgentState>
  /** By the node's part of the agents' addresses. */
  readonly hosts: Map<string, HostState>
  /** Live leases by item, the one whose heartbeat is oldest first, with the time of that heartbeat. */
  readonly leases: Map<number, number>
  /** Items that came back, oldest first, with the time from which any agent will do. They go before fresh ones. */
  readonly returned: Map<number, number>
  /**
   * Items that came back and are not to be leased before a time, with that time; then they are among those that came
   * back.
   */
  readonly resting: Map<number, number>
  /** By need: fresh items that any agent may do, in order; those before `next` are leased or done. */
  readonly fresh: Map<number, { readonly items: number[]; next: number }>
  /** Absent agents that items are pinned to, by the time they went, oldest first. */
  readonly absent: Map<string, number>
  /** Items without a capable agent, with the start of that state. */
  readonly lacking: Map<string, number>
  leaseCount: number
  /** Milliseconds that completed items took, together. */
  workedMs: number
  completed: number
  failed: number
  skipped: number
  status: 'running' | FinalSwarmStatus
}
