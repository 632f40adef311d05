import * as Y from 'yjs'

/** A document is measured again after growing by this part of its limit: 256 KiB of 16 MiB. */
const STEP_PART = 64
/**
 * Steps from where it is full to where it takes no block that only deletes either. The last update before may have
 * brought it two of them further.
 */
const DELETING_STEPS = 4

/** Bytes from which on a document that may have at most `most` is full. */
export function fullBytes(most: number): number {
  return most - Math.floor(most / STEP_PART)
}

/**
 * Size of a document as one update. Measuring encodes the whole document, so it is done once for each step of growth.
 * Later updates are added up, deleted text included. Hence the document is full one step before its limit.
 */
export class DocumentSize {
  readonly #full: number
  readonly #step: number
  readonly #measure: () => number
  /** The last measurement, and the bytes since. */
  #measured = 0
  #grown = 0
  /** Size deleted since it was found full. */
  #freed = 0

  constructor(most: number, measure: () => number) {
    this.#full = fullBytes(most)
    this.#step = Math.floor(most / STEP_PART)
    this.#measure = measure
  }

  /** An update of that many bytes was applied. */
  grow(bytes: number): void {
    this.#grown += bytes
  }

  /**
   * Something was deleted, and is not forgotten yet. One that is full is measured again once it may be a step smaller.
   */
  shrink(transaction: Y.Transaction): void {
    if (this.#measured < this.#full || transaction.deleteSet.clients.size === 0) return
    const encoder = new Y.UpdateEncoderV1()
    Y.iterateDeletedStructs(transaction, transaction.deleteSet, (struct) => {
      if (struct instanceof Y.Item) struct.content.write(encoder, 0)
    })
    this.#freed += encoder.toUint8Array().byteLength
  }

  /**
   * Is it too large for more content? Always true at its limit. `isDeleting`: too large even for deletions, which can
   * enlarge it a little as they cut the rest.
   */
  isFull(isDeleting = false): boolean {
    if (this.#measured + this.#grown >= this.#full && Math.max(this.#grown, this.#freed) >= this.#step) this.exact()
    return this.#measured >= this.#full + (isDeleting ? DELETING_STEPS * this.#step : 0)
  }

  /** Its size now, measured if it changed. */
  exact(): number {
    if (this.#grown > 0) this.#measured = this.#measure()
    this.#grown = 0
    this.#freed = 0
    return this.#measured
  }
}
