import { NodeError } from '../../kit/errors.js'
import type { LedgerChange } from '../../ports/ledger.js'

const KEY = /^[!-~]{1,512}$/

/** Are the keys of the changes such as a ledger takes? @throws NodeError INTERNAL */
export function assertChanges(changes: readonly LedgerChange[]): void {
  for (const { key } of changes) if (!KEY.test(key)) throw new NodeError('INTERNAL', 'not a key of the ledger')
}
