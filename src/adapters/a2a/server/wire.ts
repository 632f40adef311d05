import type { Message } from '../../../domain/gateway/message.js'
import type { PushTarget } from '../../../domain/gateway/push.js'
import type { GatewayState, GatewayTask } from '../../../domain/gateway/task.js'
import type { GatewayEvent, GatewaySnapshot } from '../../../ports/gateway.js'

/** A message that a client sends, with what it says of the answer. */
export interface SendParams {
  readonly message: Message
  /** By `metadata.skillId` of the request or the message; null: none is named. */
  readonly skill: string | null
  readonly wait: boolean
  /** Messages of the history that the answer may have; null: all. */
  readonly historyLength: number | null
  /** Where its client wants to be told of the task. */
  readonly push: PushTarget | null
}

/** What a list is asked for. */
export interface ListParams {
  readonly contextId?: string
  /** As the wire names it. */
  readonly state?: string
  readonly pageSize: number
  readonly pageToken: string
  readonly historyLength: number
  readonly since?: number
  readonly includeArtifacts: boolean
}

/** How much of a task is shown. */
export interface Shown {
  /** null: all. */
  readonly historyLength: number | null
  readonly hasArtifacts?: boolean
}

/** One version of the protocol: its JSON. */
export interface Wire {
  readonly version: '1.0' | '0.3'
  /** @throws A2AFault INVALID_PARAMS */
  readSend(params: unknown): SendParams
  task(snapshot: GatewaySnapshot, shown: Shown): object
  message(message: Message): object
  /** What a call that sends a message gives, and how a stream begins. */
  reply(value: { readonly task: object } | { readonly message: object }): object
  /** An event of a stream; null for what this wire does not tell. */
  event(event: GatewayEvent, task: { readonly id: string; readonly contextId: string }): object | null
}

/** The last so many messages of a history. */
export function lastOf(history: readonly Message[], length: number | null): readonly Message[] {
  if (length === null || history.length <= length) return history
  return length === 0 ? [] : history.slice(-length)
}

/** Members that have a value. */
export function present<T extends object>(value: T): T {
  const kept: Partial<T> = {}
  for (const name of Object.keys(value) as (keyof T)[]) if (value[name] !== undefined) kept[name] = value[name]
  return kept as T
}

/** The status of a task, by what a wire calls its state and how it has messages. */
export function statusJson(
  { state, message, since }: Pick<GatewayTask, 'state' | 'message' | 'since'>,
  words: { readonly state: (state: GatewayState) => string; readonly message: (message: Message) => object }
): object {
  const timestamp = new Date(since).toISOString()
  return message === null
    ? { state: words.state(state), timestamp }
    : { state: words.state(state), message: words.message(message), timestamp }
}
