import type { RateLimit } from '../../kit/rate.js'
import { FRAME } from './frames.js'

/** Tokens that one member may spend on another: 5,000 small messages a second, or 32 MiB. */
export const MEMBER_RATE: RateLimit = { perSecond: 5000, burst: 10_000 }
/** The rate that a sender keeps to: half of the burst is left for frames that arrive in bunches. */
export const SENDER_RATE: RateLimit = { perSecond: 5000, burst: 5000 }

/** Bytes of an envelope for one token: 32 MiB a second. */
const BYTES_A_TOKEN = Math.floor((32 * 1024 * 1024) / MEMBER_RATE.perSecond)
/** The same of a control message: cards in it have signatures, each as dear to check as a message. */
const CONTROL_BYTES_A_TOKEN = 256

/** Cost of a frame for its sender, in tokens; at least 1. */
export function frameCost(frame: Uint8Array): number {
  return Math.max(1, Math.ceil(frame.byteLength / (frame[0] === FRAME.control ? CONTROL_BYTES_A_TOKEN : BYTES_A_TOKEN)))
}
