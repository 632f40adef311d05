import { type RetryPolicy, retryDelay } from '../reliable/retry-policy.js'

/** Tries of a notification, and the waits between them. */
export const PUSH_POLICY: RetryPolicy = { maxAttempts: 5, baseDelayMs: 5000, maxDelayMs: 600_000, backoffMultiplier: 4 }
/** The longest that a hook is left alone because it asks for it, in milliseconds. */
export const MAX_RETRY_AFTER_MS = 3_600_000

/** Outcome of one try. */
export type WebhookAnswer =
  | { readonly type: 'taken' }
  /** The same notification would be refused again. */
  | { readonly type: 'refused'; readonly reason: string }
  /** Every further one would be refused too: the webhook is gone. */
  | { readonly type: 'gone'; readonly reason: string }
  | { readonly type: 'failed'; readonly reason: string; readonly retryAfterMs: number | null }

/** The next step of a notification. */
export type PushVerdict =
  | { readonly type: 'delivered' }
  | { readonly type: 'again'; readonly tries: number; readonly dueAt: number; readonly reason: string }
  | { readonly type: 'dead'; readonly tries: number; readonly reason: string }
  /** Its config and every pending notification go with it. */
  | { readonly type: 'gone'; readonly reason: string }

/** Statuses of clients' faults that another try may mend. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429])

/** The verdict of an HTTP status. `retryAfter`: that header, null for none. */
export function webhookAnswer(
  { status, retryAfter }: { readonly status: number; readonly retryAfter: string | null },
  now: number
): WebhookAnswer {
  if (status >= 200 && status < 300) return { type: 'taken' }
  const reason = `HTTP ${status}`
  if (status === 410) return { type: 'gone', reason }
  const isFinal = status >= 400 && status < 500 && !PASSING.has(status)
  return isFinal ? { type: 'refused', reason } : { type: 'failed', reason, retryAfterMs: retryAfterMs(retryAfter, now) }
}

/** The step after a try. `tries`: failed ones before; `chance` in [0, 1). */
export function judgePush(
  answer: WebhookAnswer,
  { tries, now, chance }: { readonly tries: number; readonly now: number; readonly chance: number }
): PushVerdict {
  if (answer.type === 'taken') return { type: 'delivered' }
  if (answer.type === 'gone') return answer
  const made = tries + 1
  const { reason } = answer
  if (answer.type === 'refused' || made >= PUSH_POLICY.maxAttempts) return { type: 'dead', tries: made, reason }
  const asked = Math.min(answer.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS)
  return { type: 'again', tries: made, dueAt: now + Math.max(asked, retryDelay(PUSH_POLICY, tries, chance)), reason }
}

/** Seconds, or a date (RFC 9110, 10.2.3); null for anything else. */
function retryAfterMs(text: string | null, now: number): number | null {
  if (text === null || text.length > 64) return null
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
