import { fromUtf8 } from '../../kit/ids.js'
import type { DeadLetter, PushHook, PushNotice } from './push.js'

/** Digits of a generation in a key, so that keys are in the order of the numbers. */
const DIGITS = 8

/** The same of the number of an answer. */
const ANSWER_DIGITS = 16

/** Keys of the records of the A2A gateway in a ledger. */
export const GATEWAY_KEYS = {
  task: (id: string): string => `a2a-task/${id}`,
  /** Events of a task's log that came with one commit, under the generation of the last one. */
  events: (id: string, generation: number): string => `a2a-event/${id}/${String(generation).padStart(DIGITS, '0')}`,
  /** A message that was answered without a task; numbers rise by one. */
  answer: (number: number): string => `a2a-answer/${String(number).padStart(ANSWER_DIGITS, '0')}`
} as const

/** The range of all messages that were answered without a task. */
export const ANSWER_RANGE = { from: 'a2a-answer/', to: 'a2a-answer0' } as const

/** The range of all tasks. */
export const TASK_RANGE = { from: 'a2a-task/', to: 'a2a-task0' } as const

/** The id of the task that a key of {@link TASK_RANGE} is of. */
export function taskIdOf(key: string): string {
  return key.slice(TASK_RANGE.from.length)
}

/** The range of a task's events behind a generation; the first record may hold some before it. */
export function eventRange(id: string, after: number): { readonly from: string; readonly to: string } {
  return { from: GATEWAY_KEYS.events(id, after + 1), to: `a2a-event/${id}0` }
}

type GatewayRecord = PushHook | PushNotice | DeadLetter

/** A record as the ledger keeps it: JSON. */
export function encodeRecord(value: GatewayRecord): string {
  return JSON.stringify(value)
}

/** Decodes a record of this node; null for an invalid one. */
export function decodeRecord<T extends GatewayRecord>(bytes: Uint8Array): T | null {
  try {
    const value = JSON.parse(fromUtf8(bytes)) as T | null
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}
