import { KEYS, rangeOf } from './keys.js'
import { requestRecord } from './records.js'
import { nodeOfAddress } from '../card/card.js'
import { decodePayload, encodePayload } from '../envelope/codec.js'
import { isRecord } from '../../kit/json.js'

const REQUESTS = rangeOf('request')
const SWARMS = rangeOf('swarm')

/**
 * The value of a ledger's entry in a ledger that was restored from an older copy. What others asked of this node and had not
 * begun when the copy was made may have been done since, and so may what it asked of an agent of its own: unless it may be repeated
 * it counts as begun, so that it ends as unknown instead of running a second time. A swarm that had not ended is marked as restored,
 * and goes on nowhere. The ledger loses its name. Everything else is as it was. Total: what cannot be read is given back.
 */
export function restoredValue(key: string, value: Uint8Array): Uint8Array {
  // What came since the copy was made is not there: to its peers it is another ledger.
  if (key === KEYS.ledger) return new Uint8Array(0)
  if (key >= SWARMS.from && key < SWARMS.to) return restoredSwarm(value)
  if (key < REQUESTS.from || key >= REQUESTS.to) return value
  try {
    const record = requestRecord.decode(value)
    if (record.status !== 'pending' || record.isRepeatable) return value
    const tries = Math.max(1, record.tries)
    if (record.role === 'callee') return requestRecord.encode({ ...record, status: 'started', tries })
    return nodeOfAddress(record.source) === nodeOfAddress(record.target) ? requestRecord.encode({ ...record, tries }) : value
  } catch {
    return value
  }
}

function restoredSwarm(value: Uint8Array): Uint8Array {
  const read = decodePayload(value)
  if (!read.ok || !isRecord(read.value)) return value
  const { head } = read.value
  return isRecord(head) && head['end'] === null ? encodePayload({ ...read.value, head: { ...head, isRestored: true } }) : value
}
