/** A set that drops its oldest value beyond a size. A value that is added again keeps its place. */
export class BoundedSet<T> extends Set<T> {
  readonly #max: number
  readonly #oldest: Oldest<T>

  /** `max`: how many values there may be, at least 1. */
  constructor(max: number) {
    super()
    this.#max = max
    this.#oldest = new Oldest(this, max)
  }

  override add(value: T): this {
    super.add(value)
    if (this.size > this.#max) super.delete(this.#oldest.next())
    return this
  }

  override delete(value: T): boolean {
    this.#oldest.noteRemoval()
    return super.delete(value)
  }
}

/** A map that drops its oldest entry beyond a size. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number
  readonly #oldest: Oldest<K>

  /** `max`: how many entries there may be, at least 1. */
  constructor(max: number) {
    super()
    this.#max = max
    this.#oldest = new Oldest(this, max)
  }

  /** Sets a value; a key that is known keeps its place. */
  override set(key: K, value: V): this {
    super.set(key, value)
    if (this.size > this.#max) super.delete(this.#oldest.next())
    return this
  }

  /** Sets a value, and makes its entry the newest: the one that was set so longest ago is dropped first. */
  setNewest(key: K, value: V): this {
    this.delete(key)
    return this.set(key, value)
  }

  override delete(key: K): boolean {
    this.#oldest.noteRemoval()
    return super.delete(key)
  }
}

/**
 * Finds the oldest key repeatedly. A new iterator would step over every slot removed since the table last grew; this
 * one continues. An idle iterator keeps old tables alive, so it restarts after many removals.
 */
class Oldest<Key> {
  readonly #of: { keys(): Iterator<Key> }
  readonly #max: number
  #keys: Iterator<Key> | null = null
  #removals = 0

  constructor(of: { keys(): Iterator<Key> }, max: number) {
    this.#of = of
    this.#max = max
  }

  /** The oldest key; its caller removes it. There must be one. */
  next(): Key {
    this.#keys ??= this.#of.keys()
    this.#removals = 0
    return this.#keys.next().value as Key
  }

  /** Another key may be removed. */
  noteRemoval(): void {
    if (++this.#removals > this.#max) this.#keys = null
  }
}
