import { addressText } from '../card/card.js'
import type { AgentAddress } from '../card/card.js'

/** The ordered messages of one agent to another. */
export interface Lane {
  readonly source: AgentAddress
  readonly target: AgentAddress
}

/** Digits of a number in a key, so that keys are in the order of the numbers. */
const DIGITS = 16

/** A lane as text: `source@node>target@node`. */
export function laneText({ source, target }: Lane): string {
  return `${addressText(source)}>${addressText(target)}`
}

/** Keys of the records of reliable delivery in a ledger: what they are of, then what they are ordered by. */
export const KEYS = {
  /** The sending end of a lane. */
  sender: (lane: string): string => `lane-out/${lane}`,
  /** The receiving end of a lane. */
  receiver: (lane: string): string => `lane-in/${lane}`,
  /** A message that is not acknowledged, without its content. */
  message: (lane: string, seq: number): string => `out/${lane}/${padded(seq)}`,
  /** Its content: the number may change, the content does not. */
  content: (messageId: string): string => `out-content/${messageId}`
} as const

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

function padded(number: number): string {
  return String(number).padStart(DIGITS, '0')
}
