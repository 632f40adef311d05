import type { AbortSignalLike } from './clock.js'

/**
 * An unbounded-looking async iterable with a hard cap: a writer pushes, one reader iterates.
 * When `max` values wait unread, further ones are dropped and `onGap` builds one value that says so.
 */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  readonly #values: T[] = []
  readonly #max: number
  readonly #onGap: (lost: number) => T
  #lost = 0
  #wake: (() => void) | null = null
  #ended = false

  constructor(max: number, onGap: (lost: number) => T, signal?: AbortSignalLike) {
    this.#max = max
    this.#onGap = onGap
    if (signal?.aborted) this.#ended = true
    signal?.addEventListener('abort', () => this.end())
  }

  /** Adds a value; after the end it is dropped. */
  push(value: T): void {
    if (this.#ended) return
    if (this.#values.length >= this.#max) this.#lost++
    else this.#values.push(value)
    this.#wake?.()
  }

  /** No more values; those waiting are still read. */
  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return this
  }

  async next(): Promise<IteratorResult<T>> {
    for (;;) {
      const value = this.#values.shift()
      if (value !== undefined) return { done: false, value }
      if (this.#lost > 0) {
        const lost = this.#lost
        this.#lost = 0
        return { done: false, value: this.#onGap(lost) }
      }
      if (this.#ended) return { done: true, value: undefined }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
  }

  return(): Promise<IteratorResult<T>> {
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }
}
