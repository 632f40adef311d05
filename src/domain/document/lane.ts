import type { CheckedBlock } from './block.js'

/** Blocks that wait for what they stand on, and for those before them. */
export class Lane {
  readonly #blocks: CheckedBlock[] = []
  #next = 0

  /** How many wait. */
  get length(): number {
    return this.#blocks.length - this.#next
  }

  /** The one that is next. */
  get head(): CheckedBlock | undefined {
    return this.#blocks[this.#next]
  }

  /** Puts one behind all others. */
  push(block: CheckedBlock): void {
    this.#blocks.push(block)
  }

  /** Takes the next one; undefined when none waits. */
  shift(): CheckedBlock | undefined {
    const block = this.head
    if (block !== undefined) this.#next++
    // Not one by one: to move a hundred thousand of them each time would take minutes.
    if (this.#next * 2 > this.#blocks.length) this.#next -= this.#blocks.splice(0, this.#next).length
    return block
  }

  /** Forgets all of them. */
  clear(): void {
    this.#blocks.length = 0
    this.#next = 0
  }
}
