import type { AbortSignalLike } from '../kit/clock.js'

/** A signal that a caller can abort, without the host's AbortController. */
export class Abort implements AbortSignalLike {
  readonly #listeners = new Set<() => void>()
  aborted = false

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** Aborts; the listeners are called once. */
  abort(): void {
    if (this.aborted) return
    this.aborted = true
    for (const listener of [...this.#listeners]) listener()
    this.#listeners.clear()
  }
}
