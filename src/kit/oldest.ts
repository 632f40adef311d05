/**
 * Finds the oldest key of a map or set that loses its oldest ones, again and again. A fresh look would step each time over
 * the room of all that was deleted since the map last grew; this one goes on where it stood.
 */
export class Oldest<Key> {
  readonly #of: { keys(): Iterator<Key> }
  #keys: Iterator<Key>

  constructor(of: { keys(): Iterator<Key> }) {
    this.#of = of
    this.#keys = of.keys()
  }

  /** The oldest key; undefined when there is none. Its caller deletes it before asking again: it is not given twice. */
  next(): Key | undefined {
    const step = this.#keys.next()
    if (step.done !== true) return step.value
    this.#keys = this.#of.keys()
    const first = this.#keys.next()
    return first.done === true ? undefined : first.value
  }
}
