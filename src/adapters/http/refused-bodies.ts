import type { IncomingMessage } from 'node:http'
import { announcedBytes, type BoundedReading, isJson, readWithin } from './body.js'

/** Limits for bodies that are read for the answer to a refused request alone. */
export interface RefusedBodyLimits {
  /** Milliseconds for one. */
  readonly refusedBodyMs: number
  /** Bodies that are read at once. */
  readonly refusedBodies: number
}

/** Reads bodies of requests without a valid token, so that an answer can name the id of its request. */
export class RefusedBodies {
  readonly #limits: RefusedBodyLimits
  #reading = 0

  constructor(limits: RefusedBodyLimits) {
    this.#limits = limits
  }

  /** Begins to read JSON of at most `maxBytes` bytes; null: the body is not read. */
  read(request: IncomingMessage, maxBytes: number): BoundedReading | null {
    const { refusedBodies, refusedBodyMs } = this.#limits
    if (maxBytes === 0 || !isJson(request) || announcedBytes(request) > maxBytes || this.#reading >= refusedBodies)
      return null
    this.#reading += 1
    const { body, stop } = readWithin(request, { maxBytes, timeoutMs: refusedBodyMs })
    return { body: body.finally(() => (this.#reading -= 1)), stop }
  }
}
