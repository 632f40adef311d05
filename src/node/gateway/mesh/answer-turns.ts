import { type Clock, wait } from '../../../kit/clock.js'
import type { Abort } from '../../../kit/abort.js'
import type { NodeId } from '../../../kit/ids.js'
import { BusyShare } from '../../peers/busy-share.js'

/** Bytes of answers that a member gets while others are served as well: to read and make 8 MiB takes about half a second. */
const SHARE = { perSecond: 8_388_608, burst: 16_777_216 } as const
/** Bytes that an answer counts for at least: to find out that there is little to say takes time, too. */
const LEAST_BYTES = 4096
/** Wait before it is looked again whether others are served, in milliseconds. */
const AGAIN_MS = 100

/** What giving turns needs. */
export interface AnswerTurnsDeps {
  readonly clock: Clock
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

/** A turn of a call. Its end is told how many bytes the answer had. */
export type EndTurn = (bytes: number) => void

/**
 * When an answer is read, made and handed to its link. Of one member it is one answer at a time, in the order of its calls: no more
 * than that of its answers is in memory. A member over its share waits while others are served, and for nothing else.
 */
export class AnswerTurns {
  readonly #deps: AnswerTurnsDeps
  readonly #share: BusyShare
  /** The end of the last turn that was asked for, of members with calls. */
  readonly #last = new Map<NodeId, Promise<void>>()

  constructor(deps: AnswerTurnsDeps) {
    this.#deps = deps
    this.#share = new BusyShare({ ...deps, limit: SHARE })
  }

  /** Waits for the turn of a call; null: the call is over before it comes. Who gets one must end it. Never rejects. */
  async take(peer: NodeId, signal: Abort): Promise<EndTurn | null> {
    const before = this.#last.get(peer)
    let finish = (): void => {}
    const turn = new Promise<void>((resolve) => {
      finish = () => {
        if (this.#last.get(peer) === turn) this.#last.delete(peer)
        resolve()
      }
    })
    this.#last.set(peer, turn)
    await before
    await this.#pay(peer, signal)
    if (signal.aborted) {
      finish()
      return null
    }
    return (bytes) => {
      this.#share.charge(peer, Math.max(LEAST_BYTES, bytes))
      finish()
    }
  }

  async #pay(peer: NodeId, signal: Abort): Promise<void> {
    while (!signal.aborted && !this.#share.isWithin(peer)) {
      await wait(this.#deps.clock, Math.min(AGAIN_MS, this.#share.waitMs(peer)), signal)
    }
  }
}
