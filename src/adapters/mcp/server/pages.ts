import { ProtocolError } from '@modelcontextprotocol/server'
import { JSON_RPC } from './structured-error.js'

/** Items of one page: many clients look at the first page only. */
const PAGE_ITEMS = 10_000

/** A page of a list. @throws ProtocolError invalid params for a cursor that this server did not give. */
export function pageOf<T>(
  all: readonly T[],
  cursor: string | undefined
): { readonly items: T[]; readonly nextCursor?: string } {
  const from = cursor === undefined ? 0 : /^\d{1,9}$/.test(cursor) ? Number(cursor) : Number.NaN
  if (Number.isNaN(from) || from % PAGE_ITEMS !== 0)
    throw new ProtocolError(JSON_RPC.INVALID_PARAMS, 'Invalid params: no such cursor')
  const to = from + PAGE_ITEMS
  const items = all.slice(from, to)
  return to < all.length ? { items, nextCursor: String(to) } : { items }
}
