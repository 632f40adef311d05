import type { Clock } from '../kit/clock.js'
import { itemSpecs } from '../domain/swarm/expand.js'
import { createSwarm, restoreSwarm } from '../domain/swarm/machine.js'
import type { KnownItem, SwarmState } from '../domain/swarm/machine.js'
import type { SwarmHead, SwarmItem, SwarmLease, SwarmRow } from './swarm-book.js'

/** What the ledger has of a swarm that goes on. */
export interface SwarmPast {
  readonly leases: readonly SwarmLease[]
  readonly rows: readonly SwarmRow[]
}

/** The lease machine of a swarm, new or going on. */
export function machineOf(
  { head, items, past }: { readonly head: SwarmHead; readonly items: readonly SwarmItem[]; readonly past: SwarmPast | null },
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
    leaseMs
  }
  const createdAt = Math.min(now, atOf(head.createdAt))
  return past === null ? createSwarm(parts, createdAt) : restoreSwarm(parts, { createdAt, known: knownOf(past, atOf) }, now)
}

function knownOf({ leases, rows }: SwarmPast, atOf: (time: number) => number): KnownItem[] {
  const known = ({ leasedAt, ...lease }: SwarmLease): KnownItem => ({
    ...lease,
    status: null,
    ...(leasedAt === undefined ? {} : { leasedAt: atOf(leasedAt) })
  })
  const byIndex = new Map(leases.map((lease) => [lease.index, known(lease)]))
  const ended = rows.map(({ index, holder, row: { attempt, status } }) => {
    const { failures = 0, isRepeatable = true } = byIndex.get(index) ?? {}
    return { index, agent: holder, attempt, failures, isRepeatable, status }
  })
  const isOpen = new Set(rows.map(({ index }) => index))
  return [...ended, ...[...byIndex.values()].filter(({ index }) => !isOpen.has(index))]
}
