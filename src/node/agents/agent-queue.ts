import type { AbortSignalLike } from '../../kit/clock.js'

/** The most tasks that wait for one agent. */
export const MAX_WAITING = 2048
/**
 * Runs of one agent without a place, whose questions wait for an answer: in all, and for callers of one node. Each may
 * be a process.
 */
export const MAX_SUSPENDED = 32
/** @see MAX_SUSPENDED */
export const MAX_SUSPENDED_OF_CALLER = 8

/** The result of waiting for a turn: a place, or the reason for none. */
export type QueueTurn = 'held' | 'aborted' | 'closed' | 'full'

/**
 * The places of one agent and its waiting tasks, first come first served. A run may give its place back for a while;
 * then it gets one before the tasks that have not begun.
 */
export class AgentQueue {
  readonly #waiting = new Set<(turn: QueueTurn) => void>()
  /** Suspended runs that want a place again, with their callers. */
  readonly #returning = new Map<() => void, string>()
  /** Suspended runs, by caller. */
  readonly #suspended = new Map<string, number>()
  #suspendedInAll = 0
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

  /** Tasks without a place yet, and suspended runs that want one again. */
  get waiting(): number {
    return this.#waiting.size + this.#returning.size
  }

  /** True when no run is under way, suspended ones included. */
  get isIdle(): boolean {
    return this.#running === 0 && this.#suspendedInAll === 0
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
    if (this.#running < this.#places && this.waiting === 0) {
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

  /**
   * Gives the place of a run for that caller back for a while. False: too many runs did so; it keeps its place. Else it
   * ends by {@link AgentQueue.leave}, or goes on by {@link AgentQueue.resume}.
   */
  suspend(caller: string): boolean {
    const ofCaller = this.#suspended.get(caller) ?? 0
    if (this.#suspendedInAll >= MAX_SUSPENDED || ofCaller >= MAX_SUSPENDED_OF_CALLER) return false
    this.#suspended.set(caller, ofCaller + 1)
    this.#suspendedInAll++
    this.release()
    return true
  }

  /** A suspended run wants a place again: `placed` is called when it has one. A closed queue gives it too. */
  resume(caller: string, placed: () => void): void {
    this.#returning.set(placed, caller)
    this.#fill()
  }

  /** A suspended run no longer waits for a place, and stays suspended. */
  stay(placed: () => void): void {
    this.#returning.delete(placed)
  }

  /** A suspended run is over. */
  leave(caller: string): void {
    const others = (this.#suspended.get(caller) ?? 1) - 1
    if (others > 0) this.#suspended.set(caller, others)
    else this.#suspended.delete(caller)
    this.#suspendedInAll--
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
    for (const [placed, caller] of this.#returning) {
      if (this.#running >= this.#places) return
      this.#running++
      this.#returning.delete(placed)
      this.leave(caller)
      placed()
    }
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
