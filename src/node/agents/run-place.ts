import type { AbortSignalLike } from '../../kit/clock.js'
import type { AgentQueue } from './agent-queue.js'

/**
 * The place of one run in its agent's queue. While a question of the run to its caller is open, the run counts for no
 * place, if the queue has room for such runs. With the last answer it waits for a place again, before new tasks.
 */
export class RunPlace {
  readonly #queue: AgentQueue
  readonly #caller: string
  readonly #signal: AbortSignalLike
  #questions = 0
  #hasPlace = true
  #isOver = false
  #back: Promise<void> | null = null
  #stop: () => void = () => {}

  /** `caller`: the node that asks for the run. */
  constructor(queue: AgentQueue, caller: string, signal: AbortSignalLike) {
    this.#queue = queue
    this.#caller = caller
    this.#signal = signal
  }

  /** Does a question of the run hold its place while other work waits for one? */
  get isNeeded(): boolean {
    return this.#hasPlace && this.#queue.waiting > 0
  }

  /** Runs a question, and resolves with its answer when the run has a place again or is aborted. */
  async during<T>(question: () => Promise<T>): Promise<T> {
    // A late question of a run that is over gives no place back: it has none.
    if (this.#isOver) return await question()
    if (this.#questions++ === 0 && this.#hasPlace) this.#hasPlace = !this.#queue.suspend(this.#caller)
    try {
      return await question()
    } finally {
      if (--this.#questions === 0 && !this.#hasPlace && !this.#isOver) await (this.#back ??= this.#return())
    }
  }

  /** The run is over. */
  end(): void {
    this.#isOver = true
    this.#stop()
    if (this.#hasPlace) this.#queue.release()
    else this.#queue.leave(this.#caller)
  }

  #return(): Promise<void> {
    return new Promise((resolve) => {
      const placed = (): void => {
        this.#hasPlace = true
        stop()
      }
      const stop = (): void => {
        this.#stop = () => {}
        this.#back = null
        this.#queue.stay(placed)
        this.#signal.removeEventListener('abort', stop)
        resolve()
      }
      this.#stop = stop
      this.#signal.addEventListener('abort', stop)
      if (this.#signal.aborted) stop()
      else this.#queue.resume(this.#caller, placed)
    })
  }
}
