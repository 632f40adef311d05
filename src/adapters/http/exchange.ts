import type { IncomingMessage, ServerResponse } from 'node:http'
import { Abort } from '../../kit/abort.js'
import type { AbortSignalLike } from '../../kit/clock.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { LongLine } from '../../kit/lines.js'
import type { Principal } from '../../ports/node-api.js'
import type { TokenGrant } from '../../ports/token-api.js'
import { type DrainLimits, drain, readBody, TooLarge } from './body.js'
import { skippedBody, type SkipLimits } from './skipped-body.js'
import type { TokenCall } from './route.js'

/** One request that a route answers, until its answer is complete or cut. */
export class HttpExchange implements TokenCall {
  readonly path: string
  readonly query: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #grant: TokenGrant | null
  readonly #maxBytes: number
  readonly #isWaiting: boolean
  readonly #limits: DrainLimits
  readonly #release: Unsubscribe | null
  #body: Promise<Buffer> | null = null
  // Made when it is asked for, and not the host's, which costs as much as all the rest of a request.
  #signal: Abort | null = null
  #isAborted = false
  #isStopping = false

  /** `isWaiting`: the client sends its body only after `100 Continue` (`Expect: 100-continue`). */
  constructor(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    how: {
      readonly path: string
      readonly query: string
      readonly grant: TokenGrant | null
      readonly maxBytes: number
      readonly isWaiting: boolean
      readonly limits: DrainLimits
    }
  ) {
    this.path = how.path
    this.query = how.query
    this.#request = request
    this.#response = response
    this.#grant = how.grant
    this.#maxBytes = how.maxBytes
    this.#isWaiting = how.isWaiting
    this.#limits = how.limits
    this.#release = how.grant?.onEnd(() => this.#cutOff()) ?? null
  }

  /** Its answer is complete or cut. */
  closed(): void {
    this.#release?.()
    if (this.#response.writableFinished) this.#drainRest()
    else this.abort()
  }

  /** Of the token; a public route has none. */
  get principal(): Principal {
    return this.#token.principal
  }

  get #token(): TokenGrant {
    if (this.#grant === null) throw new Error('a public route has no token')
    return this.#grant
  }

  get signal(): AbortSignalLike {
    this.#signal ??= new Abort()
    if (this.#isAborted) this.#signal.abort()
    return this.#signal
  }

  onAbort(run: () => void): void {
    if (this.#isAborted) run()
    else this.signal.addEventListener('abort', run)
  }

  onTokenEnd(run: () => void): Unsubscribe {
    return this.#token.onEnd(run)
  }

  readBody(): Promise<Buffer> {
    if (this.#body !== null) return this.#body
    this.#body = readBody(this.#request, this.#maxBytes)
    if (this.#isWaiting && !this.#response.headersSent) this.#response.writeContinue()
    return this.#body
  }

  skipBody(limits: SkipLimits): Promise<LongLine | null> {
    if (this.#body === null) return skippedBody(this.#request, limits)
    return this.#body.then(
      () => null,
      (error: unknown) => (error instanceof TooLarge ? skippedBody(this.#request, limits, error.read) : null)
    )
  }

  isStopping(): boolean {
    return this.#isStopping
  }

  /** Tells the handler that it has a second for its answer. */
  stop(): void {
    this.#isStopping = true
    this.abort()
  }

  /** Signals the handler that its answer is no longer needed. */
  abort(): void {
    this.#isAborted = true
    this.#signal?.abort()
  }

  /** Its token ended: the handler may say a last word in this turn. */
  #cutOff(): void {
    this.abort()
    setImmediate(() => {
      const { socket } = this.#request
      if (this.#response.writableFinished) socket.end()
      else socket.destroy()
    })
  }

  /** Node would read on for as long as the client sends. */
  #drainRest(): void {
    const request = this.#request
    if (request.complete) return
    drain(request, this.#limits, () => {
      if (!request.complete) request.socket.destroy()
    })
  }
}
