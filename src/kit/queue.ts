import type { AbortSignalLike } from './clock.js'

/**
 * An unbounded-looking async iterable with a hard cap: a writer pushes, one reader iterates.
 * When `max` values wait unread, further ones are dropped and `onGap` builds one value that says so. Where each value
 * makes those before it needless (`onGap` null), the oldest go instead, without a word.
 */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  readonly #values: T[] = []
  readonly #max: number
  readonly #onGap: ((lost: number) => T) | null
  #lost = 0
  #wake: (() => void) | null = null
  #ended = false
  #fault: Error | null = null
  /** A signal may live much longer than its queues. */
  readonly #release: () => void

  constructor(max: number, onGap: ((lost: number) => T) | null, signal?: AbortSignalLike) {
    this.#max = max
    this.#onGap = onGap
    if (signal?.aborted) this.#ended = true
    const abort = (): void => this.end()
    signal?.addEventListener('abort', abort)
    this.#release = () => signal?.removeEventListener('abort', abort)
  }

  /** Adds a value; after the end it is dropped. */
  push(value: T): void {
    if (this.#ended) return
    const isFull = this.#values.length >= this.#max
    if (isFull && this.#onGap !== null) this.#lost++
    else {
      if (isFull) this.#values.shift()
      this.#values.push(value)
    }
    this.#wake?.()
  }

  /** Ends the queue: waiting values are still read, then the reader gets the fault, if there is one. */
  end(fault: Error | null = null): void {
    if (!this.#ended) this.#fault = fault
    this.#ended = true
    this.#release()
    this.#wake?.()
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return this
  }

  async next(): Promise<IteratorResult<T>> {
    for (;;) {
      const value = this.#values.shift()
      if (value !== undefined) return { done: false, value }
      if (this.#lost > 0 && this.#onGap !== null) {
        const lost = this.#lost
        this.#lost = 0
        return { done: false, value: this.#onGap(lost) }
      }
      if (this.#ended) return this.#over()
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

  /** The fault is thrown once. */
  #over(): IteratorResult<T> {
    const fault = this.#fault
    this.#fault = null
    if (fault !== null) throw fault
    return { done: true, value: undefined }
  }
}
