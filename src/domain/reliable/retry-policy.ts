import { jitteredBackoffMs } from '../../kit/backoff.js'

/** When and how often something is tried again (spec mcp-runtime, AACPRetryPolicy). */
export interface RetryPolicy {
  /** Tries in all; may be Infinity. */
  readonly maxAttempts: number
  /** Milliseconds; the most that the first wait takes. */
  readonly baseDelayMs: number
  /** Milliseconds; no wait takes longer. */
  readonly maxDelayMs: number
  /** Each wait may take this many times the one before. */
  readonly backoffMultiplier: number
}

/**
 * The wait before retry number `retry` (the first is 0), in milliseconds: exponential with full jitter. `chance` in [0,
 * 1).
 */
export function retryDelay(
  { baseDelayMs, maxDelayMs, backoffMultiplier }: RetryPolicy,
  retry: number,
  chance: number
): number {
  return jitteredBackoffMs({ baseMs: baseDelayMs, maxMs: maxDelayMs, factor: backoffMultiplier }, retry, chance)
}
