/** Something that holds bytes in memory for a client, and can be cut. */
export interface Holder {
  cut(): void
}

/** Bounds the buffers of all clients together. Beyond it the holder of the oldest bytes is cut. */
export class BufferedBytes {
  readonly #max: number
  /** The bytes of each holder, the longest first. */
  readonly #buffered = new Map<Holder, number>()
  #sum = 0

  /** `max`: bytes of all holders together. */
  constructor(max: number) {
    this.#max = max
  }

  /** Bytes of all holders now. */
  get size(): number {
    return this.#sum
  }

  /** Adds bytes of a holder, which may be cut itself. */
  hold(holder: Holder, bytes: number): void {
    this.#buffered.set(holder, (this.#buffered.get(holder) ?? 0) + bytes)
    this.#sum += bytes
    for (const one of this.#buffered.keys()) {
      if (this.#sum <= this.#max) return
      this.release(one)
      one.cut()
    }
  }

  /** Forgets the bytes of a holder. */
  release(holder: Holder): void {
    this.#sum -= this.#buffered.get(holder) ?? 0
    this.#buffered.delete(holder)
  }
}
