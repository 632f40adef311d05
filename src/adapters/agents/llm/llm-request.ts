import type { Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import { formatDuration } from '../../../kit/units.js'
import { CompletionReader } from './llm-completion.js'
import { LlmFault, wordsOf } from './llm-fault.js'
import type { Fetch } from './llm-parts.js'

/** Bytes of one answer, everything around its text included. */
const MAX_ANSWER_BYTES = 67_108_864
/** Bytes of the body of a refusal that are read. */
const MAX_REFUSAL_BYTES = 65_536
/** Milliseconds that token counts may come after the finish of an answer. */
const FINISH_MS = 2000
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
 * The `fetch` of one question to a server. It follows no redirect, ends when the server falls silent, bounds the bytes
 * it reads and names the cause of every failure. It never waits for ever, whatever the server does.
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
    return new Response(this.#chunks(response.body), { headers: { 'content-type': 'text/event-stream' } })
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
    const message = `refused the question (HTTP ${status})${words === '' ? '' : `: ${words}`}`
    return new LlmFault('refused', message, { status, retryAfter, errorText: text })
  }

  /** The answer as a stream of events, a chunk each. */
  #chunks(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const completion = new CompletionReader()
    const leave = (): void => void reader.cancel().catch(() => {})
    let bytes = 0
    let finishedAt: number | null = null
    /** True: there are new chunks, or no more. */
    const read = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<boolean> => {
      if (completion.isFinished) finishedAt ??= this.#deps.clock.monotonic()
      const value = await (finishedAt === null
        ? this.#received(nextBytes(reader))
        : this.#remaining(reader, finishedAt))
      bytes += value?.byteLength ?? 0
      if (bytes > MAX_ANSWER_BYTES) throw new LlmFault('too-large', `answered with more than ${MAX_ANSWER_BYTES} bytes`)
      const chunks = value === null ? completion.end() : completion.feed(value)
      for (const chunk of chunks) controller.enqueue(Buffer.from(`data: ${chunk}\n\n`))
      if (value !== null && !completion.isOver) return chunks.length > 0
      leave()
      controller.close()
      return true
    }
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          while (!(await read(controller))) continue
        } catch (error) {
          leave()
          this.#fail(error instanceof LlmFault ? error : dropped())
        }
      },
      cancel: async (reason) => await reader.cancel(reason)
    })
  }

  /** Token counts after the finish. A server that keeps the connection open, or breaks it, is waited for no longer. */
  async #remaining(reader: ReadableStreamDefaultReader<Uint8Array>, finishedAt: number): Promise<Uint8Array | null> {
    const { clock } = this.#deps
    const leftMs = Math.max(0, finishedAt + FINISH_MS - clock.monotonic())
    return await new Promise((resolve) => {
      const timer = clock.after(leftMs, () => resolve(null))
      const next = nextBytes(reader).catch(() => null)
      void next.finally(() => clock.clear(timer)).then(resolve)
    })
  }
}

/** null: there are no more. */
async function nextBytes(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | null> {
  const { done, value } = await reader.read()
  return done ? null : value
}

function dropped(): LlmFault {
  return new LlmFault('dropped', 'was lost in the middle of its answer')
}

/** Of a failed connection only the code is passed on: the address is private. */
function unreachable(error: unknown): LlmFault {
  const cause = isRecord(error) || error instanceof Error ? (error as { cause?: unknown }).cause : undefined
  const code = isRecord(cause) || cause instanceof Error ? (cause as { code?: unknown }).code : undefined
  return new LlmFault(
    'unreachable',
    `cannot be reached${typeof code === 'string' && /^[A-Z_]{1,64}$/.test(code) ? ` (${code})` : ''}`
  )
}
