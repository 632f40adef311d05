import { backoffMs } from '../../kit/backoff.js'

/** The first wait before a message is tried again, in milliseconds; each further one is twice as long. */
export const FIRST_RETRY_MS = 250
/** How often a message is tried again before its delivery has failed (spec a2a-mcp-mesh, property 12). */
export const MAX_RETRIES = 3

/** Milliseconds before the next try after `failed` failures (1 or more); null: no further try. */
export function retryDelayMs(failed: number): number | null {
  return failed > MAX_RETRIES ? null : backoffMs({ baseMs: FIRST_RETRY_MS }, failed - 1)
}
