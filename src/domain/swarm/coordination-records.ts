import type { NodeId } from '../../kit/ids.js'
import { COORDINATOR_LEASE_MS } from './coordination.js'
import { MAX_RECORDS } from './coordination-message.js'

/** The outcome that an item is to have: its index, and a hash of its row. */
export interface WantedRecord {
  readonly index: number
  readonly digest: string
}

/** Outcomes that no majority has recorded yet: the confirming nodes, and when each was asked. */
export type Proposals = Map<number, { readonly digest: string; readonly confirmed: Map<NodeId, number> }>

/** Messages for each voter with the records that it has not confirmed recently, in pieces of {@link MAX_RECORDS}. */
export function recordMessages(
  voters: readonly NodeId[],
  proposals: Proposals,
  now: number
): { readonly to: NodeId; readonly items: readonly WantedRecord[] }[] {
  return voters.flatMap((to) => {
    const open = [...proposals].filter(([, { confirmed }]) => !doesCount(confirmed.get(to), now))
    const items = open.map(([index, { digest }]) => ({ index, digest }))
    return Array.from({ length: Math.ceil(items.length / MAX_RECORDS) }, (_, page) => ({
      to,
      items: items.slice(page * MAX_RECORDS, (page + 1) * MAX_RECORDS)
    }))
  })
}

/**
 * Does a confirmation count? Not for longer than a lease: its voter may have lost its disk, and votes again by then.
 */
function doesCount(askedAt: number | undefined, now: number): boolean {
  return askedAt !== undefined && now - askedAt < COORDINATOR_LEASE_MS
}

/** Notes that a voter has outcomes on record. Gives those that a majority has now; they are proposals no more. */
export function confirm(
  proposals: Proposals,
  {
    from,
    items,
    askedAt,
    now,
    majority
  }: { from: NodeId; items: readonly WantedRecord[]; askedAt: number; now: number; majority: number }
): WantedRecord[] {
  return items.filter(({ index, digest }) => {
    const proposal = proposals.get(index)
    if (proposal?.digest !== digest) return false
    proposal.confirmed.set(from, askedAt)
    const counting = [...proposal.confirmed.values()].filter((at) => doesCount(at, now))
    return counting.length >= majority && proposals.delete(index)
  })
}
