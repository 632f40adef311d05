/** Stops a subscription. */
export type Unsubscribe = () => void

/** A typed set of listeners. A listener that throws does not stop the others; its error goes to `onError`. */
export class Emitter<T> {
  readonly #listeners = new Set<(value: T) => void>()
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Adds a listener; call the result to remove it. */
  on(listener: (value: T) => void): Unsubscribe {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Calls every listener in the order of subscription. */
  emit(value: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(value)
      } catch (error) {
        this.#onError(error)
      }
    }
  }

  /** How many listen. */
  get size(): number {
    return this.#listeners.size
  }
}
