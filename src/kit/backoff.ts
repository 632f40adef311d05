/** How waits grow: exponentially, from a base up to a cap. */
export interface Backoff {
  /** The first wait, in milliseconds; above 0. */
  readonly baseMs: number
  /** The longest wait, in milliseconds; at least the base. Default: none. */
  readonly maxMs?: number
  /** Each wait is this many times the one before; at least 1. Default 2. */
  readonly factor?: number
}

/** The wait in milliseconds after `count` earlier ones: 0 or less gives the base. */
export function backoffMs({ baseMs, maxMs = Number.POSITIVE_INFINITY, factor = 2 }: Backoff, count: number): number {
  return Math.min(maxMs, baseMs * factor ** Math.max(0, count))
}

/**
 * The same wait with full jitter: whole milliseconds from `minMs` (default 0) up to {@link backoffMs}. `chance` in [0,
 * 1).
 */
export function jitteredBackoffMs(
  backoff: Backoff & { readonly minMs?: number },
  count: number,
  chance: number
): number {
  return Math.max(backoff.minMs ?? 0, Math.floor(backoffMs(backoff, count) * chance))
}
