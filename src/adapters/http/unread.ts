import type { ServerResponse } from 'node:http'
import { Bag } from '../../kit/transient.js'

/** Limits of answers that wait for clients to read. */
export interface UnreadLimits {
  /** Bytes that may wait on all connections together; beyond it whoever has let them wait longest is cut. */
  readonly unreadBytes: number
}

/** Cuts clients that ask and do not read: what they asked for would be held in memory for as long as they like. */
export class UnreadAnswers {
  readonly #limits: UnreadLimits
  readonly #open = new Bag<ServerResponse>()
  /** Answers that wait for their clients, the least recently checked first. */
  readonly #behind = new Set<ServerResponse>()

  constructor(limits: UnreadLimits) {
    this.#limits = limits
  }

  /** Follows an answer until {@link UnreadAnswers.forget}. */
  watch(response: ServerResponse): void {
    this.#open.add(response)
  }

  /** It is over. */
  forget(response: ServerResponse): void {
    this.#open.delete(response)
    this.#behind.delete(response)
  }

  /** Cuts until what waits is within its bound. To be called when there is a large answer, and now and then. */
  check(): void {
    let bytes = 0
    for (const response of this.#open) {
      bytes += response.writableLength
      if (response.writableLength > 0) this.#behind.add(response)
      else this.#behind.delete(response)
    }
    for (const response of this.#behind) {
      if (bytes <= this.#limits.unreadBytes) return
      bytes -= response.writableLength
      response.destroy()
    }
  }
}
