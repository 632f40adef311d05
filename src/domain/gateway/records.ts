import { toHex } from '../../kit/bytes.js'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import type { DeadLetter, PushHook, PushNotice } from './push.js'
import type { GatewayEvent, GatewayTask } from './task.js'

/** Digits of a generation in a key, so that keys are in the order of the numbers. */
const DIGITS = 8
/** Bytes of a hash that tells a text. */
const NAME_BYTES = 16

/** Keys of the records of the A2A gateway in a ledger. */
export const GATEWAY_KEYS = {
  task: (id: string): string => `a2a-task/${id}`,
  /** Events of a task's log that came with one commit, under the generation of the last one. */
  events: (id: string, generation: number): string => `a2a-event/${id}/${String(generation).padStart(DIGITS, '0')}`,
  /** Which task a message of a caller went to; see {@link messageName}. */
  message: (name: string): string => `a2a-message/${name}`
} as const

/** The range of all tasks. */
export const TASK_RANGE = { from: 'a2a-task/', to: 'a2a-task0' } as const

/** The range of a task's events behind a generation; the first record may hold some before it. */
export function eventRange(id: string, after: number): { readonly from: string; readonly to: string } {
  return { from: GATEWAY_KEYS.events(id, after + 1), to: `a2a-event/${id}0` }
}

/** What a message is called in the ledger: a caller that says the same thing twice means it once. */
export function messageName({ owner, messageId }: { readonly owner: string; readonly messageId: string }, hash: Hash): string {
  return shortHash(JSON.stringify([owner, messageId]), hash)
}

/** What tells a text from any other one. */
export function shortHash(text: string, hash: Hash): string {
  return toHex(hash(utf8(text)).subarray(0, NAME_BYTES))
}

/** Where a message went, and a digest of what it said. */
export interface MessageRecord {
  readonly task: string
  readonly digest: string
}

type GatewayRecord = GatewayTask | readonly GatewayEvent[] | MessageRecord | PushHook | PushNotice | DeadLetter

/** A record as the ledger keeps it: JSON in UTF-8. */
export function encodeRecord(value: GatewayRecord): Uint8Array {
  return utf8(JSON.stringify(value))
}

/** Reads a record that this node wrote; null for what is none. */
export function decodeRecord<T extends GatewayRecord>(bytes: Uint8Array): T | null {
  try {
    const value = JSON.parse(fromUtf8(bytes)) as T | null
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}
