import type { Clock, Timer } from '../../src/kit/clock.js'

/** The clock of one process of a node: it has a wall time of its own, and its timers end with the process. */
export class NodeClock implements Clock {
  readonly #world: Clock
  readonly #skewMs: () => number
  readonly #timers = new Set<Timer>()
  #isDead = false

  /** `skewMs`: how far the node's wall clock is ahead now. */
  constructor(world: Clock, skewMs: () => number) {
    this.#world = world
    this.#skewMs = skewMs
  }

  now(): number {
    return Math.floor(this.#world.now() + this.#skewMs())
  }

  monotonic(): number {
    return this.#world.monotonic()
  }

  after(delayMs: number, run: () => void): Timer {
    if (this.#isDead) return {}
    const timer = this.#world.after(delayMs, () => {
      this.#timers.delete(timer)
      run()
    })
    this.#timers.add(timer)
    return timer
  }

  every(periodMs: number, run: () => void): Timer {
    if (this.#isDead) return {}
    const timer = this.#world.every(periodMs, run)
    this.#timers.add(timer)
    return timer
  }

  clear(timer: Timer | null): void {
    if (timer !== null) this.#timers.delete(timer)
    this.#world.clear(timer)
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size
  }

  /** The process ends here and now: none of its timers runs any more. */
  kill(): void {
    this.#isDead = true
    for (const timer of [...this.#timers]) this.clear(timer)
  }
}
