import type { AbortSignalLike } from './clock.js'

/** A signal that a caller can abort, without the host's AbortController. */
export class Abort implements AbortSignalLike {
  // Few listen: a list takes a fraction of what a set does.
  #listeners: (() => void)[] = []
  readonly #onError: (error: unknown) => void
  aborted = false

  /** `onError`: told of what a listener throws. */
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

  /** Aborts; the listeners are called once. What a listener throws is its program's: whoever aborts goes on. */
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
