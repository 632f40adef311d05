import type { Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import type { NodeStore } from '../../../ports/storage.js'

const DAY_MS = 86_400_000
/** Name of the stored document. */
const DOCUMENT = 'llm-days'

/**
 * Dependencies of {@link TokenDays}. `store`: keeps the counts across restarts; null: none. `onFault`: receives store
 * errors.
 */
export interface TokenDaysDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly store: Pick<NodeStore, 'read' | 'write'> | null
  onFault(error: unknown): void
}

/** Tokens that agents have used since the day (UTC) began. */
export class TokenDays {
  readonly #deps: TokenDaysDeps
  readonly #used = new Map<string, number>()
  #day = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | null = null
  /** Writes run one after the other; a waiting write includes the tokens spent meanwhile. */
  #writing: Promise<void> = Promise.resolve()
  #waiting: Promise<void> | null = null

  constructor(deps: TokenDaysDeps) {
    this.#deps = deps
  }

  /** Resolves when the usage before the node's start is loaded. Never rejects. */
  ready(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  /** Tokens left of an agent's budget for the day; never negative. */
  left(agentId: string, budget: number): number {
    this.#turn()
    return Math.max(0, budget - (this.#used.get(agentId) ?? 0))
  }

  /** Counts tokens of an agent. Resolves when they are stored. Never rejects. */
  spend(agentId: string, tokens: number): Promise<void> {
    this.#turn()
    this.#used.set(agentId, (this.#used.get(agentId) ?? 0) + tokens)
    this.#waiting ??= this.#writing = this.#writing.then(() => this.#write())
    return this.#waiting
  }

  /** Seconds until the next day begins; at least 1. */
  untilNextDay(): number {
    return Math.max(1, Math.ceil((DAY_MS - (this.#deps.clock.now() % DAY_MS)) / 1000))
  }

  async #load(): Promise<void> {
    const { store, onFault } = this.#deps
    try {
      const kept = await store?.read(DOCUMENT)
      if (!isRecord(kept) || typeof kept['day'] !== 'number' || !isRecord(kept['used'])) return
      this.#turn()
      if (kept['day'] < this.#day) return
      this.#day = kept['day']
      for (const [id, tokens] of Object.entries(kept['used']))
        if (typeof tokens === 'number') this.#used.set(id, (this.#used.get(id) ?? 0) + tokens)
    } catch (error) {
      onFault(error)
    }
  }

  async #write(): Promise<void> {
    await this.ready()
    this.#waiting = null
    await this.#deps.store
      ?.write(DOCUMENT, { day: this.#day, used: Object.fromEntries(this.#used) })
      .catch(this.#deps.onFault)
  }

  /** A clock that was put back does not give the budget of a day twice. */
  #turn(): void {
    const day = Math.floor(this.#deps.clock.now() / DAY_MS)
    if (day <= this.#day) return
    this.#day = day
    this.#used.clear()
  }
}
