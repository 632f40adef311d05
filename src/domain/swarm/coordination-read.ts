import type { NodeId } from '../../kit/ids.js'
import { type ItemRecord, mergeRecords } from './coordination.js'
import { MAX_RECORDS, type MessageOf } from './coordination-message.js'

/** The records read so far from another participant. */
export interface RecordReading {
  /** From where on it is read next; null when all of it is here. */
  from: number | null
  readonly records: Map<number, ItemRecord>
  epoch: number
  candidate: NodeId | null
}

/** Nothing was read yet. */
export function openReading(): RecordReading {
  return { from: 0, records: new Map(), epoch: 0, candidate: null }
}

/** Takes one page. False: it is not the one that comes next. */
export function readPage(reading: RecordReading, { from, items, next, epoch, candidate }: MessageOf<'held'>): boolean {
  if (reading.from !== from || (next !== null && next <= from)) return false
  mergeRecords(
    reading.records,
    items.map(({ index, ...record }) => [index, record] as const)
  )
  Object.assign(reading, { from: next, epoch, candidate })
  return true
}

/** One page of records: at most {@link MAX_RECORDS}, in rising order, from an index on. */
export function pageOf(
  records: ReadonlyMap<number, ItemRecord>,
  from: number
): Pick<MessageOf<'held'>, 'items' | 'next'> {
  const indexes = [...records.keys()].filter((index) => index >= from).sort((a, b) => a - b)
  const items = indexes.slice(0, MAX_RECORDS).flatMap((index) => {
    const record = records.get(index)
    return record === undefined ? [] : [{ index, ...record }]
  })
  return { items, next: indexes[MAX_RECORDS] ?? null }
}
