/** Bytes of blocks that are asked for, or read for a peer, at once, about; one block at least. */
const WINDOW_BYTES = 524_288
/** Blocks at once as soon as it is known how large they are on the average; before that it is one. */
const FIRST_BLOCKS = 16
/** Blocks at once at most: those of documents are small and many, and what comes together is checked and stored together. */
const MAX_BLOCKS = 512

/**
 * How many blocks may be on the way, or be read for a peer, at once. The size of a block is known only once it is there: with each the
 * number grows by one, as far as so many blocks of its size fit into the window.
 */
export class BlockWindow {
  #blocks = 1

  /** From 1 to 512. */
  get blocks(): number {
    return this.#blocks
  }

  /** The writer signed as many blocks, and bytes of all of them. */
  signed(blocks: number, bytes: number): void {
    if (blocks > 0) this.#blocks = Math.min(Math.max(this.#blocks, FIRST_BLOCKS), fitting(bytes / blocks))
  }

  /** A block of so many bytes came, or went. */
  took(bytes: number): void {
    this.#blocks = Math.min(MAX_BLOCKS, this.#blocks + 1, fitting(bytes))
  }
}

function fitting(bytes: number): number {
  return Math.max(1, Math.floor(WINDOW_BYTES / Math.max(1, bytes)))
}
