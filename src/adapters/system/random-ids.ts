import { randomBytes } from 'node:crypto'
import { bytesToText } from '../../kit/ids.js'
import type { IdSource } from '../../kit/ids.js'

/** 80 bits: 16 characters of z32. */
const RANDOM_BYTES = 10
/** So that prefix, `_` and the random part stay within 40 characters. */
const PREFIX_MAX = 23

/** Ids from the system's secure random source: `task_` and 16 characters of z32. @throws RangeError for a prefix over 23 characters. */
export function randomIds(): IdSource {
  return {
    next(prefix) {
      if (prefix.length > PREFIX_MAX) throw new RangeError(`an id's prefix has at most ${PREFIX_MAX} characters`)
      return `${prefix}_${bytesToText(randomBytes(RANDOM_BYTES))}`
    }
  }
}
