import { backoffMs } from '../../kit/backoff.js'
import type { NodeId } from '../../kit/ids.js'

/** Milliseconds before the first refresh while a member is missing; it grows by {@link GROWTH} with each. */
export const FAST_FIRST_MS = 100
/** Longest wait between refreshes, and between dials in the first minute, while a member is missing. */
export const FAST_MAX_MS = 5000
/** Growth factor of waits. */
export const GROWTH = 1.6
/** Least and most wait between refreshes while all is well, milliseconds. */
export const SLOW_MS = { public: [60_000, 120_000], private: [10_000, 30_000], local: [10_000, 30_000] } as const
/** Wait before a lost member is dialled again for the first time, milliseconds. */
export const DIAL_FIRST_MS = 250
/** Members dialled at once. */
export const MAX_DIALS = 4
/**
 * A member that joins dials the others: they dial it after this time, in milliseconds, up to twice as long by chance.
 * Else all nodes of a large mesh look for it at once, and none gets a link soon.
 */
export const AWAIT_MS = 3000

/** Dials of the first minute: 7 growing waits, then 5 s each. */
const FIRST_MINUTE_DIALS = 17
/** Waits of later dials: 15 s for five minutes, then 30 s for as long as it is away. */
const SECOND_DIAL_MS = 15_000
const SECOND_DIALS = FIRST_MINUTE_DIALS + 20
const LAST_DIAL_MS = 30_000
/** Share by which chance may lengthen a wait, so that nodes that lost each other together do not dial in step. */
const JITTER = 0.1

/** Input of the keeper. Times are of one clock, best a monotonic one. */
export interface KeeperState {
  readonly now: number
  readonly network: keyof typeof SLOW_MS
  /** Wanted members without a link. */
  readonly missing: number
  readonly connected: number
  /** When discovery was last asked (the first look-up counts); null for never. */
  readonly lastRefreshAt: number | null
  /** Refreshes since a member went missing; 0 when none is. */
  readonly attempt: number
  /** 0..1, drawn once for each refresh; places the slow wait in its range. Default 0.5. */
  readonly chance?: number
}

/**
 * The time of the next refresh of discovery. While a wanted member is missing or there is no peer, it is after 100 ms,
 * growing by 1.6 up to 5 s. Else it is every 60..120 s (public) or 10..30 s (private, local). After a refresh, ask
 * again with `lastRefreshAt: now` and the next `attempt`; `nextAt` is the latest time to ask.
 */
export function keeperPlan(state: KeeperState): { readonly refreshNow: boolean; readonly nextAt: number } {
  const { now, lastRefreshAt, attempt } = state
  const dueAt = lastRefreshAt === null ? now : lastRefreshAt + refreshWait(state, attempt)
  return now >= dueAt
    ? { refreshNow: true, nextAt: now + refreshWait(state, attempt + 1) }
    : { refreshNow: false, nextAt: dueAt }
}

function refreshWait({ missing, connected, network, chance = 0.5 }: KeeperState, attempt: number): number {
  if (missing > 0 || connected === 0) return grown(FAST_FIRST_MS, attempt)
  const [least, most] = SLOW_MS[network]
  return least + (most - least) * within(chance)
}

/** A member that should be linked and is not. */
export interface MissingMember {
  readonly nodeId: NodeId
  /** Dials that failed since it was lost. */
  readonly attempts: number
  /** When it was last dialled, or lost; null: dial at once. */
  readonly lastTriedAt: number | null
  /** It joined just now, and dials by itself until then. Default: it may be dialled. */
  readonly awaitedUntil?: number
}

/** Further limits of dialling. */
export interface DialOptions {
  /** Dials under way; they count against the four. Default 0. */
  readonly dialing?: number
  /** 0..1; lengthens waits by up to a tenth. Default 0. */
  readonly chance?: number
}

/**
 * The members to dial now: due ones, fewest attempts first, at most four at once. Waits are 0.25 s, growing by 1.6 up
 * to 5 s in the first minute, then 15 s. They are 30 s for members away for more than about six minutes.
 */
export function dialPlan(missing: readonly MissingMember[], now: number, options: DialOptions = {}): NodeId[] {
  const { dialing = 0, chance = 0 } = options
  return missing
    .filter((one) => now >= dialDueAt(one, chance))
    .sort((a, b) => a.attempts - b.attempts || dialDueAt(a, 0) - dialDueAt(b, 0))
    .slice(0, Math.max(0, MAX_DIALS - dialing))
    .map((one) => one.nodeId)
}

/** The latest time of the next {@link dialPlan}; null when no member is missing. */
export function nextDialAt(missing: readonly MissingMember[], chance = 0): number | null {
  return missing.length === 0 ? null : Math.min(...missing.map((one) => dialDueAt(one, chance)))
}

/** When a missing member's wait is over; in the past for one that was never tried. */
function dialDueAt({ attempts, lastTriedAt, awaitedUntil }: MissingMember, chance: number): number {
  if (lastTriedAt === null) return awaitedUntil ?? Number.NEGATIVE_INFINITY
  return lastTriedAt + dialWait(attempts) * (1 + JITTER * within(chance))
}

function dialWait(attempts: number): number {
  if (attempts < FIRST_MINUTE_DIALS) return grown(DIAL_FIRST_MS, attempts)
  return attempts < SECOND_DIALS ? SECOND_DIAL_MS : LAST_DIAL_MS
}

function grown(firstMs: number, attempt: number): number {
  return Math.round(backoffMs({ baseMs: firstMs, maxMs: FAST_MAX_MS, factor: GROWTH }, attempt))
}

function within(chance: number): number {
  return Math.min(1, Math.max(0, chance))
}
