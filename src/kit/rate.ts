import type { Clock } from './clock.js'

/** A rate limit with a burst. */
export interface RateLimit {
  readonly perSecond: number
  /** Largest amount at once after a pause; no single cost may be higher. */
  readonly burst: number
}

/** Keys that are remembered before those with a full bucket are forgotten. */
const SWEEP_AT = 256
/** Least time between two sweeps of a table that is at its bound, in milliseconds. */
const FULL_SWEEP_MS = 100

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

/**
 * A token bucket for each key. Full buckets are forgotten, so the table holds about the active keys. With `maxKeys` it
 * holds no more: further keys share one bucket.
 */
export class RateTable {
  readonly #limit: RateLimit
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #maxKeys: number
  readonly #buckets = new Map<string, TokenBucket>()
  /** Of the keys beyond `maxKeys`. */
  readonly #shared: TokenBucket
  #sweptAt = Number.NEGATIVE_INFINITY

  /** `maxKeys`: keys with a bucket of their own. Default: no bound. */
  constructor(limit: RateLimit, clock: Pick<Clock, 'monotonic'>, maxKeys = Number.POSITIVE_INFINITY) {
    this.#limit = limit
    this.#clock = clock
    this.#maxKeys = maxKeys
    this.#shared = new TokenBucket(limit, clock)
  }

  /** Takes tokens of the key's bucket (one by default); false, and none taken, when there are too few. */
  take(key: string, cost = 1): boolean {
    if (this.#buckets.size >= Math.min(SWEEP_AT, this.#maxKeys) && !this.#buckets.has(key)) this.#sweep()
    return (this.#find(key) ?? this.#newBucket(key)).take(cost)
  }

  /** Undefined for a key that may get a bucket. */
  #find(key: string): TokenBucket | undefined {
    return this.#buckets.get(key) ?? (this.#buckets.size < this.#maxKeys ? undefined : this.#shared)
  }

  #newBucket(key: string): TokenBucket {
    const bucket = new TokenBucket(this.#limit, this.#clock)
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** Milliseconds until the key's bucket has enough tokens; 0 when it has. */
  waitMs(key: string, cost = 1): number {
    return this.#find(key)?.waitMs(cost) ?? 0
  }

  /** Tokens in the key's bucket now. */
  left(key: string): number {
    return this.#find(key)?.left ?? this.#limit.burst
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    // A full table is not read again for every new key.
    if (this.#buckets.size >= this.#maxKeys && now - this.#sweptAt < FULL_SWEEP_MS) return
    this.#sweptAt = now
    for (const [key, bucket] of this.#buckets) if (bucket.isFull) this.#buckets.delete(key)
  }
}
