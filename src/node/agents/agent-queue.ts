import type { AbortSignalLike } from '../../kit/clock.js'

/** The most tasks that wait for one agent. */
export const MAX_WAITING = 2048

/** The result of waiting for a turn: a place, or the reason for none. */
export type QueueTurn = 'held' | 'aborted' | 'closed' | 'full'

/** The places of one agent and its waiting tasks, first come first served. */
export class AgentQueue {
  readonly #waiting = new Set<(turn: QueueTurn) => void>()
  #places: number
  #running = 0
  #isClosed = false

  /** `places`: runs at once, at least 1. */
  constructor(places: number) {
    this.#places = places
  }

  /** The number of places. */
  get places(): number {
    return this.#places
  }

  /** The number of places in use. */
  get running(): number {
    return this.#running
  }

  /** Tasks without a place yet. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** True when the next task would be refused. */
  get isFull(): boolean {
    return this.#waiting.size >= MAX_WAITING
  }

  /**
   * Takes a place, or waits for one. `held` must be given back by {@link AgentQueue.release}; any other result holds no
   * place.
   */
  take(signal: AbortSignalLike): QueueTurn | Promise<QueueTurn> {
    if (signal.aborted) return 'aborted'
    if (this.#isClosed) return 'closed'
    if (this.#running < this.#places && this.#waiting.size === 0) {
      this.#running++
      return 'held'
    }
    return this.isFull ? 'full' : this.#wait(signal)
  }

  /** Gives a place back; the first waiting task gets it. */
  release(): void {
    this.#running--
    this.#fill()
  }

  /** Changes the number of places. Current runs go on. */
  resize(places: number): void {
    this.#places = places
    this.#fill()
  }

  /** Opens a closed queue with `places` places. Earlier runs keep theirs until they end. */
  reopen(places: number): void {
    this.#isClosed = false
    this.resize(places)
  }

  /** Refuses all tasks until it is opened again; waiting ones get `closed`. */
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
