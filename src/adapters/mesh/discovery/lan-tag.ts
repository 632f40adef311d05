import { utf8 } from '../../../kit/ids.js'
import { hash } from '../network/sodium.js'

/** Milliseconds for which a tag stays the same. */
const WINDOW_MS = 3_600_000
/** Bytes of a tag. */
const TAG_BYTES = 16

/** The number of the hour. `now`: unix milliseconds. */
export function lanWindow(now: number): number {
  return Math.floor(now / WINDOW_MS)
}

/** The tag of a topic in an hour: hex; without the topic nobody links two of them. */
export function lanTag(topic: Uint8Array, window: number): string {
  const tag = hash(utf8('a2a-node/lan'), topic, utf8(String(window))).subarray(0, TAG_BYTES)
  return Buffer.from(tag).toString('hex')
}
