/**
 * What participants have on record of a swarm is numbered: the outcomes of its items first, as the items are; then its end;
 * then, by item, that one which may not be repeated was leased.
 */
export const RECORDS = {
  /** How many records a swarm of so many items may have. */
  count: (items: number): number => 2 * items + 1,
  /** The end of the swarm: nothing follows it. */
  end: (items: number): number => items,
  /** The mark of an item: it may have been begun, and may not be repeated. */
  mark: (items: number, index: number): number => items + 1 + index
} as const

/** What a record is of. */
export type RecordKind = { readonly type: 'outcome' | 'mark'; readonly item: number } | { readonly type: 'end' }

/** What the record of an index is of, in a swarm of so many items. */
export function recordKind(items: number, index: number): RecordKind {
  if (index < items) return { type: 'outcome', item: index }
  return index === items ? { type: 'end' } : { type: 'mark', item: index - items - 1 }
}

/** Is the record of an index the mark of an item? */
export function isMark(items: number, index: number): boolean {
  return recordKind(items, index).type === 'mark'
}
