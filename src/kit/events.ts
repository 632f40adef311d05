/** Stops a subscription. */
export type Unsubscribe = () => void

/** A typed set of listeners. A listener that throws does not stop the others; its error goes to `onError`. */
export class Emitter<T> {
  readonly #listeners = new Set<(value: T) => void>()
  /** The current listeners: changes during an emit do not affect it. Rebuilt after a change. */
  #now: readonly ((value: T) => void)[] | null = null
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Adds a listener; call the result to remove it. */
  on(listener: (value: T) => void): Unsubscribe {
    this.#listeners.add(listener)
    this.#now = null
    return () => {
      this.#listeners.delete(listener)
      this.#now = null
    }
  }

  /** Calls every listener in the order of subscription. */
  emit(value: T): void {
    this.#now ??= [...this.#listeners]
    for (const listener of this.#now) {
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
