/** Work of one kind that nodes are asked for while they are killed. */
export class Load {
  /** What was accepted, by a name that the load gives it. */
  accepted = new Map()
  /** Fleet, effects, chance, and the URL of the gateway. */
  given
  #next = 0

  constructor(given) {
    this.given = given
  }

  /** A name that nothing had before: the letter and a number. */
  newName(letter) {
    return `${letter}${this.#next++}`
  }

  /** Runs `step` again and again, so many at once, until `isDone`. */
  async repeat(drivers, isDone, step) {
    const driver = async () => {
      while (!isDone()) await step()
    }
    await Promise.all(Array.from({ length: drivers }, driver))
  }
}
