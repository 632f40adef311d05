import { type UpdateCursor, UpdateFault } from './bytes.js'

/**
 * Bits of the first byte of an item: a left and a right neighbour follow, and it has a key. The lower five are the kind
 * of its content.
 */
export const ITEM = { hasLeft: 0x80, hasRight: 0x40, hasKey: 0x20, kind: 0x1f } as const

/** One clock of a clientID. */
export interface Id {
  readonly client: number
  readonly clock: number
}

/** The head of an item, between its first byte and its content. */
export interface ItemHead {
  readonly left: Id | null
  readonly right: Id | null
  /** Given only for an item without neighbours; null as well when it is a type of the document itself. */
  readonly parent: Id | null
}

/** Reads the head of an item whose first byte is `info`. @throws UpdateFault */
export function readHead(cursor: UpdateCursor, info: number): ItemHead {
  const left = (info & ITEM.hasLeft) === 0 ? null : readId(cursor)
  const right = (info & ITEM.hasRight) === 0 ? null : readId(cursor)
  if (left !== null || right !== null) return { left, right, parent: null }
  const parent = readParent(cursor)
  if ((info & ITEM.hasKey) !== 0) cursor.text()
  return { left, right, parent }
}

function readParent(cursor: UpdateCursor): Id | null {
  const form = cursor.uint()
  if (form === 0) return readId(cursor)
  if (form !== 1) throw new UpdateFault('a parent of an unknown form')
  cursor.text()
  return null
}

function readId(cursor: UpdateCursor): Id {
  return { client: cursor.uint(), clock: cursor.uint() }
}
