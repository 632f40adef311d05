import { randomFillSync } from 'node:crypto'
import type { IdSource } from '../../kit/ids.js'

/** 80 bits: 5 for each character of z32. */
const CHARACTERS = 16
/** Ids for which randomness is fetched at once: a call for each would cost more than the rest of the id. */
const POOL_IDS = 256
/** So that prefix, `_` and the random part stay within 40 characters. */
const PREFIX_MAX = 23
const UNDERSCORE = 0x5f
const ALPHABET = Buffer.from('ybndrfg8ejkmcpqxot1uwisza345h769', 'latin1')

/** 32 bytes from the system's secure random source. */
export function randomSecret(): Uint8Array {
  return randomFillSync(new Uint8Array(32))
}

/**
 * Ids from the system's secure random source: `task_` and 16 characters of z32.
 * @throws RangeError for a prefix over 23 characters.
 */
export function randomIds(): IdSource {
  const pool = new Uint8Array(POOL_IDS * CHARACTERS)
  const text = Buffer.alloc(PREFIX_MAX + 1 + CHARACTERS)
  let used = pool.byteLength
  return {
    next(prefix) {
      if (prefix.length > PREFIX_MAX) throw new RangeError(`an id's prefix has at most ${PREFIX_MAX} characters`)
      if (used === pool.byteLength) {
        randomFillSync(pool)
        used = 0
      }
      // Written as bytes and read as one text: put together from pieces it would be searched for in maps piece by
      // piece.
      let end = text.write(prefix, 'latin1')
      text[end++] = UNDERSCORE
      for (const last = used + CHARACTERS; used < last; used++) text[end++] = ALPHABET[(pool[used] ?? 0) & 31] ?? 0
      return text.toString('latin1', 0, end)
    }
  }
}
