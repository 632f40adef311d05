import { bytesToText, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { addressText } from '../card/card.js'
import type { AgentAddress } from '../card/card.js'

/** The ordered messages of one agent to another. */
export interface Lane {
  readonly source: AgentAddress
  readonly target: AgentAddress
}

/** Bytes of the hash that names a request: enough that no peer finds two that share them. */
const NAME_BYTES = 16
/** Digits of a number in a key, so that keys are in the order of the numbers. */
const DIGITS = 16

/** A lane as text: `source@node>target@node`. */
export function laneText({ source, target }: Lane): string {
  return `${addressText(source)}>${addressText(target)}`
}

/** Keys of the records of reliable delivery in a ledger: their subject first, then their order. */
export const KEYS = {
  ledger: 'ledger-name',
  /** The sending end of a lane. */
  sender: (lane: string): string => `lane-out/${lane}`,
  /** The receiving end of a lane. */
  receiver: (lane: string): string => `lane-in/${lane}`,
  /** A message that is not acknowledged, without its content. */
  message: (lane: string, seq: number): string => `out/${lane}/${padded(seq)}`,
  /** Its content: the number may change, the content does not. */
  content: (messageId: string): string => `out-content/${messageId}`,
  /** A request, by its name (see {@link requestName}). */
  request: (name: string): string => `request/${name}`,
  input: (name: string): string => `request-in/${name}`,
  result: (name: string): string => `request-out/${name}`,
  /** Present while it has no outcome, in the order they were made. */
  open: (createdAt: number, name: string): string => `request-open/${padded(createdAt)}/${name}`,
  /** The request of a task; its value is the request's name. */
  task: (taskId: string): string => `request-task/${taskId}`,
  /** A request that this node asked, by its id; its value is the request's name. */
  asked: (requestId: string): string => `request-asked/${requestId}`,
  /** When all of it may go. */
  expiry: (expiresAt: number, name: string): string => `request-expiry/${padded(expiresAt)}/${name}`
} as const

/** Name of a request in the ledger: 26 characters of a hash of its end, caller, callee, id and attempt. */
export function requestName(
  request: {
    readonly role: 'caller' | 'callee'
    readonly source: string
    readonly target: string
    readonly requestId: string
    readonly attempt: number
  },
  hash: Hash
): string {
  const { role, source, target, requestId, attempt } = request
  // As JSON no two requests look alike, whatever characters a peer puts into an id.
  const digest = hash(utf8(JSON.stringify([role, source, target, requestId, attempt])))
  return bytesToText(digest.subarray(0, NAME_BYTES))
}

/** The range of keys of an index up to a time, that time included. */
export function rangeUpTo(
  kind: 'request-open' | 'request-expiry',
  time: number
): { readonly from: string; readonly to: string } {
  return { from: `${kind}/`, to: `${kind}/${padded(time + 1)}` }
}

/** The name of the request of a key of an index. */
export function nameOfIndexKey(key: string): string {
  return key.slice(key.indexOf('/', key.indexOf('/') + 1) + 1)
}

/** The range of all keys of a kind, e.g. `out`. */
export function rangeOf(kind: string): { readonly from: string; readonly to: string } {
  // The character after the slash.
  return { from: `${kind}/`, to: `${kind}0` }
}

/** The lane and number of a key of {@link KEYS.message}. */
export function readMessageKey(key: string): { readonly lane: string; readonly seq: number } {
  const [, lane = '', seq = ''] = key.split('/')
  return { lane, seq: Number(seq) }
}

/**
 * A number from 0 as keys have it: keys are in the order of the numbers. A fraction is left out, which would put it
 * behind all others.
 */
export function padded(number: number): string {
  return String(Math.floor(number)).padStart(DIGITS, '0')
}
