import type Hypercore from 'hypercore'
import type { Clock } from '../../../kit/clock.js'
import { CHOICE_OF_COPY, NodeError, REPAIR_STEPS } from '../../../kit/errors.js'
import { chargeOf, LOG_SHARE_LIMITS } from '../../../domain/membership/log-share.js'

/** How long an append may take to be whole, in milliseconds. */
const SETTLE_MS = 100

/** Dependencies of {@link OwnBlocks}. */
export interface OwnBlocksDeps {
  /** The own writer core. */
  readonly core: Hypercore
  readonly clock: Clock
  /** It was found before. */
  readonly isLost: boolean
  /** Bytes of it that other nodes read. */
  limitBytes(): number
}

/**
 * The blocks of this node's own writer core. When peers have more of them than its home, the home was put back to an
 * older copy. Then this node must write no further block to that core, since it would sign two different blocks of one
 * index.
 */
export class OwnBlocks {
  readonly #deps: OwnBlocksDeps
  /** Resolves when it is found. */
  readonly lost: Promise<void>
  #isLost: boolean
  #tellLost: () => void = () => {}

  constructor(deps: OwnBlocksDeps) {
    const { core, clock } = deps
    this.#deps = deps
    this.#isLost = deps.isLost
    this.lost = new Promise((resolve) => {
      this.#tellLost = resolve
    })
    // This node never has to fetch its own blocks.
    core.on('download', () => this.#found())
    core.on('append', () => void clock.after(SETTLE_MS, () => this.#look()))
    this.#look()
  }

  /** Blocks in it. */
  get length(): number {
    return this.#deps.core.length
  }

  /**
   * Is it too full for further entries? Other nodes read only its share of the log, so other writers append for this
   * node.
   */
  get isFull(): boolean {
    const { length, byteLength } = this.#deps.core.core.state
    return this.#deps.limitBytes() - chargeOf(length, byteLength) < LOG_SHARE_LIMITS.reserveBytes
  }

  /** Does this home lack blocks of the own core? The base would wait for them without an end. */
  get isBehind(): boolean {
    return this.#isLost || this.#lacksBlocks()
  }

  /** Why nothing is written any more, or null. */
  fault(): NodeError | null {
    if (!this.#isLost) return null
    const state = 'the home of this node was copied, or put back to an older copy'
    const message = `${state}: others have more of its log than it has, and it writes nothing more. ${CHOICE_OF_COPY}`
    return new NodeError('STORE_DAMAGED', message, { next: REPAIR_STEPS })
  }

  #lacksBlocks(): boolean {
    const { core } = this.#deps
    return !core.closed && core.contiguousLength < core.length
  }

  #look(): void {
    if (this.#lacksBlocks()) this.#found()
  }

  #found(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#tellLost()
  }
}
