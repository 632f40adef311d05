/**
 * Indexes of the records of a swarm: first the outcomes in the order of items, then the end. Then come the marks by
 * item, for leases of work that may not be repeated.
 */
export const RECORDS = {
  /** Number of possible records of a swarm with that many items. */
  count: (items: number): number => 2 * items + 1,
  /** The end of the swarm: nothing follows it. */
  end: (items: number): number => items,
  /** The mark of an item: it may have been begun, and may not be repeated. */
  mark: (items: number, index: number): number => items + 1 + index
} as const

/** The subject of a record. */
export type RecordKind = { readonly type: 'outcome' | 'mark'; readonly item: number } | { readonly type: 'end' }

/** The subject of the record of an index, in a swarm of that many items. */
export function recordKind(items: number, index: number): RecordKind {
  if (index < items) return { type: 'outcome', item: index }
  return index === items ? { type: 'end' } : { type: 'mark', item: index - items - 1 }
}

/** Is the record of an index the mark of an item? */
export function isMark(items: number, index: number): boolean {
  return recordKind(items, index).type === 'mark'
}
