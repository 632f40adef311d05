import type { Clock, Timer } from '../../../kit/clock.js'

/** A time and the action that is due then. */
class Deadline {
  /** On the monotonic clock. */
  readonly at: number
  readonly run: () => void
  readonly #among: Set<Deadline>

  constructor(at: number, run: () => void, among: Set<Deadline>) {
    this.at = at
    this.run = run
    this.#among = among
  }

  /** Cancels it. */
  clear(): void {
    this.#among.delete(this)
  }
}

/** Deadlines of one length, the next one first. */
interface Queue {
  readonly waiting: Set<Deadline>
  timer: Timer | null
}

/**
 * The deadlines of many calls. Nearly all calls end earlier, and most deadlines have one length. So each length has one
 * timer, which runs expired deadlines and continues with the next. A timer for each call took a good part of a call's
 * own time.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #queues = new Map<number, Queue>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `run` after `ms` milliseconds, unless it is cleared. */
  after(ms: number, run: () => void): { clear(): void } {
    const queue = this.#queues.get(ms) ?? { waiting: new Set<Deadline>(), timer: null }
    this.#queues.set(ms, queue)
    const deadline = new Deadline(this.#clock.monotonic() + ms, run, queue.waiting)
    queue.waiting.add(deadline)
    queue.timer ??= this.#clock.after(ms, () => this.#look(ms, queue))
    return deadline
  }

  #look(ms: number, queue: Queue): void {
    queue.timer = null
    const now = this.#clock.monotonic()
    for (const deadline of queue.waiting) {
      if (deadline.at > now) {
        queue.timer ??= this.#clock.after(deadline.at - now, () => this.#look(ms, queue))
        return
      }
      queue.waiting.delete(deadline)
      deadline.run()
    }
    if (queue.timer === null) this.#queues.delete(ms)
  }
}
