import type { JSONRPCMessage, RequestId, Transport, TransportSendOptions } from '@modelcontextprotocol/server'
import { PROTOCOL_VERSION_META_KEY, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server'
import { isRecord } from '../../../kit/json.js'
import type { ParamHeaders } from './param-headers.js'

/** An HTTP request that waits for the server's messages. */
export interface McpExchange {
  /** Sends a message before the answer: progress, subscribed changes, questions. False when it cannot be sent. */
  note(message: unknown): boolean
  /** The answer. Nothing follows it. */
  answer(message: unknown): void
  /** Ends the exchange without an answer. */
  end(): void
}

interface WaitingResponse {
  readonly exchange: McpExchange
  /** As the client named it. */
  readonly id: RequestId
  /** Ids of requests that the server sent to its client meanwhile. */
  asked?: RequestId[]
}

/**
 * One server whose messages go over many HTTP requests. Each request of a client gets an id of this connection, so that
 * independent clients can share it; its answer has the client's id again.
 */
export class HttpConnection implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #waiting = new Map<RequestId, WaitingResponse>()
  /**
   * Client's ids by own ids, of requests whose client hung up. In the older protocol only a later cancel stops them.
   */
  readonly #left = new Map<RequestId, RequestId>()
  #next = 0
  /** The stream that a client opened for messages that belong to no request. */
  #listener: McpExchange | null = null
  #isClosed = false
  /** Checks the headers of calls against the tools that are served here. */
  readonly paramHeaders: ParamHeaders | null

  constructor(paramHeaders: ParamHeaders | null = null) {
    this.paramHeaders = paramHeaders
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Requests that the server has not answered, also those whose client hung up: they continue. */
  get inFlight(): number {
    return this.#waiting.size + this.#left.size
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  /**
   * Gives a request to the server, whose messages go to the exchange. Returns a function to call when the client hangs
   * up: the answer is dropped then, and a request that claims its version (MCP 2026-07-28) is canceled.
   */
  request(message: { readonly id: RequestId; readonly params?: unknown }, exchange: McpExchange): () => void {
    const id = `request ${this.#next++}`
    const waiting: WaitingResponse = { exchange, id: message.id }
    this.#waiting.set(id, waiting)
    this.onmessage?.({ ...message, id } as unknown as JSONRPCMessage)
    return () => {
      if (!this.#waiting.delete(id)) return
      for (const asked of waiting.asked ?? []) this.#unanswered(asked)
      const meta = isRecord(message.params) ? message.params['_meta'] : undefined
      if (!isRecord(meta) || !Object.hasOwn(meta, PROTOCOL_VERSION_META_KEY)) return void this.#left.set(id, message.id)
      // Without the same claim the gate would not let it pass.
      const params = { requestId: id, reason: 'the client hung up', _meta: meta }
      this.notify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
    }
  }

  /** The client is gone: the server gets an error, as if the client had refused. */
  #unanswered(id: RequestId): void {
    this.notify({ jsonrpc: '2.0', id, error: { code: -32_000, message: 'the client hung up' } })
  }

  /** Is a request with this id of a client under way? */
  isInFlight(id: RequestId): boolean {
    return this.#named(id) !== undefined
  }

  /** The own id of the first request under way with this id of a client. */
  #named(id: unknown): RequestId | undefined {
    for (const [own, one] of this.#waiting) if (one.id === id) return own
    for (const [own, one] of this.#left) if (one === id) return own
    return undefined
  }

  /** Gives a message without an answer to the server. */
  notify(message: unknown): void {
    this.onmessage?.(message as JSONRPCMessage)
  }

  /** Cancels a running request by its client's id; its waiting exchange ends without an answer. */
  cancel(message: { readonly params: Readonly<Record<string, unknown>> }): void {
    const named = this.#named(message.params['requestId'])
    if (named === undefined) return
    const exchange = this.#waiting.get(named)?.exchange
    this.#waiting.delete(named)
    this.#left.delete(named)
    this.notify({ ...message, params: { ...message.params, requestId: named } })
    exchange?.end()
  }

  /** Changes go to this exchange from now on; null: to nobody. */
  listen(exchange: McpExchange | null): void {
    this.#listener = exchange
  }

  get isListenedTo(): boolean {
    return this.#listener !== null
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    if ('method' in message) {
      const related = subscriptionOf(message) ?? options?.relatedRequestId
      const waiting = related === undefined ? undefined : this.#waiting.get(related)
      if ('id' in message) return this.#ask(message, waiting)
      if (waiting !== undefined) waiting.exchange.note(withSubscription(message, waiting.id))
      else if (related === undefined) this.#listener?.note(message)
      return Promise.resolve()
    }
    if (message.id !== undefined) this.#left.delete(message.id)
    const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id)
    if (waiting === undefined || message.id === undefined) return Promise.resolve()
    this.#waiting.delete(message.id)
    waiting.exchange.answer({ ...withSubscription(message, waiting.id), id: waiting.id })
    return Promise.resolve()
  }

  /** A question goes to the client within the answer to its own request; nowhere else is it listening for one. */
  #ask(message: { readonly id: RequestId }, waiting: WaitingResponse | undefined): Promise<void> {
    if (waiting?.exchange.note(message) !== true)
      return Promise.reject(new Error('the client cannot be asked: it reads no stream'))
    waiting.asked ??= []
    waiting.asked.push(message.id)
    return Promise.resolve()
  }

  /** Ends it: waiting clients get an error that the connection is closed. */
  close(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#isClosed = true
    for (const { exchange, id } of this.#waiting.values()) {
      exchange.answer({ jsonrpc: '2.0', id, error: { code: -32_000, message: 'Connection closed' } })
    }
    this.#waiting.clear()
    this.#left.clear()
    this.#listener?.end()
    this.#listener = null
    this.onclose?.()
    return Promise.resolve()
  }
}

type ResponseBody = Readonly<Record<string, unknown>>

/** The place of a subscription's id (the id of the request that made it): in its notifications, and in its end. */
function metaOf(
  message: object
): { readonly place: 'params' | 'result'; readonly body: ResponseBody; readonly meta: ResponseBody } | null {
  for (const place of ['params', 'result'] as const) {
    const body = (message as ResponseBody)[place]
    const meta = isRecord(body) ? body['_meta'] : undefined
    if (isRecord(body) && isRecord(meta) && Object.hasOwn(meta, SUBSCRIPTION_ID_META_KEY)) return { place, body, meta }
  }
  return null
}

function subscriptionOf(message: object): RequestId | undefined {
  return metaOf(message)?.meta[SUBSCRIPTION_ID_META_KEY] as RequestId | undefined
}

function withSubscription(message: object, id: RequestId): object {
  const found = metaOf(message)
  if (found === null) return message
  const { place, body, meta } = found
  return { ...message, [place]: { ...body, _meta: { ...meta, [SUBSCRIPTION_ID_META_KEY]: id } } }
}
