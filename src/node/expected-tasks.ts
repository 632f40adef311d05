/** How long a task that was sent to an agent is counted when it does not come, in milliseconds. */
export const MAX_ON_THE_WAY_MS = 2000

/** Tasks that an agent was chosen for and that are not in its queue yet: whoever chooses next counts them. Times are monotonic milliseconds. */
export class ExpectedTasks {
  /** Until when each is counted, the oldest first. */
  readonly #until: number[] = []

  /** One is on its way. */
  add(now: number): void {
    this.#until.push(now + MAX_ON_THE_WAY_MS)
  }

  /** One is there. Which one does not matter: those that come are as many as those that were sent. */
  arrived(): void {
    this.#until.shift()
  }

  /** How many there are. What was refused, waits for a person or was only a proposal never comes, and is forgotten. */
  count(now: number): number {
    while ((this.#until[0] ?? Number.POSITIVE_INFINITY) <= now) this.#until.shift()
    return this.#until.length
  }
}
