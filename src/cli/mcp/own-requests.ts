import type { Clock } from '../../kit/clock.js'
import type { RpcMessage, MessageId } from '../../kit/mcp/rpc-message.js'

/** Milliseconds for an answer. */
const ANSWER_MS = 10_000

/** Requests of this program to the node, beside those of its client. */
export class OwnRequests {
  readonly #clock: Pick<Clock, 'after' | 'clear'>
  readonly #open = new Map<unknown, (hasResult: boolean) => void>()
  #next = 0

  constructor(clock: Pick<Clock, 'after' | 'clear'>) {
    this.#clock = clock
  }

  /** Sends a request under an id of its own. True for a result; false for an error, or none in 10 s. */
  ask(request: RpcMessage, send: (message: RpcMessage) => void): Promise<boolean> {
    const id: MessageId = `a2a-node ${this.#next++}`
    return new Promise((resolve) => {
      const timer = this.#clock.after(ANSWER_MS, () => end(false))
      const end = (hasResult: boolean): void => {
        this.#clock.clear(timer)
        this.#open.delete(id)
        resolve(hasResult)
      }
      this.#open.set(id, end)
      send({ ...request, id })
    })
  }

  /** Takes an answer; false when it is not for this program. */
  take(answer: RpcMessage): boolean {
    const end = this.#open.get(answer['id'])
    if (end === undefined) return false
    end('result' in answer)
    return true
  }

  /** The node is gone: there will be no answers. */
  end(): void {
    for (const end of [...this.#open.values()]) end(false)
  }
}
