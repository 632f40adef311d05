import type { Message } from '../../../domain/gateway/message.js'
import type { PushTarget } from '../../../domain/gateway/push.js'
import type { GatewayState, GatewayTask } from '../../../domain/gateway/task.js'
import type { GatewayEvent, GatewaySnapshot } from '../../../ports/gateway.js'

/** A message of a client with its options for the answer. */
export interface SendParams {
  readonly message: Message
  /** From `metadata.skillId` of the request or the message; null: none. */
  readonly skill: string | null
  readonly wait: boolean
  /** Most messages of the history in the answer; null: all. */
  readonly historyLength: number | null
  /** Target of push notifications for the task; null: none. */
  readonly push: PushTarget | null
}

/** Parameters of a list. */
export interface ListParams {
  readonly contextId?: string
  /** Name of the state in the version. */
  readonly state?: string
  readonly pageSize: number
  readonly pageToken: string
  readonly historyLength: number
  readonly since?: number
  readonly includeArtifacts: boolean
}

/** The parts of a task to encode. */
export interface Shown {
  /** null: all. */
  readonly historyLength: number | null
  readonly hasArtifacts?: boolean
}

/** The JSON form of one version of the protocol. */
export interface Wire {
  readonly version: '1.0' | '0.3'
  /** @throws A2AFault INVALID_PARAMS */
  readSend(params: unknown): SendParams
  task(snapshot: GatewaySnapshot, shown: Shown): object
  message(message: Message): object
  /** Result of a sent message, and the first item of a stream. */
  reply(value: { readonly task: object } | { readonly message: object }): object
  /** An item of a stream; null when the version has no such event. */
  event(event: GatewayEvent, task: { readonly id: string; readonly contextId: string }): object | null
}

/** The last `length` messages of a history; null: all. */
export function lastOf(history: readonly Message[], length: number | null): readonly Message[] {
  if (length === null || history.length <= length) return history
  return length === 0 ? [] : history.slice(-length)
}

/** The object without undefined members. */
export function present<T extends object>(value: T): T {
  const kept: Partial<T> = {}
  for (const name of Object.keys(value) as (keyof T)[]) if (value[name] !== undefined) kept[name] = value[name]
  return kept as T
}

/** The status of a task, with the state names and message form of a version. */
export function statusJson(
  { state, message, since }: Pick<GatewayTask, 'state' | 'message' | 'since'>,
  words: { readonly state: (state: GatewayState) => string; readonly message: (message: Message) => object }
): object {
  const timestamp = new Date(since).toISOString()
  return message === null
    ? { state: words.state(state), timestamp }
    : { state: words.state(state), message: words.message(message), timestamp }
}
