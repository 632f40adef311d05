import { mayRunAgain } from '../reliable/repeat.js'
import { type LiveLease, noteTried, release } from './leases.js'
import type { SwarmAgentState, ItemState, SwarmEffect, SwarmState } from './types.js'

/** Lease spans before a lease counts as slow, or this part of the swarm's whole time when that is shorter. */
const PATIENT_LEASES = 12
const PATIENT_PART = 0.25
/** Multiple of the average time of an item before a lease counts as slow. */
const FAR_SLOWER = 10

/** A lease to take from one agent, and the one to give its item to. */
interface Takeover {
  readonly lease: LiveLease
  readonly to: SwarmAgentState
}

/**
 * Moves an overdue lease to an agent in `free` of another node that has results since it was last slow itself. The item
 * is released and leased again, so it has one live lease. Each move doubles the time of the next holder. Null when no
 * lease moves.
 */
export function takeOverLease(
  state: SwarmState,
  { free, now, effects }: { free: readonly SwarmAgentState[]; now: number; effects: SwarmEffect[] }
): { readonly index: number; readonly agent: SwarmAgentState } | null {
  const proven = free.filter((agent) => agent.host.isProven)
  const found = proven.length === 0 ? null : overdue(state, proven, now)
  if (found === null) return null
  const { lease, to } = found
  noteTried(lease.item)
  lease.item.takeovers++
  if (lease.agent !== undefined) Object.assign(lease.agent.host, { allowed: 1, isProven: false })
  release(state, lease, { reason: 'others are far faster', now, effects })
  return { index: lease.index, agent: to }
}

function overdue(state: SwarmState, proven: readonly SwarmAgentState[], now: number): Takeover | null {
  for (const index of state.leases.keys()) {
    const item = state.items[index]
    if (item === undefined || !isTakable(item) || now < dueAt(state, item)) continue
    const agent = state.agents.get(item.agent)
    const others = proven.filter(
      (one) => one.host !== agent?.host && one.needs.has(item.need) && !item.barred.includes(one.address)
    )
    const to = others.find((one) => !item.tried.includes(one.address)) ?? others[0]
    if (to !== undefined) return { lease: { index, item, agent }, to }
  }
  return null
}

/** Another may do it, though it has begun. */
function isTakable({ pinnedTo, isRepeatable }: ItemState): boolean {
  return pinnedTo === null && mayRunAgain({ isRepeatable, isUndone: false })
}

function dueAt(state: SwarmState, item: ItemState): number {
  const { leaseMs, deadlineAt } = state.parts
  const patience = Math.min(PATIENT_LEASES * leaseMs, PATIENT_PART * (deadlineAt - state.createdAt))
  const typical = state.workedMs / Math.max(1, state.completed)
  return item.leasedAt + Math.max(patience, FAR_SLOWER * typical) * 2 ** item.takeovers
}

/** The time of the next takeover; Infinity without one. Overdue leases without an eligible replacement are ignored. */
export function nextOverdue(state: SwarmState, now: number): number {
  if (state.completed === 0) return Number.POSITIVE_INFINITY
  let at = Number.POSITIVE_INFINITY
  for (const index of state.leases.keys()) {
    const item = state.items[index]
    if (item === undefined || !isTakable(item)) continue
    const due = dueAt(state, item)
    if (due > now) at = Math.min(at, due)
  }
  return at
}
