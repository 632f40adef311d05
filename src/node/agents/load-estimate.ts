import type { Clock } from '../../kit/clock.js'

/** How long a task sent to an agent counts when it does not arrive, in milliseconds. */
export const MAX_IN_FLIGHT_MS = 2000

/**
 * Tasks chosen for an agent that are not in its queue yet, so that the next choice counts them. Times are monotonic
 * milliseconds.
 */
export class LoadEstimate {
  /** The end of each one's counting, oldest first. */
  readonly #until: number[] = []

  /** A task is on its way. */
  add(now: number): void {
    this.#until.push(now + MAX_IN_FLIGHT_MS)
  }

  /** A task arrived: an announced one, or one sent by name. After the latter, one too few is counted for a moment. */
  arrived(): void {
    this.#until.shift()
  }

  /**
   * The number of tasks on their way. Refused tasks, tasks that await approval and proposals never arrive; they expire.
   */
  count(now: number): number {
    while ((this.#until[0] ?? Number.POSITIVE_INFINITY) <= now) this.#until.shift()
    return this.#until.length
  }
}

/** The tasks of this node at agents of other nodes, by address. The agents' other load is not known here. */
export class AskedElsewhere {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** The number of unfinished requests. */
  readonly #open = new Map<string, number>()
  readonly #expected = new Map<string, LoadEstimate>()

  constructor({ clock }: { readonly clock: Pick<Clock, 'monotonic'> }) {
    this.#clock = clock
  }

  /** Announces a task chosen for an agent. */
  expect(address: string): void {
    const expected = this.#expected.get(address) ?? new LoadEstimate()
    this.#expected.set(address, expected)
    expected.add(this.#clock.monotonic())
  }

  /** A request to the agent begins. */
  begun(address: string): void {
    this.#open.set(address, (this.#open.get(address) ?? 0) + 1)
    this.#expected.get(address)?.arrived()
  }

  /** A request ended. */
  ended(address: string): void {
    const left = (this.#open.get(address) ?? 0) - 1
    if (left > 0) this.#open.set(address, left)
    else this.#open.delete(address)
  }

  /** The number of unfinished and announced tasks. */
  tasks(address: string): number {
    const expected = this.#expected.get(address)?.count(this.#clock.monotonic()) ?? 0
    if (expected === 0) this.#expected.delete(address)
    return (this.#open.get(address) ?? 0) + expected
  }
}
