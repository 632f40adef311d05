import { backoffMs } from '../../kit/backoff.js'
import type { ErrorCode } from '../../kit/errors.js'
import { doubt, finishItem } from './finish.js'
import type { SwarmAgentState, ItemState, SwarmEffect, SwarmState } from './types.js'

/** How long an agent that was busy waits for its next lease, by how often it was in a row. */
const BACKOFF = { baseMs: 250, maxMs: 5000 }

/** A lease of work that may not be repeated lives this many times as long: a broken link has healed by then. */
const DOUBT_LEASES = 2

/** A lease that is live now, with its two ends. */
export interface LiveLease {
  readonly index: number
  readonly item: ItemState
  readonly agent: SwarmAgentState | undefined
}

/** The live lease of an item, if the attempt (and the agent, when given) is that of the lease. */
export function liveLease(
  state: SwarmState,
  lease: { index: number; attempt: number; agent?: string }
): LiveLease | null {
  const item = state.items[lease.index]
  if (item === undefined || item.status !== 'leased' || item.attempt !== lease.attempt) return null
  if (lease.agent !== undefined && lease.agent !== item.agent) return null
  return { index: lease.index, item, agent: state.agents.get(item.agent) }
}

/** Notes a heartbeat: the lease counts from now. */
export function renew(state: SwarmState, { index, agent }: LiveLease, now: number): void {
  // Removed and set again, so that the table stays in the order of the last heartbeat.
  state.leases.delete(index)
  state.leases.set(index, now)
  if (agent !== undefined) markAlive(agent)
}

/** Notes a sign of life of an agent. */
export function markAlive(agent: SwarmAgentState): void {
  agent.refusals = 0
  agent.host.silentUntil = 0
}

/** Ends a lease: its slot and its item are free. The caller decides about the item. */
export function endLease(state: SwarmState, { index, item, agent }: LiveLease): void {
  state.leases.delete(index)
  item.status = 'waiting'
  if (agent === undefined) return
  agent.inUse--
  agent.host.inUse--
}

/** Puts an item whose lease ended back among the waiting ones. `afterMs`: it is not leased before that. */
export function putBack(
  state: SwarmState,
  { index, item }: Pick<LiveLease, 'index' | 'item'>,
  { now, afterMs = 0 }: Back
): void {
  if (afterMs > 0) state.resting.set(index, now + afterMs)
  else if (item.pinnedTo !== null) putBackPinned(state, index, { pinnedTo: item.pinnedTo, now })
  else state.returned.set(index, now + state.parts.leaseMs)
}

/** When an item comes back, and how long it rests then, in milliseconds. */
interface Back {
  readonly now: number
  readonly afterMs?: number
}

function putBackPinned(state: SwarmState, index: number, { pinnedTo, now }: { pinnedTo: string; now: number }): void {
  const agent = state.agents.get(pinnedTo)
  agent?.pinned.add(index)
  // Its agent may have gone while it rested: from now on it is missed.
  if (agent?.isPresent === false && !state.absent.has(pinnedTo)) state.absent.set(pinnedTo, now)
}

/** Lets items that have rested long enough be leased again. */
export function wake(state: SwarmState, now: number): void {
  for (const [index, from] of state.resting) {
    const item = state.items[index]
    if (item === undefined || now < from) continue
    state.resting.delete(index)
    putBack(state, { index, item }, { now })
  }
}

/** When the next item has rested long enough; Infinity when none rests. */
export function nextAwake({ resting }: SwarmState): number {
  let at = Number.POSITIVE_INFINITY
  for (const from of resting.values()) at = Math.min(at, from)
  return at
}

/** Voids a lease and puts the item back; this never counts as a retry. */
export function release(
  state: SwarmState,
  lease: LiveLease,
  { reason, now, effects }: { reason: string; now: number; effects: SwarmEffect[] }
): void {
  effects.push({ type: 'release', index: lease.index, agent: lease.item.agent, attempt: lease.item.attempt, reason })
  endLease(state, lease)
  putBack(state, lease, { now })
}

/** How long the lease of an item may be without a heartbeat, in milliseconds. */
export function patience({ parts: { leaseMs } }: SwarmState, item: ItemState | undefined): number {
  return item?.isRepeatable === false ? DOUBT_LEASES * leaseMs : leaseMs
}

/** Voids a lease that may have begun. A repeatable item goes back; any other one has an unknown outcome. */
export function lose(
  state: SwarmState,
  lease: LiveLease,
  { code = 'DELIVERY_FAILED', ...why }: { reason: string; code?: ErrorCode; now: number; effects: SwarmEffect[] }
): void {
  release(state, lease, why)
  if (!lease.item.isRepeatable) finishItem(state, lease.index, { ...why, outcome: doubt(why.reason, code) })
}

/** Remembers that an agent had an item without a result. */
export function noteTried(item: ItemState): void {
  if (!item.tried.includes(item.agent)) item.tried.push(item.agent)
}

/** Lets an agent that has no room rest before its next lease, for as long as it asked for at least. */
export function backOff(agent: SwarmAgentState | undefined, now: number, askedMs = 0): void {
  if (agent === undefined) return
  agent.backoffUntil = now + Math.max(askedMs, backoffMs(BACKOFF, agent.refusals))
  agent.refusals++
}

/** The live leases of some agents. Looks at all live leases, at most `maxParallel`. */
export function leasesOf(state: SwarmState, agents: ReadonlySet<string>): LiveLease[] {
  const found: LiveLease[] = []
  for (const index of state.leases.keys()) {
    const item = state.items[index]
    if (item !== undefined && agents.has(item.agent)) found.push({ index, item, agent: state.agents.get(item.agent) })
  }
  return found
}
