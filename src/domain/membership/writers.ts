import type { NodeId } from '../../kit/ids.js'
import type { WritersRecord } from './types.js'

/** Writers of the log: the owner and four more. Few, because every writer makes each append dearer for all. */
export const MAX_WRITERS = 5

/** The new writers record and its changes (core keys, z32). */
export interface WritersChange {
  readonly record: WritersRecord
  readonly addWriters: readonly string[]
  readonly removeWriters: readonly string[]
}

/** One node that may write. */
export type EligibleWriter = WritersRecord['eligible'][number]

/** The state after the admission of a node that may write: it waits at the end of the line. */
export function withWriter(record: WritersRecord, writer: EligibleWriter): WritersChange {
  if (record.eligible.some((one) => one.nodeKey === writer.nodeKey)) return changeTo(record, record.eligible)
  return changeTo(record, [...record.eligible, writer])
}

/** The state after a revocation: the next in line takes the free place. The owner, first in line, always stays. */
export function withoutWriter(record: WritersRecord, nodeKey: NodeId): WritersChange {
  return changeTo(
    record,
    record.eligible.filter((one, place) => place === 0 || one.nodeKey !== nodeKey)
  )
}

/**
 * The record after an eligible node changed its core: it keeps its position in the line. For any other node the record
 * is unchanged.
 */
export function withCore(record: WritersRecord, { nodeKey, coreKey }: EligibleWriter): WritersChange {
  return changeTo(
    record,
    record.eligible.map((one) => (one.nodeKey === nodeKey ? { nodeKey, coreKey } : one))
  )
}

function changeTo(before: WritersRecord, eligible: WritersRecord['eligible']): WritersChange {
  const active = eligible.slice(0, MAX_WRITERS).map((one) => one.coreKey)
  return {
    record: { eligible, active },
    addWriters: active.filter((core) => !before.active.includes(core)),
    removeWriters: before.active.filter((core) => !active.includes(core))
  }
}
