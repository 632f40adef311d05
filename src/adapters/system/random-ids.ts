import { randomFillSync } from 'node:crypto'
import { bytesToText } from '../../kit/ids.js'
import type { IdSource } from '../../kit/ids.js'

/** 80 bits: 16 characters of z32. */
const RANDOM_BYTES = 10
/** Ids for which randomness is fetched at once: a call for each would cost more than the rest of the id. */
const POOL_IDS = 256
/** So that prefix, `_` and the random part stay within 40 characters. */
const PREFIX_MAX = 23

/** 32 bytes from the system's secure random source. */
export function randomSecret(): Uint8Array {
  return randomFillSync(new Uint8Array(32))
}

/** Ids from the system's secure random source: `task_` and 16 characters of z32. @throws RangeError for a prefix over 23 characters. */
export function randomIds(): IdSource {
  const pool = new Uint8Array(POOL_IDS * RANDOM_BYTES)
  let used = pool.byteLength
  return {
    next(prefix) {
      if (prefix.length > PREFIX_MAX) throw new RangeError(`an id's prefix has at most ${PREFIX_MAX} characters`)
      if (used === pool.byteLength) {
        randomFillSync(pool)
        used = 0
      }
      used += RANDOM_BYTES
      return `${prefix}_${bytesToText(pool.subarray(used - RANDOM_BYTES, used))}`
    }
  }
}
