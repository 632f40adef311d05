/**
 * The signal of one run: aborts with its caller's, or on request. It is made on first use: most handlers never use it,
 * and making one costs more than the rest of a call.
 */
export class RunSignal {
  readonly #caller: AbortSignal
  #controller: AbortController | null = null
  #aborted: { readonly reason: unknown } | null = null

  constructor(caller: AbortSignal) {
    this.#caller = caller
  }

  /** Always the same one. */
  get signal(): AbortSignal {
    if (this.#controller !== null) return this.#controller.signal
    this.#controller = new AbortController()
    if (this.#aborted !== null) this.#controller.abort(this.#aborted.reason)
    else if (this.#caller.aborted) this.#leave()
    else this.#caller.addEventListener('abort', this.#leave, { once: true })
    return this.#controller.signal
  }

  /** Aborts it; a second time does nothing. */
  abort(reason: unknown): void {
    this.#aborted ??= { reason }
    this.#controller?.abort(reason)
  }

  /** Lets go of the caller's signal: the run is over. */
  release(): void {
    if (this.#controller !== null) this.#caller.removeEventListener('abort', this.#leave)
  }

  readonly #leave = (): void => this.abort(this.#caller.reason)
}
