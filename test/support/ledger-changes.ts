import type { LedgerChange, LedgerChanges } from '../../src/ports/ledger.js'

/** The changes of a commit, as a ledger takes them that writes at once. */
export function madeChanges(changes: LedgerChanges): readonly LedgerChange[] {
  return typeof changes === 'function' ? changes() : changes
}
