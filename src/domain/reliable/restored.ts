import { rangeOf } from './keys.js'
import { requestRecord } from './records.js'

const REQUESTS = rangeOf('request')

/**
 * The value of a ledger's entry in a ledger that was restored from an older copy. What others asked of this node and had not
 * begun when the copy was made may have been done since: unless it may be repeated it counts as begun, so that it ends as
 * unknown instead of running a second time. Everything else is as it was. Total: what cannot be read is given back.
 */
export function restoredValue(key: string, value: Uint8Array): Uint8Array {
  if (key < REQUESTS.from || key >= REQUESTS.to) return value
  try {
    const record = requestRecord.decode(value)
    if (record.role !== 'callee' || record.status !== 'pending' || record.isRepeatable) return value
    return requestRecord.encode({ ...record, status: 'started', tries: Math.max(1, record.tries) })
  } catch {
    return value
  }
}
