import { utf8 } from '../../src/kit/ids.js'
import type { LedgerChange, LedgerChanges } from '../../src/ports/ledger.js'

/** The changes of a commit, as a ledger takes them that writes at once. */
export function madeChanges(changes: LedgerChanges): readonly LedgerChange[] {
  return typeof changes === 'function' ? changes() : changes
}

/** What a ledger holds of a value. */
export function heldValue(value: LedgerChange['value']): Uint8Array | null {
  return typeof value === 'string' ? utf8(value) : value
}
