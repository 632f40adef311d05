import type { Clock } from '../../kit/clock.js'

/** How long a task that was sent to an agent is counted when it does not come, in milliseconds. */
export const MAX_IN_FLIGHT_MS = 2000

/** Tasks that an agent was chosen for and that are not in its queue yet: whoever chooses next counts them. Times are monotonic milliseconds. */
export class LoadEstimate {
  /** Until when each is counted, the oldest first. */
  readonly #until: number[] = []

  /** One is on its way. */
  add(now: number): void {
    this.#until.push(now + MAX_IN_FLIGHT_MS)
  }

  /** One is there, of those that were sent or one that somebody asked for by name: then one too few is counted for a moment. */
  arrived(): void {
    this.#until.shift()
  }

  /** How many there are. What was refused, waits for a person or was only a proposal never comes, and is forgotten. */
  count(now: number): number {
    while ((this.#until[0] ?? Number.POSITIVE_INFINITY) <= now) this.#until.shift()
    return this.#until.length
  }
}

/** What this node has agents of other nodes do, by their addresses: how busy they are otherwise is not known here. */
export class AskedElsewhere {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Requests that have not ended. */
  readonly #open = new Map<string, number>()
  readonly #expected = new Map<string, LoadEstimate>()

  constructor({ clock }: { readonly clock: Pick<Clock, 'monotonic'> }) {
    this.#clock = clock
  }

  /** It was chosen for a task, which is on its way to be asked for. */
  expect(address: string): void {
    const expected = this.#expected.get(address) ?? new LoadEstimate()
    this.#expected.set(address, expected)
    expected.add(this.#clock.monotonic())
  }

  /** A request to it begins. */
  begun(address: string): void {
    this.#open.set(address, (this.#open.get(address) ?? 0) + 1)
    this.#expected.get(address)?.arrived()
  }

  /** One has ended. */
  ended(address: string): void {
    const left = (this.#open.get(address) ?? 0) - 1
    if (left > 0) this.#open.set(address, left)
    else this.#open.delete(address)
  }

  /** How many there are, under way and on their way. */
  tasks(address: string): number {
    const expected = this.#expected.get(address)?.count(this.#clock.monotonic()) ?? 0
    if (expected === 0) this.#expected.delete(address)
    return (this.#open.get(address) ?? 0) + expected
  }
}
