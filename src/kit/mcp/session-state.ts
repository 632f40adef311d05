import { isRecord } from '../json.js'
import { isClaimed, type MessageId, paramsOf, type RpcMessage, SUBSCRIPTION_ID } from './rpc-message.js'

/** Subscriptions of a client that are renewed; a node takes as many. */
const MAX_SUBSCRIPTIONS = 1024

/**
 * The state that a client has built up on its connection by a handshake, so that another node process can be brought
 * there: the handshake, the level of log lines, subscriptions. Requests that claim their version have none.
 */
export class SessionState {
  #initialize: RpcMessage | null = null
  #isInitialized = false
  #level: RpcMessage | null = null
  readonly #subscribed = new Map<string, RpcMessage>()

  /** Has the client ended its handshake? It takes notifications of changes then. */
  get isInitialized(): boolean {
    return this.#isInitialized && this.#initialize !== null
  }

  /** Did it end the handshake before it had the answer, as scripts do? */
  get isAhead(): boolean {
    return this.#isInitialized && this.#initialize === null
  }

  /** May a request be answered in this state? Before the handshake only those that need none. */
  takes(request: RpcMessage): boolean {
    const { method } = request
    return method === 'initialize' || method === 'ping' || this.#initialize !== null || isClaimed(request)
  }

  /** A request was answered with a result. */
  answered(request: RpcMessage): void {
    if (isClaimed(request)) return
    const { method } = request
    const { uri } = paramsOf(request)
    if (method === 'initialize') this.#initialize ??= request
    else if (method === 'logging/setLevel') this.#level = request
    else if (typeof uri !== 'string') return
    else if (method === 'resources/unsubscribe') this.#subscribed.delete(uri)
    else if (method === 'resources/subscribe' && this.#subscribed.size < MAX_SUBSCRIPTIONS)
      this.#subscribed.set(uri, request)
  }

  /** The client sent a notification. */
  notified({ method }: RpcMessage): void {
    if (method === 'notifications/initialized') this.#isInitialized = true
  }

  /** The requests that bring a new connection to this state, in order; the handshake is the first. */
  requests(): readonly RpcMessage[] {
    if (this.#initialize === null) return []
    if (!this.#isInitialized) return [this.#initialize]
    return [this.#initialize, ...(this.#level === null ? [] : [this.#level]), ...this.#subscribed.values()]
  }
}

/** Method of a request for changes; it claims its version, and has no end. */
export const LISTEN = 'subscriptions/listen'
const LISTS = ['tools', 'prompts', 'resources'] as const

/**
 * Notifications that lists changed: for a client after its handshake, and for each request for changes among its open
 * ones.
 */
export function changeNotices(
  isInitialized: boolean,
  open: Iterable<{ readonly id: MessageId; readonly message: RpcMessage }>
): readonly RpcMessage[] {
  const notices: RpcMessage[] = isInitialized ? LISTS.map((list) => ({ jsonrpc: '2.0', method: changeOf(list) })) : []
  for (const { id, message } of open) {
    const { notifications } = paramsOf(message)
    if (message['method'] !== LISTEN || !isRecord(notifications)) continue
    const params = { _meta: { [SUBSCRIPTION_ID]: id } }
    for (const list of LISTS)
      if (notifications[`${list}ListChanged`] === true) notices.push({ jsonrpc: '2.0', method: changeOf(list), params })
  }
  return notices
}

function changeOf(list: string): string {
  return `notifications/${list}/list_changed`
}
