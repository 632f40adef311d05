import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { PushHook } from '../../../domain/gateway/push.js'
import { type WebhookAnswer, webhookAnswer } from '../../../domain/gateway/push-verdict.js'
import type { WebhookCall, Webhooks } from '../../../ports/webhooks.js'
import { type AddressPolicy, judgeAddress } from '../net/address-guard.js'
import { RemoteFault } from '../remote/remote-fault.js'
import { type FetchLimits, type GuardedFetch, guardedFetch, type Resolve } from '../net/ssrf-fetch.js'
import { webhookBody } from './webhook-body.js'
import { webhookHeaders, type WebhookSigner } from './webhook-signature.js'

/** Time limit of one attempt until the response headers, in milliseconds. */
export const WEBHOOK_MS = 10_000
/** Only the headers of a response are read. */
const LIMITS: FetchLimits = { headMs: WEBHOOK_MS, bodyMs: 1000, silenceMs: 1000, maxBytes: 1, maxStreamBytes: 1 }

/** Dependencies of {@link createWebhooks}. */
export interface WebhookSenderDeps {
  readonly policy: AddressPolicy
  readonly signer: WebhookSigner
  readonly clock: Clock
  /** Default: the resolver of the system. */
  readonly resolve?: Resolve
}

/** Sends notifications to the webhooks of clients within the policy, without redirects or private addresses. */
export function createWebhooks({ policy, signer, clock, resolve }: WebhookSenderDeps): Webhooks {
  const fetch = guardedFetch({ policy, limits: LIMITS, clock, ...(resolve === undefined ? {} : { resolve }) })
  return {
    refusal: (url) => {
      const verdict = judgeAddress(url, policy)
      return verdict.ok ? null : verdict.reason
    },
    bodyOf: webhookBody,
    send: async (hook, call, signal) => {
      try {
        return await sendOnce(
          fetch,
          { hook, call, signal, headers: webhookHeaders(hook, call, { signer, now: clock.now() }) },
          clock
        )
      } catch (error) {
        const reason = shown(messageOf(error))
        // Among the guard's verdicts on a response only a redirect is a refusal.
        if (error instanceof RemoteFault && error.kind === 'refused') return { type: 'refused', reason }
        return { type: 'failed', reason, retryAfterMs: null }
      }
    }
  }
}

interface Sending {
  readonly hook: PushHook
  readonly call: WebhookCall
  readonly signal: AbortSignalLike
  readonly headers: Record<string, string>
}

async function sendOnce(
  fetch: GuardedFetch,
  { hook, call, signal, headers }: Sending,
  clock: Clock
): Promise<WebhookAnswer> {
  const stop = new AbortController()
  const onAbort = (): void => stop.abort()
  signal.addEventListener('abort', onAbort)
  try {
    if (signal.aborted) onAbort()
    const response = await fetch(hook.url, { method: 'POST', headers, body: call.body, signal: stop.signal })
    // The body is not read, and its failure does not affect the result.
    await response.body?.cancel().catch(() => {})
    return webhookAnswer({ status: response.status, retryAfter: response.headers.get('retry-after') }, clock.now())
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
