import type Hypercore from 'hypercore'
import type { Clock, Timer } from '../../../kit/clock.js'
import { BLOCK_LIMITS } from '../../../domain/document/block.js'
import { ENVELOPE_LIMITS } from '../../../domain/envelope/limits.js'
import { BlockWindow } from '../links/block-window.js'

/** Bytes of a block as its core holds it: in an envelope. */
export const MAX_STORED_BLOCK_BYTES = ENVELOPE_LIMITS.maxHeaderBytes + BLOCK_LIMITS.maxBytes

/** Dependencies of {@link StreamFetch}. */
export interface StreamFetchDeps {
  readonly clock: Clock
  /** The core and the first and last (exclusive; -1: no end) of its blocks to request; null: none now. */
  wanted(): { readonly core: Hypercore; readonly start: number; readonly end: number } | null
  /**
   * Counts bytes that came from peers (0: none). Gives the milliseconds after which more of the stream may be
   * requested.
   */
  restMs(bytes: number): number
}

/**
 * Requests the blocks of one stream: as many at once as fit into the window, none during a rest, and none after an
 * oversized one.
 */
export class StreamFetch {
  readonly #deps: StreamFetchDeps
  readonly #window = new BlockWindow()
  #download: ReturnType<Hypercore['download']> | null = null
  /** Until it fires nothing is requested. */
  #rest: Timer | null = null
  #blocks = 0
  #isOversized = false

  constructor(deps: StreamFetchDeps) {
    this.#deps = deps
  }

  /** Blocks that came from peers. */
  get blocks(): number {
    return this.#blocks
  }

  /** A peer gave a block that no document has: the stream is not fetched any further. */
  get isOversized(): boolean {
    return this.#isOversized
  }

  /** Its writer signed a new length: limits the requests under way to each peer, the same for a near and a far one. */
  signed(core: Hypercore): void {
    this.#window.signed(core.length, core.byteLength)
    this.#limit(core)
  }

  /**
   * A block came from a peer; false: it is oversized. Requests nothing for a while when blocks come faster than they
   * may.
   */
  took(core: Hypercore, bytes: number): boolean {
    if (bytes > MAX_STORED_BLOCK_BYTES) {
      this.#isOversized = true
      this.pause()
      return false
    }
    this.#blocks++
    this.#window.took(bytes)
    this.#limit(core)
    this.slowDown(bytes)
    return true
  }

  /** Requests the wanted blocks, in the place of earlier requests. */
  start(): void {
    const wanted = this.#rest === null && !this.#isOversized ? this.#deps.wanted() : null
    if (wanted === null) return
    this.pause()
    const { core, start, end } = wanted
    this.#download = core.download({ start, end })
  }

  /** Ends the requests under way. */
  pause(): void {
    this.#download?.destroy()
  }

  /** Rests when `bytes` more are too many by now. */
  slowDown(bytes: number): void {
    const { clock, restMs, wanted } = this.#deps
    const ms = restMs(bytes)
    if (ms === 0 || wanted() === null) return
    this.pause()
    clock.clear(this.#rest)
    this.#rest = clock.after(ms, () => {
      this.#rest = null
      this.start()
    })
  }

  /** Continues at once when no rest is due any more: the document may be in use now. */
  resume(): void {
    if (this.#rest === null || this.#deps.restMs(0) > 0) return
    this.#deps.clock.clear(this.#rest)
    this.#rest = null
    this.start()
  }

  /** Requests nothing more. */
  close(): void {
    this.#deps.clock.clear(this.#rest)
  }

  #limit({ core }: Hypercore): void {
    core.replicator.setInflightRange(this.#window.blocks, this.#window.blocks)
  }
}
