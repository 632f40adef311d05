import type { Ledger, LedgerEntry } from '../../ports/ledger.js'

/** Entries that one read of the ledger gives. */
const PAGE = 500

/** The entries of a range of keys in their order, read some at a time. @throws NodeError what the ledger says */
export async function* ledgerEntries(
  ledger: Pick<Ledger, 'list'>,
  { from, to }: { readonly from: string; readonly to: string }
): AsyncGenerator<LedgerEntry> {
  for (let next = from; ; ) {
    const page = await ledger.list({ from: next, to, limit: PAGE })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    // The first key behind it.
    next = `${last.key}!`
  }
}
