import { KEYS, rangeOf } from './keys.js'
import { requestRecord } from './records.js'
import { nodeOfAddress } from '../card/card.js'
import { decodePayload, encodePayload } from '../envelope/codec.js'
import { isRecord } from '../../kit/json.js'

const REQUESTS = rangeOf('request')
const SWARMS = rangeOf('swarm')

/**
 * The value of an entry in a ledger that was restored from an older copy. Requests that had not begun at the time of
 * the copy may have been done since. Unless they may be repeated, they count as begun and end as unknown instead of
 * running twice. An unfinished swarm is marked as restored and is not resumed. The ledger loses its name. Other values
 * are unchanged. Total: an unreadable value is returned as it is.
 */
export function restoredValue(key: string, value: Uint8Array): Uint8Array {
  // Entries after the copy are missing: to its peers it is another ledger.
  if (key === KEYS.ledger) return new Uint8Array(0)
  if (key >= SWARMS.from && key < SWARMS.to) return restoredSwarm(value)
  if (key < REQUESTS.from || key >= REQUESTS.to) return value
  try {
    const record = requestRecord.decode(value)
    if (record.status !== 'pending' || record.isRepeatable) return value
    const tries = Math.max(1, record.tries)
    if (record.role === 'callee') return requestRecord.encode({ ...record, status: 'started', tries })
    return nodeOfAddress(record.source) === nodeOfAddress(record.target)
      ? requestRecord.encode({ ...record, tries })
      : value
  } catch {
    return value
  }
}

function restoredSwarm(value: Uint8Array): Uint8Array {
  const read = decodePayload(value)
  if (!read.ok || !isRecord(read.value)) return value
  const { head } = read.value
  return isRecord(head) && head['end'] === null
    ? encodePayload({ ...read.value, head: { ...head, isRestored: true } })
    : value
}
