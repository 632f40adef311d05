import type { AbortSignalLike } from '../kit/clock.js'

/** A signal that a caller can abort, without the host's AbortController. */
export class Abort implements AbortSignalLike {
  readonly #listeners = new Set<() => void>()
  readonly #onError: (error: unknown) => void
  aborted = false

  /** `onError`: told of what a listener throws. */
  constructor(onError: (error: unknown) => void = () => {}) {
    this.#onError = onError
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** Aborts; the listeners are called once. What a listener throws is its program's: whoever aborts goes on. */
  abort(): void {
    if (this.aborted) return
    this.aborted = true
    const listeners = [...this.#listeners]
    this.#listeners.clear()
    for (const listener of listeners) {
      try {
        listener()
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}
