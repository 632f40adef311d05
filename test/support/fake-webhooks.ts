import type { AbortSignalLike } from '../../src/kit/clock.js'
import type { PushHook } from '../../src/domain/gateway/push.js'
import type { WebhookAnswer } from '../../src/domain/gateway/push-verdict.js'
import type { WebhookContent, WebhookCall, Webhooks } from '../../src/ports/webhooks.js'

/** A try as a receiver saw it. */
export interface FakeTry extends WebhookCall {
  readonly url: string
  readonly version: PushHook['version']
  readonly isAborted: boolean
}

/** Webhooks without a network: what they answer is told by the test; without that they take all. */
export class FakeWebhooks implements Webhooks {
  readonly tries: FakeTry[] = []
  /** By URL; null: it never answers. */
  readonly answers = new Map<string, (call: WebhookCall) => WebhookAnswer | null>()

  refusal(url: string): string | null {
    return url.includes('//private') ? 'it is private' : null
  }

  bodyOf(version: PushHook['version'], told: WebhookContent): string {
    return JSON.stringify({ version, ...told })
  }

  async send({ url, version }: PushHook, call: WebhookCall, signal: AbortSignalLike): Promise<WebhookAnswer> {
    const refusal = this.refusal(url)
    if (refusal !== null) return { type: 'failed', reason: refusal, retryAfterMs: null }
    const made = { ...call, url, version, isAborted: signal.aborted }
    this.tries.push(made)
    const how = this.answers.get(url)
    const answer = how === undefined ? ({ type: 'taken' } as const) : how(call)
    if (answer !== null) return answer
    return await new Promise((resolve) => {
      const abort = (): void => {
        made.isAborted = true
        resolve({ type: 'failed', reason: 'aborted', retryAfterMs: null })
      }
      signal.addEventListener('abort', abort)
      if (signal.aborted) abort()
    })
  }

  /** The events that a URL was told of, each try one. */
  told(url: string): string[] {
    return this.tries.filter((one) => one.url === url).map(({ event }) => event)
  }
}
