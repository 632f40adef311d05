/** A document is measured again once it grew by this part of what it may have: 256 KiB of 16 MiB. */
const STEP_PART = 64

/** Bytes from which on a document that may have at most `most` is full. */
export function fullBytes(most: number): number {
  return most - Math.floor(most / STEP_PART)
}

/**
 * How large a document is, as one update. To measure it is to write all of it, so that is done once for each step that it
 * grows, and what came since is only added up: deleted text counts in that sum. Hence it is full a step before the most it may have.
 */
export class DocumentSize {
  readonly #full: number
  readonly #step: number
  readonly #measure: () => number
  /** As it was measured last, and what came since. */
  #measured = 0
  #grown = 0

  constructor(most: number, measure: () => number) {
    this.#full = fullBytes(most)
    this.#step = Math.floor(most / STEP_PART)
    this.#measure = measure
  }

  /** An update of so many bytes came. */
  grow(bytes: number): void {
    this.#grown += bytes
  }

  /** Is it so large that nothing more may come? Never says no at the most it may have. */
  isFull(): boolean {
    if (this.#measured + this.#grown >= this.#full && this.#grown >= this.#step) this.exact()
    return this.#measured >= this.#full
  }

  /** Its size now, measured if it changed. */
  exact(): number {
    if (this.#grown > 0) this.#measured = this.#measure()
    this.#grown = 0
    return this.#measured
  }
}
