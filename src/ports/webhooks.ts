import type { AbortSignalLike } from '../kit/clock.js'
import type { PushHook, PushVersion } from '../domain/gateway/push.js'
import type { WebhookAnswer } from '../domain/gateway/push-verdict.js'
import type { GatewayEvent, GatewaySnapshot, GatewayTask } from '../domain/gateway/task.js'

/** Content of a notification: a snapshot of a task, or one event of it. */
export type WebhookContent =
  | { readonly snapshot: GatewaySnapshot }
  | { readonly task: GatewayTask; readonly event: GatewayEvent }

/** One try of a notification. */
export interface WebhookCall {
  /** At every try the same. */
  readonly id: string
  /** `task.completed` and the like. */
  readonly event: string
  readonly body: string
}

/** The way to the webhooks of clients. */
export interface Webhooks {
  /** Why an address is refused; null: it may be tried. Its name is resolved at that time. */
  refusal(url: string): string | null
  /** A notification in the JSON of a version, of bounded length. Total. */
  bodyOf(version: PushVersion, content: WebhookContent): string
  /** Sends it once, in bounded time. Never rejects; ignore the answer after the signal has aborted. */
  send(hook: PushHook, call: WebhookCall, signal: AbortSignalLike): Promise<WebhookAnswer>
}
