import { agentOf, createSwarm } from './create.js'
import { noteTried } from './leases.js'
import { barSiblings } from './schedule.js'
import type { ItemOutcome, SwarmParts, SwarmState } from './types.js'

/** Additional lease spans to wait for the agent of a restored lease; more for work that may not be repeated. */
const RETURN_LEASES = { repeatable: 1, other: 4 } as const

/** The known state of an item that was leased before. */
export interface KnownItem {
  readonly index: number
  /** The agent and number of its last lease; '' and 0 for an item that ended without one. */
  readonly agent: string
  readonly attempt: number
  /** Runs that had failed when it was leased last. */
  readonly failures: number
  readonly isRepeatable: boolean
  /** When the lease was given, on the clock of now; absent or in the future when that is not known. */
  readonly leasedAt?: number
  /**
   * Its last lease has ended without its outcome: the item waits, and is not leased before this, on the clock of now.
   */
  readonly retryAt?: number
  /** Its outcome; null when none is known: its agent may work on it still. */
  readonly status: ItemOutcome | null
}

/**
 * A swarm that continues after its launcher ended. Leases without an outcome are live and keep their numbers; their
 * agents must answer in time. `createdAt`: on the clock of now, may be negative. Other facts about agents are
 * forgotten.
 */
export function restoreSwarm(
  parts: SwarmParts,
  { createdAt, known }: { readonly createdAt: number; readonly known: readonly KnownItem[] },
  now: number
): SwarmState {
  const begun = new Set(known.map(({ index }) => index))
  const state = createSwarm(parts, createdAt)
  for (const queue of state.fresh.values())
    queue.items.splice(0, queue.items.length, ...queue.items.filter((index) => !begun.has(index)))
  for (const index of begun) state.returned.delete(index)
  for (const one of known) restoreItem(state, one, now)
  for (const { address, pinned } of state.agents.values()) {
    if (pinned.size > 0) state.absent.set(address, now + RETURN_LEASES.other * parts.leaseMs)
  }
  return state
}

function restoreItem(state: SwarmState, one: KnownItem, now: number): void {
  const { index, status, leasedAt = Number.POSITIVE_INFINITY, retryAt, ...known } = one
  const item = state.items[index]
  if (item === undefined) return
  Object.assign(item, known)
  if (item.pinnedTo !== null) agentOf(state, item.pinnedTo).pinned.delete(index)
  item.status = status ?? 'leased'
  if (status === 'completed') state.completed++
  else if (status === 'skipped' || status === 'canceled') state.skipped++
  else if (status !== null) state.failed++
  if (status !== null) return
  barSiblings(state, index)
  if (retryAt !== undefined) {
    item.status = 'waiting'
    noteTried(item)
    return void state.resting.set(index, retryAt)
  }
  const agent = agentOf(state, item.agent)
  agent.inUse++
  agent.host.inUse++
  item.leasedAt = now
  item.givenAt = leasedAt <= now ? leasedAt : null
  const span = item.isRepeatable ? RETURN_LEASES.repeatable : RETURN_LEASES.other
  state.leases.set(index, now + span * state.parts.leaseMs)
}
