import type { Ledger, LedgerEntry } from '../../ports/ledger.js'

/** Entries per read of the ledger. */
const PAGE = 500

/** The entries of a key range in order, read page by page. @throws NodeError the ledger's error. */
export async function* ledgerEntries(
  ledger: Pick<Ledger, 'list'>,
  { from, to }: { readonly from: string; readonly to: string }
): AsyncGenerator<LedgerEntry> {
  for (let next = from; ; ) {
    const page = await ledger.list({ from: next, to, limit: PAGE })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    // The first possible key after the last one.
    next = `${last.key}!`
  }
}
