/**
 * A map of entries that live for one call. A native map that is emptied and refilled allocates long-lived memory each
 * time, which only a full collection frees. This one starts anew when it is emptied.
 */
export class TransientMap<K, V> {
  /** The only entry: most of the time there is no more than one, which needs no map. */
  #one: { readonly key: K; value: V } | null = null
  /** All entries, where there were several since it was empty. */
  #all: Map<K, V> | null = null

  /** Entries that it has. */
  get size(): number {
    return this.#all?.size ?? (this.#one === null ? 0 : 1)
  }

  /** The value of a key; undefined for none. */
  get(key: K): V | undefined {
    if (this.#all !== null) return this.#all.get(key)
    return this.#one?.key === key ? this.#one.value : undefined
  }

  /** Is there a value under a key? */
  has(key: K): boolean {
    return this.#all !== null ? this.#all.has(key) : this.#one !== null && this.#one.key === key
  }

  /** Puts a value under a key, in the place of the one that it had. */
  set(key: K, value: V): void {
    if (this.#all !== null) this.#all.set(key, value)
    else if (this.#one === null) this.#one = { key, value }
    else if (this.#one.key === key) this.#one.value = value
    else {
      this.#all = new Map([
        [this.#one.key, this.#one.value],
        [key, value]
      ])
      this.#one = null
    }
  }

  /** Was it there? */
  delete(key: K): boolean {
    if (!this.has(key)) return false
    if (this.#all !== null && this.#all.size > 1) return this.#all.delete(key)
    this.#all = null
    this.#one = null
    return true
  }

  /** The values, in the order in which their keys came. */
  values(): IterableIterator<V> {
    return this.#all?.values() ?? (this.#one === null ? [] : [this.#one.value]).values()
  }
}

/** Items that live for one call, without order. Adding and removing one allocates no memory. */
export class Bag<T> {
  readonly #items: T[] = []

  /** Adds one that is not in it. */
  add(item: T): void {
    this.#items.push(item)
  }

  /** Removes an item; was it there? The newest items are found first. */
  delete(item: T): boolean {
    const at = this.#items.lastIndexOf(item)
    if (at === -1) return false
    const last = this.#items.pop()
    if (last !== undefined && at < this.#items.length) this.#items[at] = last
    return true
  }

  /** How many there are. */
  get size(): number {
    return this.#items.length
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#items.values()
  }
}

/** A type with members that can be set: of an object that is built member by member. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }
