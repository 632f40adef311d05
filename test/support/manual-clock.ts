import type { Clock, Timer } from '../../src/kit/clock.js'

interface Entry {
  at: number
  readonly order: number
  readonly periodMs: number | null
  readonly run: () => void
}

/** A clock that stands still until told: timers run inside {@link ManualClock.advance}, in the order they are due. */
export class ManualClock implements Clock {
  #now: number
  #elapsed = 0
  #order = 0
  readonly #entries = new Set<Entry>()

  /** `startMs`: what `now` says at first, unix milliseconds. */
  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#elapsed
  }

  after(delayMs: number, run: () => void): Timer {
    return this.#add({ at: this.#elapsed + Math.max(0, delayMs), order: this.#order++, periodMs: null, run })
  }

  every(periodMs: number, run: () => void): Timer {
    return this.#add({ at: this.#elapsed + periodMs, order: this.#order++, periodMs, run })
  }

  clear(timer: Timer | null): void {
    if (timer !== null) this.#entries.delete(timer as Entry)
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#entries.size
  }

  /** Is a timer due without any time passing? */
  get isDue(): boolean {
    return this.#due(this.#elapsed) !== null
  }

  /** Moves time on and runs what is due, each at its own moment. */
  advance(ms: number): void {
    const end = this.#elapsed + ms
    while (this.step(end)) continue
    this.#move(end - this.#elapsed)
  }

  /**
   * Moves time on to the next timer that is due by `end` (on the monotonic clock), and runs that one alone; false for
   * none.
   */
  step(end: number): boolean {
    const next = this.#due(end)
    if (next === null) return false
    this.#move(next.at - this.#elapsed)
    if (next.periodMs === null) this.#entries.delete(next)
    else next.at += next.periodMs
    next.run()
    return true
  }

  /** Sets the wall clock alone, as a person or NTP would. */
  setNow(ms: number): void {
    this.#now = ms
  }

  #add(entry: Entry): Timer {
    this.#entries.add(entry)
    return entry
  }

  #due(end: number): Entry | null {
    let first: Entry | null = null
    for (const one of this.#entries) {
      if (one.at > end) continue
      if (first === null || one.at < first.at || (one.at === first.at && one.order < first.order)) first = one
    }
    return first
  }

  #move(ms: number): void {
    this.#elapsed += ms
    this.#now += ms
  }
}
