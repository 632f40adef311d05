import { asNodeError } from '../../kit/errors.js'
import type { ErrorBody, NodeError } from '../../kit/errors.js'
import type { LedgerEntry } from '../../ports/ledger.js'
import { sizeOf } from '../../kit/size.js'
import type { SwarmStore, SwarmLease, SwarmRow } from './store.js'

/** Bytes of what an agent says beside its error that the outcome of the whole swarm repeats. */
const MAX_DATA_BYTES = 16 * 1024

/** About how many bytes the result and the error of an item hold. */
export function bytesOf({ row: { result, error } }: SwarmRow): number {
  return sizeOf(result) + sizeOf(error)
}

/** The change with which an item has its outcome. What its agent says beside its error may be too large to be kept together with it. */
export function keptRow(swarmStore: SwarmStore, id: string, row: SwarmRow): { readonly row: SwarmRow; readonly change: LedgerEntry } {
  try {
    return { row, change: swarmStore.settled(id, row) }
  } catch {
    const bare = { ...row, row: { ...row.row, error: bareOf(row.row.error) } }
    return { row: bare, change: swarmStore.settled(id, bare) }
  }
}

/** Why a result cannot be kept; null when it can. */
export function rowFault(
  swarmStore: SwarmStore,
  id: string,
  {
    lease,
    shown,
    result
  }: { readonly lease: SwarmLease; readonly shown: Pick<SwarmRow['row'], 'stage' | 'item' | 'agent' | 'attempt'>; readonly result: unknown }
): NodeError | null {
  try {
    const row = { ...shown, status: 'completed', result, error: null, durationMs: Number.MAX_SAFE_INTEGER } as const
    swarmStore.settled(id, { index: lease.index, order: Number.MAX_SAFE_INTEGER, holder: lease.agent, row })
    return null
  } catch (error) {
    return asNodeError(error)
  }
}

/** An error of an item as the outcome of the whole swarm repeats it. */
export function repeatedError(error: ErrorBody | null): ErrorBody | null {
  return sizeOf(error?.data) > MAX_DATA_BYTES ? bareOf(error) : error
}

function bareOf(error: ErrorBody | null): ErrorBody | null {
  if (error === null) return null
  const { data: _data, ...bare } = error
  return bare
}
