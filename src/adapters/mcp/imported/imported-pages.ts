import { z } from 'zod'
import { ImportedFault } from './imported-fault.js'
import { MAX_IMPORTED_TOOLS } from './imported-list.js'

/** Bytes of one tool list as JSON, all pages together. */
export const MAX_LIST_BYTES = 8_388_608
/** Pages of it. */
const MAX_PAGES = 64

/**
 * A page of a tool list. Lenient: one tool of a wrong shape must not hide the others, nor may a cursor of one hide its
 * page.
 */
export const toolPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.unknown().optional() })

/** One page as its server gives it. */
type ToolPage = z.output<typeof toolPage>

/** The tools of all pages. */
export interface ReadPages {
  readonly tools: readonly unknown[]
  /** Why the list ends although its server names a further page; null: it names none. */
  readonly note: string | null
}

/**
 * Reads a tool list page by page. It ends at the first page without a cursor. A server that names a cursor twice, or
 * whose page has only tools of earlier pages, would go round for ever: its list ends there with a note, and repeated
 * tools count once.
 * @throws ImportedFault for more than 2,000 tools, 8 MiB or 64 pages; errors of `ask`
 */
export async function readPages(ask: (cursor: string | null) => Promise<ToolPage>): Promise<ReadPages> {
  const tools = new Map<string, unknown>()
  const cursors = new Set<string>()
  let bytes = 0
  let cursor: string | null = null
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const got: ToolPage = await ask(cursor)
    const known = tools.size
    const texts = got.tools.map((tool) => JSON.stringify(tool))
    texts.forEach((text, at) => tools.set(text, got.tools[at]))
    bytes += texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    if (tools.size > MAX_IMPORTED_TOOLS)
      throw new ImportedFault('answered', `it lists more than ${MAX_IMPORTED_TOOLS} tools`)
    if (bytes > MAX_LIST_BYTES)
      throw new ImportedFault('answered', `its tool list has more than ${MAX_LIST_BYTES} bytes`)
    cursor = typeof got.nextCursor === 'string' && got.nextCursor !== '' ? got.nextCursor : null
    const all = [...tools.values()]
    if (cursor === null) return { tools: all, note: null }
    if (cursors.has(cursor)) return { tools: all, note: 'its tool list repeats a cursor' }
    // An empty page may stand before a full one.
    if (texts.length > 0 && tools.size === known) return { tools: all, note: 'its tool list repeats a page' }
    cursors.add(cursor)
  }
  throw new ImportedFault('answered', `its tool list has more than ${MAX_PAGES} pages`)
}
