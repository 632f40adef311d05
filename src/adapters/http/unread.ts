import type { ServerResponse } from 'node:http'

/** What of answers may wait for clients that do not read. */
export interface UnreadLimits {
  /** A client that takes nothing of what waits for it for so long is cut, in milliseconds. */
  readonly unreadMs: number
  /** Bytes that may wait on all connections together; beyond it whoever has let them wait longest is cut. */
  readonly unreadBytes: number
}

/** Cuts clients that ask and do not read: what they asked for would be held in memory for as long as they like. */
export class UnreadAnswers {
  readonly #limits: UnreadLimits
  readonly #open = new Set<ServerResponse>()
  /** Those that wait for their clients, the one that was seen to first. */
  readonly #behind = new Set<ServerResponse>()

  constructor(limits: UnreadLimits) {
    this.#limits = limits
  }

  /** Follows an answer until it is over. */
  watch(response: ServerResponse): void {
    const { unreadMs } = this.#limits
    this.#open.add(response)
    response.once('close', () => {
      this.#open.delete(response)
      this.#behind.delete(response)
    })
    // The system tells of a connection on which nothing moves. Who waits for work that takes its time has nothing to read.
    response.setTimeout(unreadMs, () => {
      if (response.writableLength > 0) response.destroy()
      else response.setTimeout(unreadMs)
    })
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
