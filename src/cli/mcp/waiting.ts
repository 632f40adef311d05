import type { Clock, Timer } from '../../kit/clock.js'
import type { RpcMessage, MessageId } from '../../kit/mcp/rpc-message.js'

/** Requests that wait at once, and their bytes. */
const MAX_WAITING = 1024
const MAX_WAITING_BYTES = 33_554_432

/** A request of the client, and its line with the newline. */
export interface SentRequest {
  readonly id: MessageId
  readonly message: RpcMessage
  readonly line: Buffer
}

/** Requests that wait for a node, in their order, each with a deadline. */
export class WaitingRequests {
  readonly #clock: Pick<Clock, 'after' | 'clear'>
  readonly #requests = new Map<MessageId, { readonly request: SentRequest; readonly timer: Timer }>()
  #bytes = 0

  constructor(clock: Pick<Clock, 'after' | 'clear'>) {
    this.#clock = clock
  }

  /** Adds a request, in the place of one with its id; false when there are too many. */
  add(request: SentRequest, waitMs: number, expired: (request: SentRequest) => void): boolean {
    const { id, line } = request
    this.take(id)
    if (this.#requests.size >= MAX_WAITING || this.#bytes + line.length > MAX_WAITING_BYTES) return false
    const timer = this.#clock.after(waitMs, () => {
      if (this.take(id) !== null) expired(request)
    })
    this.#requests.set(id, { request, timer })
    this.#bytes += line.length
    return true
  }

  /** Takes a request out; null for none. */
  take(id: MessageId): SentRequest | null {
    const waiting = this.#requests.get(id)
    if (waiting === undefined) return null
    this.#requests.delete(id)
    this.#bytes -= waiting.request.line.length
    this.#clock.clear(waiting.timer)
    return waiting.request
  }

  /** All, in their order. */
  all(): readonly SentRequest[] {
    return [...this.#requests.values()].map(({ request }) => request)
  }

  /** Takes all out. */
  takeAll(): readonly SentRequest[] {
    const all = this.all()
    for (const { id } of all) this.take(id)
    return all
  }
}
