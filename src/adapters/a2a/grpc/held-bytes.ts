/** Something that holds bytes in memory for a client, and can be cut. */
export interface Holder {
  cut(): void
}

/** Bounds the bytes that clients make a node hold together. Beyond it whoever has held some for longest is cut. */
export class HeldBytes {
  readonly #max: number
  /** The bytes of each holder, the longest first. */
  readonly #held = new Map<Holder, number>()
  #sum = 0

  /** `max`: bytes of all holders together. */
  constructor(max: number) {
    this.#max = max
  }

  /** Bytes that are held now. */
  get size(): number {
    return this.#sum
  }

  /** A holder holds so many bytes more. It may be cut itself. */
  hold(holder: Holder, bytes: number): void {
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + bytes)
    this.#sum += bytes
    for (const one of this.#held.keys()) {
      if (this.#sum <= this.#max) return
      this.release(one)
      one.cut()
    }
  }

  /** A holder holds nothing any more. */
  release(holder: Holder): void {
    this.#sum -= this.#held.get(holder) ?? 0
    this.#held.delete(holder)
  }
}
