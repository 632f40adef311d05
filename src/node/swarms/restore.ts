import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { itemSpecs } from '../../domain/swarm/expand.js'
import { leasesFrom } from '../../domain/swarm/coordination.js'
import type { LeaseMark } from '../../domain/swarm/handover.js'
import { createSwarm, restoreSwarm, type KnownItem, type SwarmState } from '../../domain/swarm/machine.js'
import type { SwarmLease, SwarmRow } from './store.js'
import type { SwarmLaunch } from './create.js'
import type { Leadership } from './consensus/leadership.js'

/** A lease that was given earlier. */
export interface PastLease extends SwarmLease {
  /** The node that gave it, when that was another one: known from the item's mark, not from this node's ledger. */
  readonly givenBy?: NodeId
}

/** The ledger's data of a resumed swarm. */
export interface SwarmPast {
  readonly leases: readonly PastLease[]
  readonly rows: readonly SwarmRow[]
}

/** The lease machine of a swarm, new or resumed. */
export function restoreState(
  {
    head,
    items,
    past,
    term
  }: Pick<SwarmLaunch, 'head' | 'items' | 'past'> & { readonly term?: Pick<Leadership, 'epoch'> | undefined },
  clock: Clock,
  leaseMs: number
): SwarmState {
  const { id, request, deadline } = head
  const now = clock.monotonic()
  // The machine's clock must never go back, so it is not the wall clock.
  const atOf = (time: number): number => now + (time - clock.now())
  const parts = {
    id,
    items: itemSpecs(head.stages, items),
    maxParallel: request.maxParallel ?? Number.MAX_SAFE_INTEGER,
    retries: request.retries ?? 2,
    deadlineAt: atOf(deadline),
    leaseMs,
    ...(term === undefined ? {} : { numberedFrom: leasesFrom(term.epoch) })
  }
  const createdAt = Math.min(now, atOf(head.createdAt))
  return past === null
    ? createSwarm(parts, createdAt)
    : restoreSwarm(parts, { createdAt, known: knownOf(past, { atOf, now }) }, now)
}

function knownOf({ leases, rows }: SwarmPast, { atOf, now }: { atOf(time: number): number; now: number }): KnownItem[] {
  const known = ({ leasedAt, rest, givenBy: _givenBy, ...lease }: PastLease): KnownItem => ({
    ...lease,
    status: null,
    ...(leasedAt === undefined ? {} : { leasedAt: atOf(leasedAt) }),
    ...(rest === undefined ? {} : { retryAt: Math.min(atOf(rest.until), now + rest.ms) })
  })
  const byIndex = new Map(leases.map((lease) => [lease.index, known(lease)]))
  const ended = rows.map(({ index, holder, row: { attempt, status } }) => {
    const { failures = 0, isRepeatable = true } = byIndex.get(index) ?? {}
    return { index, agent: holder, attempt, failures, isRepeatable, status }
  })
  const isOpen = new Set(rows.map(({ index }) => index))
  return [...ended, ...[...byIndex.values()].filter(({ index }) => !isOpen.has(index))]
}

/**
 * The leases of a swarm that this node comes to coordinate: the ledger's, if this node gave them last, and by their
 * marks other unrepeatable ones. No other agent gets the latter, even when this node's ledger has lost its own: their
 * agents are queried.
 */
export function leasesBefore(
  kept: readonly SwarmLease[],
  marks: ReadonlyMap<number, LeaseMark>,
  self: NodeId
): PastLease[] {
  const own = kept.filter(({ index }) => (marks.get(index)?.node ?? self) === self)
  const isOwn = new Set(own.map(({ index }) => index))
  const strange = [...marks].flatMap(([index, { node, agent, attempt, failures }]) =>
    isOwn.has(index) ? [] : [{ index, agent, attempt, failures, isRepeatable: false, givenBy: node }]
  )
  return [...own, ...strange]
}
