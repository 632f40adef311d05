/**
 * Limit of the bytes of blocks that are requested from a peer, or read for it, at once. One block is always allowed.
 */
const WINDOW_BYTES = 262_144
/** First limit of blocks once their average size is known; before that it is one. */
const FIRST_BLOCKS = 16
/**
 * Largest limit of blocks: blocks of documents are small and many, and are checked and stored together when they arrive
 * together.
 */
const MAX_BLOCKS = 256

/**
 * Limit of the blocks that are requested from a peer, or read for it, at once. The size of a block is known only when
 * it has arrived: each one raises the limit by one, and lowers it to the number of blocks of this size that fit into
 * the window.
 */
export class BlockWindow {
  #blocks = 1
  #isMeasured = false

  /** From 1 to 256. */
  get blocks(): number {
    return this.#blocks
  }

  /**
   * Number of blocks and their bytes in all, as the writer signed them. Counts until the first block: its writer
   * chooses the average.
   */
  signed(blocks: number, bytes: number): void {
    if (blocks > 0 && !this.#isMeasured)
      this.#blocks = Math.min(Math.max(this.#blocks, FIRST_BLOCKS), fitting(bytes / blocks))
  }

  /** A block of this size arrived, or was sent. */
  took(bytes: number): void {
    this.#isMeasured = true
    this.#blocks = Math.min(MAX_BLOCKS, this.#blocks + 1, fitting(bytes))
  }
}

function fitting(bytes: number): number {
  return Math.max(1, Math.floor(WINDOW_BYTES / Math.max(1, bytes)))
}
