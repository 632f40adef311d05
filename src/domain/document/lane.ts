import type { CheckedBlock } from './block.js'

/** What waits for what it stands on, and for what is before it. */
export interface Lane {
  /** How many wait. */
  readonly length: number
  /** The one that is next, as it was checked. It may be read anew each time. */
  readonly head: CheckedBlock | undefined
}

/** Things in the order in which they came. */
export class Line<Thing> {
  readonly #things: Thing[] = []
  #next = 0

  /** How many there are. */
  get length(): number {
    return this.#things.length - this.#next
  }

  /** The one that is next. */
  get head(): Thing | undefined {
    return this.#things[this.#next]
  }

  /** Puts one behind all others. */
  push(thing: Thing): void {
    this.#things.push(thing)
  }

  /** Takes the next one; undefined when there is none. */
  shift(): Thing | undefined {
    const thing = this.head
    if (this.length > 0) this.#next++
    // Not one by one: to move a hundred thousand of them each time would take minutes.
    if (this.#next * 2 > this.#things.length) this.#next -= this.#things.splice(0, this.#next).length
    return thing
  }

  /** Forgets all of them. */
  clear(): void {
    this.#things.length = 0
    this.#next = 0
  }
}
