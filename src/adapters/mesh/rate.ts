import type { Clock } from '../../kit/clock.js'

/** How much of something one key may do. */
export interface RateLimit {
  readonly perSecond: number
  /** How many at once after a pause. */
  readonly burst: number
}

/** Keys that are remembered before those with a full bucket are forgotten. */
const SWEEP_AT = 256

/** A token bucket for each key. Full buckets are forgotten, so the table stays about as large as what goes on. */
export class RateTable {
  readonly #limit: RateLimit
  readonly #clock: Clock
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /** Takes tokens of the key's bucket (one by default); false, and none taken, when there are not as many. */
  take(key: string, cost = 1): boolean {
    const now = this.#clock.monotonic()
    if (this.#buckets.size >= SWEEP_AT && !this.#buckets.has(key)) this.#sweep(now)
    const tokens = this.#tokens(key, now)
    const isAllowed = tokens >= cost
    this.#buckets.set(key, { tokens: isAllowed ? tokens - cost : tokens, at: now })
    return isAllowed
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  #tokens(key: string, now: number): number {
    const bucket = this.#buckets.get(key)
    const { burst, perSecond } = this.#limit
    return bucket === undefined ? burst : Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
  }

  #sweep(now: number): void {
    for (const key of this.#buckets.keys()) if (this.#tokens(key, now) >= this.#limit.burst) this.#buckets.delete(key)
  }
}
