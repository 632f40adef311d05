import { NodeError } from '../../../kit/errors.js'
import type { LedgerChange } from '../../../ports/ledger.js'

const MAX_LENGTH = 512
const OTHER_CHARACTER = /[^!-~]/

/** Are the keys of the changes such as a ledger takes? @throws NodeError INTERNAL */
export function assertChanges(changes: readonly LedgerChange[]): void {
  for (const { key } of changes)
    if (key === '' || key.length > MAX_LENGTH || OTHER_CHARACTER.test(key)) throw new NodeError('INTERNAL', 'not a key of the ledger')
}
