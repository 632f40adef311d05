import type { AbortSignalLike } from '../../kit/clock.js'

/** Tasks that may wait for one agent. */
export const MAX_WAITING = 2048

/** What became of waiting for a turn: a place is held, or why there is none. */
export type QueueTurn = 'held' | 'aborted' | 'closed' | 'full'

/** The places of one agent and who waits for them, first come first served. */
export class AgentQueue {
  readonly #waiting = new Set<(turn: QueueTurn) => void>()
  #places: number
  #running = 0
  #isClosed = false

  /** `places`: runs at once, at least 1. */
  constructor(places: number) {
    this.#places = places
  }

  /** Places there are. */
  get places(): number {
    return this.#places
  }

  /** Places held. */
  get running(): number {
    return this.#running
  }

  /** Tasks without a place yet. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Would who comes now be turned away? */
  get isFull(): boolean {
    return this.#waiting.size >= MAX_WAITING
  }

  /** Waits for a place, where none is free. `held` must be given back by {@link AgentQueue.release}; anything else holds nothing. */
  take(signal: AbortSignalLike): QueueTurn | Promise<QueueTurn> {
    if (signal.aborted) return 'aborted'
    if (this.#isClosed) return 'closed'
    if (this.#running < this.#places && this.#waiting.size === 0) {
      this.#running++
      return 'held'
    }
    return this.isFull ? 'full' : this.#wait(signal)
  }

  /** Gives a place back; the first who waits gets it. */
  release(): void {
    this.#running--
    this.#fill()
  }

  /** The agent takes so many runs at once from now on. Runs under way go on. */
  resize(places: number): void {
    this.#places = places
    this.#fill()
  }

  /** The agent is back, with so many places. Runs from before it went keep theirs until they end. */
  reopen(places: number): void {
    this.#isClosed = false
    this.resize(places)
  }

  /** Nobody gets a place until it is opened again; who waits is told so. */
  close(): void {
    this.#isClosed = true
    for (const settle of [...this.#waiting]) settle('closed')
  }

  #fill(): void {
    for (const settle of this.#waiting) {
      if (this.#running >= this.#places) return
      this.#running++
      settle('held')
    }
  }

  #wait(signal: AbortSignalLike): Promise<QueueTurn> {
    return new Promise((resolve) => {
      const settle = (turn: QueueTurn): void => {
        this.#waiting.delete(settle)
        signal.removeEventListener('abort', onAbort)
        resolve(turn)
      }
      const onAbort = (): void => settle('aborted')
      this.#waiting.add(settle)
      signal.addEventListener('abort', onAbort)
    })
  }
}
