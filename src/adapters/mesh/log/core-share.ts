import type { LogCore } from 'autobase'
import { chargeOf, type CoreLimit } from '../../../domain/membership/log-share.js'
import { bytesBefore } from '../cores/core-beginning.js'

/** Blocks that are asked for ahead of the one that is read next. */
const WINDOW = 256

/** The blocks of one core of the log that were read, and the end of the blocks to fetch. */
export class CoreShare {
  readonly #core: LogCore
  readonly #limit: () => CoreLimit
  /** Blocks that were counted, and their bytes. */
  #counted: { readonly blocks: number; readonly bytes: number } = { blocks: 0, bytes: 0 }

  /** `limit`: the limit of the core, asked at each use. */
  constructor(core: LogCore, limit: () => CoreLimit) {
    this.#core = core
    this.#limit = limit
  }

  /**
   * May the stored block at a position be read? `wait`: not before the view names the core's owner. `bytes`: its size.
   */
  async of(at: number, bytes: number): Promise<'read' | 'wait' | 'over'> {
    if (this.#counted.blocks !== at + 1) {
      const before =
        this.#counted.blocks === at ? this.#counted.bytes : ((await bytesBefore(this.#core, at)) ?? this.#size())
      this.#counted = { blocks: at + 1, bytes: before + bytes }
    }
    const limit = this.#limit()
    if (chargeOf(at + 1, this.#counted.bytes) <= limit.bytes) return 'read'
    return limit.isKnown ? 'over' : 'wait'
  }

  /**
   * End (exclusive) of the blocks that may be fetched while the one at `at` is read next; `at`: no further. `named`:
   * number of its blocks that blocks of others name.
   */
  end(at: number, named: number): number {
    const { isRevoked } = this.#limit()
    return isRevoked ? Math.max(at, Math.min(this.#end(at), named)) : this.#end(at)
  }

  #end(at: number): number {
    const { length } = this.#core
    const { bytes } = this.#limit()
    // Without a request behind the known end no peer is asked for more. That block may have any size, so it is one at a
    // time.
    if (chargeOf(length, this.#size()) <= bytes) return Math.min(at + WINDOW, length + 1)
    // Over its share it is read to the same block as everywhere, one block after the other: the size of the next one is
    // unknown.
    const { blocks, bytes: read } = this.#counted
    return chargeOf(blocks, read) < bytes ? at + 1 : at
  }

  /** Bytes of all blocks that its writer signed, as far as is known here. */
  #size(): number {
    return this.#core.core.state.byteLength
  }
}
