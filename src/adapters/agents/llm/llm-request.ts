import type { Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import { formatDuration } from '../../../kit/units.js'
import { LlmFault, wordsOf } from './llm-fault.js'
import type { Fetch } from './llm-parts.js'

/** Bytes of one answer, everything around its text included. */
const MAX_ANSWER_BYTES = 67_108_864
/** Bytes of the body of a refusal that are read. */
const MAX_REFUSAL_BYTES = 65_536
/** Longest wait that a server may ask for, in seconds. */
const MAX_RETRY_AFTER = 86_400

/** Dependencies of {@link LlmRequest}. */
export interface LlmRequestDeps {
  readonly fetch: Fetch
  readonly clock: Clock
  /** Milliseconds that the server may say nothing. */
  readonly stallTimeoutMs: number
}

/**
 * The `fetch` of one question to a server. It follows no redirect, ends when the server falls silent, bounds the bytes it reads and names
 * the cause of every failure. It never waits for ever, whatever the server does.
 */
export class LlmRequest {
  readonly #deps: LlmRequestDeps
  readonly #stop = new AbortController()
  #fault: LlmFault | null = null
  #sentBytes = 0

  constructor(deps: LlmRequestDeps) {
    this.#deps = deps
  }

  /** Why it failed; null: it did not. */
  get fault(): LlmFault | null {
    return this.#fault
  }

  /** Bytes of the body that was sent. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  readonly fetch: Fetch = async (url, init = {}) => {
    const { body, signal } = init
    this.#sentBytes = typeof body === 'string' ? Buffer.byteLength(body) : 0
    const signals = [this.#stop.signal, ...(signal === null || signal === undefined ? [] : [signal])]
    // A redirect would send the secrets to a server that the config does not name.
    const asking = this.#deps.fetch(url, { ...init, signal: AbortSignal.any(signals), redirect: 'manual' })
    const response = await this.#received(asking).catch((error: unknown) => this.#fail(unreachable(error)))
    if (!response.ok) return this.#fail(await this.#refusal(response))
    if (response.body === null) return this.#fail(new LlmFault('unreadable', 'answered with nothing'))
    const { status, headers } = response
    return new Response(this.#bounded(response.body), { status, headers })
  }

  /** @throws LlmFault the first one, which is why the later ones came. */
  #fail(fault: LlmFault): never {
    this.#fault ??= fault
    throw this.#fault
  }

  /** Awaits data of the server, at most for its stall timeout. */
  async #received<T>(next: Promise<T>): Promise<T> {
    const { clock, stallTimeoutMs } = this.#deps
    const timer = clock.after(stallTimeoutMs, () => {
      this.#fault ??= new LlmFault('stalled', `said nothing for ${formatDuration(stallTimeoutMs)}`)
      this.#stop.abort(this.#fault)
    })
    try {
      return await next
    } finally {
      clock.clear(timer)
    }
  }

  async #refusal({ status, headers, body }: Response): Promise<LlmFault> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    const reader = body?.getReader()
    try {
      while (reader !== undefined && bytes < MAX_REFUSAL_BYTES) {
        const { done, value } = await this.#received(reader.read())
        if (done) break
        bytes += value.byteLength
        chunks.push(value)
      }
    } catch {
      // The status says enough.
    }
    reader?.cancel().catch(() => {})
    const text = Buffer.concat(chunks).subarray(0, MAX_REFUSAL_BYTES).toString('utf8')
    const words = status < 400 ? 'it redirects to another address' : wordsOf(text)
    const seconds = /^\d{1,9}$/.test(headers.get('retry-after') ?? '') ? Number(headers.get('retry-after')) : null
    const retryAfter = seconds !== null && seconds <= MAX_RETRY_AFTER ? seconds : null
    return new LlmFault('refused', `refused the question (HTTP ${status})${words === '' ? '' : `: ${words}`}`, { status, retryAfter })
  }

  #bounded(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    let bytes = 0
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = await this.#received(reader.read()).catch(() => this.#fail(dropped()))
        if (done) return controller.close()
        bytes += value.byteLength
        if (bytes > MAX_ANSWER_BYTES) {
          reader.cancel().catch(() => {})
          this.#fail(new LlmFault('too-large', `answered with more than ${MAX_ANSWER_BYTES} bytes`))
        }
        controller.enqueue(value)
      },
      cancel: async (reason) => await reader.cancel(reason)
    })
  }
}

function dropped(): LlmFault {
  return new LlmFault('dropped', 'was lost in the middle of its answer')
}

/** Of a failed connection only the code is passed on: the address is private. */
function unreachable(error: unknown): LlmFault {
  const cause = isRecord(error) || error instanceof Error ? (error as { cause?: unknown }).cause : undefined
  const code = isRecord(cause) || cause instanceof Error ? (cause as { code?: unknown }).code : undefined
  return new LlmFault('unreachable', `cannot be reached${typeof code === 'string' && /^[A-Z_]{1,64}$/.test(code) ? ` (${code})` : ''}`)
}
