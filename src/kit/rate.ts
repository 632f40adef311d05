import type { Clock } from './clock.js'

/** A rate limit with a burst. */
export interface RateLimit {
  readonly perSecond: number
  /** Largest amount at once after a pause; no single cost may be higher. */
  readonly burst: number
}

/** Keys that are remembered before those with a full bucket are forgotten. */
const SWEEP_AT = 256

/** Tokens that come back with time. */
export class TokenBucket {
  readonly #limit: RateLimit
  readonly #clock: Pick<Clock, 'monotonic'>
  #tokens: number
  #at: number

  constructor(limit: RateLimit, clock: Pick<Clock, 'monotonic'>) {
    this.#limit = limit
    this.#clock = clock
    this.#tokens = limit.burst
    this.#at = clock.monotonic()
  }

  /** Takes tokens; false, and none taken, when there are too few. */
  take(cost = 1): boolean {
    this.#fill()
    if (this.#tokens < cost) return false
    this.#tokens -= cost
    return true
  }

  /** Milliseconds until there are enough tokens; 0 when there are. */
  waitMs(cost: number): number {
    this.#fill()
    return Math.max(0, Math.ceil(((cost - this.#tokens) / this.#limit.perSecond) * 1000))
  }

  /** Tokens that are there now. */
  get left(): number {
    this.#fill()
    return this.#tokens
  }

  /** Has nothing been taken for a while? */
  get isFull(): boolean {
    this.#fill()
    return this.#tokens >= this.#limit.burst
  }

  #fill(): void {
    const { burst, perSecond } = this.#limit
    const now = this.#clock.monotonic()
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
  }
}

/** A token bucket for each key. Full buckets are forgotten, so the table holds about the active keys. */
export class RateTable {
  readonly #limit: RateLimit
  readonly #clock: Clock
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /** Takes tokens of the key's bucket (one by default); false, and none taken, when there are too few. */
  take(key: string, cost = 1): boolean {
    if (this.#buckets.size >= SWEEP_AT && !this.#buckets.has(key)) this.#sweep()
    return (this.#buckets.get(key) ?? this.#newBucket(key)).take(cost)
  }

  #newBucket(key: string): TokenBucket {
    const bucket = new TokenBucket(this.#limit, this.#clock)
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** Milliseconds until the key's bucket has enough tokens; 0 when it has. */
  waitMs(key: string, cost = 1): number {
    return this.#buckets.get(key)?.waitMs(cost) ?? 0
  }

  /** Tokens in the key's bucket now. */
  left(key: string): number {
    return this.#buckets.get(key)?.left ?? this.#limit.burst
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  #sweep(): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isFull) this.#buckets.delete(key)
  }
}
