import type { RateLimit } from '../../kit/rate.js'
import { FRAME } from './frames.js'

/**
 * Flow control of a link. The receiver gives credit: the number of tokens (see frameCost) that its peer may have spent
 * since the link opened. It gives more when half of the credit is used up, so an idle receiver sets no rate. A link
 * works with credit when both ends announce it as they open the channel.
 */

/** Tokens that an end may spend before the first message of the other: the initial credit of a link. */
export const FIRST_CREDIT = 512
/** Unread tokens that a peer may have while no other uses the node: 4,096 messages under way. */
export const MAX_CREDIT = 4096
/** The same while others use the node; more on a long way, for which {@link creditFor} allows. */
export const BUSY_CREDIT = 32
/** The same at most on a long way. */
export const MAX_BUSY_CREDIT = 1024
/** Tokens beyond the credit that pings and their answers may take: they measure whether the peer lives. */
export const URGENT_CREDIT = 64
/** Least tokens of one increase of credit; smaller steps cost the peer more than they are worth. */
export const MIN_CREDIT_STEP = 16
/** Tokens by which the credit may exceed the spent ones. */
export const MAX_CREDIT_AHEAD = 65_536
/** Tokens in a millisecond for which a peer on a long way gets credit while others use the node. */
const BUSY_TOKENS_PER_MS = 5

/** State of a peer's credit at the receiver of a link. Tokens since the link opened. */
export interface CreditWindow {
  /** The tokens that the peer may spend. */
  readonly limit: number
  /** The tokens that it spent. */
  readonly spent: number
  /** Distance of the next limit from the spent tokens. */
  readonly size: number
}

/** The window of a link that has just opened. */
export const FIRST_WINDOW: CreditWindow = { limit: FIRST_CREDIT, spent: 0, size: BUSY_CREDIT }

/**
 * A frame of the peer came. Null: it was sent without credit. The last frame before the limit may cost more than is
 * left.
 */
export function takeFrame(window: CreditWindow, cost: number): CreditWindow | null {
  return window.spent < window.limit + URGENT_CREDIT ? { ...window, spent: window.spent + cost } : null
}

/**
 * Tokens ahead that a peer gets while others use the node. `rttMs`: its round trip in milliseconds, null while unknown.
 */
export function creditFor(rttMs: number | null): number {
  return Math.min(MAX_BUSY_CREDIT, Math.max(BUSY_CREDIT, Math.ceil((rttMs ?? 0) * BUSY_TOKENS_PER_MS)))
}

/**
 * The window after more credit; the same one when none is due yet. `busySize`: its size while others use the node.
 * null: no other does, so each credit doubles the size.
 */
export function moreCredit(window: CreditWindow, busySize: number | null): CreditWindow {
  const { limit, spent } = window
  const size = Math.min(window.size, busySize ?? MAX_CREDIT)
  if (limit - spent > size / 2) return window
  const next = busySize ?? Math.min(MAX_CREDIT, size * 2)
  return { limit: spent + next, spent, size: next }
}

/** The fault of a credit from a peer; null for a valid one. `given`: the former limit; `spent`: the spent tokens. */
export function creditFault(
  limit: number,
  { given, spent }: { readonly given: number; readonly spent: number }
): string | null {
  if (limit < given + MIN_CREDIT_STEP) return 'credit in pieces that are too small'
  return limit > spent + MAX_CREDIT_AHEAD ? 'credit for more than a node sends' : null
}

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
