import { KeyFilter } from './key-filter.js'

/** Keys that were asked for in vain before it is worth to learn which ones there are. */
const PATIENCE = 1000
/** Keys of the first filter; the next ones take four times as many each. */
const FIRST = 65_536
const GROWTH = 4

/**
 * Saves a store most reads of keys that it does not have. Once many were asked for in vain it learns, in the
 * background, which ones there are: 2 to 8 bytes of memory for each. Until then, and whenever there are more than it
 * has room for, any key may be there.
 */
export class KnownKeys {
  readonly #all: () => AsyncIterable<string>
  #known: KeyFilter | null = null
  /** Takes what is added while it is filled. */
  #next: KeyFilter | null = null
  #learning: Promise<void> | null = null
  #vain = 0
  #isClosed = false

  /** `all`: the keys in the store, those that are being written now as well. */
  constructor(all: () => AsyncIterable<string>) {
    this.#all = all
  }

  /** False: the store does not have it. */
  mayHave(key: string): boolean {
    return this.#known === null || this.#known.mayHave(key)
  }

  /** A key that might have been there was not. */
  missed(): void {
    if (++this.#vain < PATIENCE || this.#known !== null) return
    this.#learning ??= this.#learn().finally(() => {
      this.#learning = null
    })
  }

  /** A key is about to be written. */
  add(key: string): void {
    this.#next?.add(key)
    this.#known?.add(key)
    if (this.#known?.isFull === true) this.#forget()
  }

  /** Ends it. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#learning
  }

  #forget(): void {
    this.#known = null
    this.#vain = 0
  }

  /** Half of the room is left for keys to come. */
  async #learn(): Promise<void> {
    let capacity = FIRST
    let next = new KeyFilter(capacity)
    try {
      do {
        this.#next = next = new KeyFilter(capacity)
        for await (const key of this.#all()) {
          if (this.#isClosed) return
          next.add(key)
          if (2 * next.count > capacity) break
        }
        capacity *= GROWTH
      } while (2 * next.count > capacity / GROWTH)
      this.#known = next
    } catch {
      // The store cannot be read now: it is asked for every key as before.
    } finally {
      this.#next = null
      this.#vain = 0
    }
  }
}
