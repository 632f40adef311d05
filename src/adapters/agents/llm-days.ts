import type { Clock } from '../../kit/clock.js'

const DAY_MS = 86_400_000

/** Tokens that agents have used since the day (UTC) began, or since the node started when that was later. */
export class TokenDays {
  readonly #clock: Pick<Clock, 'now'>
  readonly #used = new Map<string, number>()
  #day = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** What an agent has left of its budget for the day; never negative. */
  left(agentId: string, budget: number): number {
    this.#turn()
    return Math.max(0, budget - (this.#used.get(agentId) ?? 0))
  }

  /** Notes what an agent has used. */
  spend(agentId: string, tokens: number): void {
    this.#turn()
    this.#used.set(agentId, (this.#used.get(agentId) ?? 0) + tokens)
  }

  /** Seconds until the next day begins; at least 1. */
  untilNextDay(): number {
    return Math.max(1, Math.ceil((DAY_MS - (this.#clock.now() % DAY_MS)) / 1000))
  }

  /** A clock that was put back does not give the budget of a day twice. */
  #turn(): void {
    const day = Math.floor(this.#clock.now() / DAY_MS)
    if (day <= this.#day) return
    this.#day = day
    this.#used.clear()
  }
}
