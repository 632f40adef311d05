import { z } from 'zod'
import { ImportedFault } from './imported-fault.js'
import { MAX_IMPORTED_TOOLS } from './imported-list.js'

/** Bytes of one list as JSON, all pages together. */
export const MAX_LIST_BYTES = 8_388_608
/** Pages of it. */
const MAX_PAGES = 64

/**
 * A page of a list. Lenient: one item of a wrong shape must not hide the others, nor may a cursor of one hide its page.
 */
export const listPage = z.looseObject({ nextCursor: z.unknown().optional() })
/** The same of tools, which it must have. */
export const toolPage = listPage.extend({ tools: z.array(z.unknown()) })

/** One page as its server gives it. */
export interface ListedPage {
  readonly items: readonly unknown[]
  readonly nextCursor?: unknown
}

/** Bounds and words of a list. */
export interface PagedList {
  /** `tool`: `its tool list`, `2,000 tools`. */
  readonly item: string
  readonly maxItems: number
  readonly maxBytes: number
  /** A list beyond its bounds ends there, with a note; else it is refused. */
  readonly isCut: boolean
}

/** The list of tools: one that is too long is refused, since part of it could not be pinned. */
const TOOLS: PagedList = { item: 'tool', maxItems: MAX_IMPORTED_TOOLS, maxBytes: MAX_LIST_BYTES, isCut: false }

/** The items of all pages. */
export interface ReadPages {
  readonly items: readonly unknown[]
  /** Why the list ends although its server names a further page; null: it names none. */
  readonly note: string | null
}

/**
 * Reads a list page by page. It ends at the first page without a cursor. A server that names a cursor twice, or whose
 * page has only items of earlier pages, would go round for ever: its list ends there with a note, and repeated items
 * count once.
 * @throws ImportedFault beyond the bounds of a list that is not cut; errors of `ask`
 */
export async function readPages(
  ask: (cursor: string | null) => Promise<ListedPage>,
  list: PagedList = TOOLS
): Promise<ReadPages> {
  const items = new Map<string, unknown>()
  const cursors = new Set<string>()
  let bytes = 0
  let cursor: string | null = null
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const got: ListedPage = await ask(cursor)
    const known = items.size
    const texts = got.items.map((item) => JSON.stringify(item))
    texts.forEach((text, at) => items.set(text, got.items[at]))
    bytes += texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    cursor = typeof got.nextCursor === 'string' && got.nextCursor !== '' ? got.nextCursor : null
    const all = [...items.values()]
    const over = overrun(list, items.size, bytes)
    if (over !== null) return beyond(list, over, all)
    if (cursor === null) return { items: all, note: null }
    if (cursors.has(cursor)) return { items: all, note: `its ${list.item} list repeats a cursor` }
    // An empty page may stand before a full one.
    if (texts.length > 0 && items.size === known) return { items: all, note: `its ${list.item} list repeats a page` }
    cursors.add(cursor)
  }
  return beyond(list, `its ${list.item} list has more than ${MAX_PAGES} pages`, [...items.values()])
}

function overrun({ item, maxItems, maxBytes }: PagedList, count: number, bytes: number): string | null {
  if (count > maxItems) return `it lists more than ${maxItems} ${item}s`
  return bytes > maxBytes ? `its ${item} list has more than ${maxBytes} bytes` : null
}

function beyond({ isCut }: PagedList, reason: string, items: readonly unknown[]): ReadPages {
  if (!isCut) throw new ImportedFault('answered', reason)
  return { items, note: reason }
}
