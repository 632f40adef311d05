import type { AbortSignalLike } from './clock.js'

/** A signal that a caller can abort, without the host's AbortController. */
export class Abort implements AbortSignalLike {
  // There are few listeners: a list costs a fraction of a set.
  #listeners: (() => void)[] = []
  readonly #onError: (error: unknown) => void
  aborted = false

  /** `onError`: called with errors that listeners throw. */
  constructor(onError: (error: unknown) => void = () => {}) {
    this.#onError = onError
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  /** Aborts and calls the listeners once. Errors of listeners do not reach the caller. */
  abort(): void {
    if (this.aborted) return
    this.aborted = true
    for (const listener of this.#listeners.splice(0)) {
      try {
        listener()
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}
