/**
 * A map of what comes and goes with each call. A host's map that is emptied and filled again and again takes new memory with the
 * long life of the map itself each time, of which it takes the whole heap to be rid: this one begins anew when it is emptied.
 */
export class TransientMap<K, V> {
  #map = new Map<K, V>()

  /** Entries that it has. */
  get size(): number {
    return this.#map.size
  }

  /** The value of a key; undefined for none. */
  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  /** Is there a value under a key? */
  has(key: K): boolean {
    return this.#map.has(key)
  }

  /** Puts a value under a key, in the place of the one that it had. */
  set(key: K, value: V): void {
    this.#map.set(key, value)
  }

  /** Was it there? */
  delete(key: K): boolean {
    if (this.#map.size > 1) return this.#map.delete(key)
    if (!this.#map.has(key)) return false
    this.#map = new Map()
    return true
  }

  /** The values, in the order in which their keys came. */
  values(): IterableIterator<V> {
    return this.#map.values()
  }
}

/** Things that come and go with each call, in no order, without a copy of their own: adding one and taking it out again takes no memory. */
export class Bag<T> {
  readonly #items: T[] = []

  /** Adds one that is not in it. */
  add(item: T): void {
    this.#items.push(item)
  }

  /** Was it in it? Those that came last are found first. */
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
