import { isRecord } from '../../../kit/json.js'
import { MCP_NULLS, NullFreeEvents, withoutNullsText } from '../../../kit/schema/nulls.js'
import { originEdit } from './caller-requests.js'
import { ImportedFault, retryAfterText } from './imported-fault.js'

/** Room of a body beside the result in it: JSON writes some characters as six, and events have lines of their own. */
const BODY_FACTOR = 2
const BODY_EXTRA_BYTES = 65_536

const LF = 0x0a
const CR = 0x0d

type ImportedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Dependencies of {@link importedFetch}. */
export interface ImportedFetchDeps {
  readonly fetch: ImportedFetch
  readonly maxOutputBytes: number
  /** Wall clock, unix milliseconds. */
  readonly now: () => number
  readonly tags: ListTags
  /** Is there room for one more event? */
  readonly takeEvent: () => boolean
  /** Ends the connection: its stream can no longer be trusted to end. */
  readonly cut: (reason: string) => void
}

/** Bytes of tool lists that are kept for their ETags. */
const MAX_TAGGED_BYTES = 8_388_608

/** Tool lists with an ETag, by requested page; they outlive a connection. Bounded: beyond the bound all are dropped. */
export class ListTags {
  readonly #pages = new Map<string, { readonly tag: string; readonly result: unknown }>()
  #bytes = 0

  /** The tag of a requested page; undefined when none is known. */
  tagOf(asked: string): string | undefined {
    return this.#pages.get(asked)?.tag
  }

  /** The result that came with the tag. */
  resultOf(asked: string): unknown {
    return this.#pages.get(asked)?.result
  }

  /** Stores the result that came with a tag; `text` is the whole answer. */
  keep(asked: string, tag: string, { text, result }: { readonly text: string; readonly result: unknown }): void {
    this.#bytes += text.length
    if (this.#bytes > MAX_TAGGED_BYTES || this.#pages.size >= 64) {
      this.#pages.clear()
      this.#bytes = text.length
    }
    if (text.length <= MAX_TAGGED_BYTES) this.#pages.set(asked, { tag, result })
  }
}

/**
 * The `fetch` of the client's HTTP transport: bodies are bounded, `Retry-After` of a refusal goes with it, and a tool
 * list that came with an ETag is asked for by it (`If-None-Match`); 304 then stands for the list that is known.
 */
export function importedFetch(deps: ImportedFetchDeps): ImportedFetch {
  return async (url, init = {}) => {
    const asked = listRequestOf(init)
    const tag = asked === null ? undefined : deps.tags.tagOf(asked.page)
    const headers = new Headers(init.headers)
    if (tag !== undefined) headers.set('if-none-match', tag)
    // A redirect would send the secrets to a server that the config does not name.
    const response = withRetryAfter(await deps.fetch(url, { ...init, headers, redirect: 'manual' }), deps.now())
    if (asked !== null && response.status === 304 && tag !== undefined) {
      await response.body?.cancel().catch(() => {})
      const body = { jsonrpc: '2.0', id: asked.id, result: deps.tags.resultOf(asked.page) }
      return new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } })
    }
    const bounded = await nullFree(boundedBody(response, deps), originEdit(init))
    return asked === null ? bounded : await noteTag(bounded, asked.page, deps.tags)
  }
}

function withRetryAfter(response: Response, now: number): Response {
  const { ok, status, headers, body } = response
  const seconds = ok ? null : retryAfterSeconds(headers.get('retry-after'), now)
  return seconds === null ? response : new Response(body, { status, statusText: retryAfterText(seconds), headers })
}

/** The id and the requested page of a `tools/list` request; null for any other. */
function listRequestOf({ method, body }: RequestInit): { readonly id: unknown; readonly page: string } | null {
  if (method !== 'POST' || typeof body !== 'string' || !body.includes('"tools/list"')) return null
  const message: unknown = JSON.parse(body)
  if (!isRecord(message) || message['method'] !== 'tools/list') return null
  const cursor = isRecord(message['params']) ? message['params']['cursor'] : undefined
  return { id: message['id'], page: typeof cursor === 'string' ? cursor : '' }
}

/** Only answers of plain JSON are kept: a stream of events is not read twice. */
async function noteTag(response: Response, page: string, tags: ListTags): Promise<Response> {
  const tag = response.headers.get('etag')
  const isJson = response.headers.get('content-type')?.includes('application/json') === true
  if (!response.ok || tag === null || tag.length > 256 || !isJson) return response
  const text = await response.text()
  try {
    const message: unknown = JSON.parse(text)
    if (isRecord(message) && isRecord(message['result'])) tags.keep(page, tag, { text, result: message['result'] })
  } catch {
    // The transport says what is wrong with it.
  }
  return new Response(text, { status: response.status, headers: response.headers })
}

/** Seconds of a `Retry-After` (RFC 9110, a number or a date); null when there is none, or of more than a day. */
export function retryAfterSeconds(value: string | null, now: number): number | null {
  if (value === null) return null
  const text = value.trim()
  // Date.parse takes much that is no date of HTTP.
  const date = /^[A-Z][a-z]{2}, \d{2} /.test(text) ? Date.parse(text) : Number.NaN
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Math.ceil((date - now) / 1000)
  return Number.isFinite(seconds) && seconds <= 86_400 ? Math.max(0, seconds) : null
}

/**
 * A response whose body ends with an error beyond a bound of bytes; in a stream of events, the bound is for one event.
 */
function boundedBody(response: Response, { maxOutputBytes, takeEvent, cut }: ImportedFetchDeps): Response {
  if (response.body === null) return response
  const maxBytes = maxOutputBytes * BODY_FACTOR + BODY_EXTRA_BYTES
  // A stream lives long: the size and number of its events are bounded, not their sum.
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true
  const eventsIn = eventCounter()
  let bytes = 0
  const fail = (controller: TransformStreamDefaultController, reason: string): void => {
    controller.error(new ImportedFault('answered', reason))
    if (isStream) cut(reason)
  }
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const events = isStream ? eventsIn(chunk) : 0
      bytes = (events > 0 ? 0 : bytes) + chunk.byteLength
      if (bytes > maxBytes) return fail(controller, `its answer has more than ${maxOutputBytes} bytes`)
      for (let i = 0; i < events; i++) if (!takeEvent()) return fail(controller, 'it floods this node with messages')
      controller.enqueue(chunk)
    }
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(count), { status, statusText, headers })
}

/** The body without members that are null, which the library refuses. Other bodies than JSON and events stay. */
async function nullFree(response: Response, edit?: (json: string) => string): Promise<Response> {
  const { body, status, statusText, headers } = response
  const type = headers.get('content-type') ?? ''
  const isStream = type.includes('text/event-stream')
  if (body === null || (!isStream && !type.includes('application/json'))) return response
  const clean = isStream ? eventsOf(body, edit) : withoutNullsText(await response.text(), MCP_NULLS)
  return new Response(clean, { status, statusText, headers })
}

function eventsOf(
  body: ReadableStream<Uint8Array>,
  edit: ((json: string) => string) | undefined
): ReadableStream<Uint8Array> {
  const lines = new NullFreeEvents(MCP_NULLS, edit)
  const clean = new TransformStream<string, string>({
    transform: (text, controller) => controller.enqueue(lines.push(text)),
    flush: (controller) => controller.enqueue(lines.end())
  })
  return body.pipeThrough(new TextDecoderStream()).pipeThrough(clean).pipeThrough(new TextEncoderStream())
}

/**
 * Counts the blank lines of a stream, each of which ends an event. Lines end as its specification has it: `\n`, `\r\n`
 * or `\r`.
 */
function eventCounter(): (chunk: Uint8Array) => number {
  let isBlank = true
  let wasReturn = false
  return (chunk) => {
    let count = 0
    for (const byte of chunk) {
      const isEnd = byte === LF || byte === CR
      // The second half of `\r\n` ends nothing more.
      if (!(byte === LF && wasReturn)) {
        if (isEnd && isBlank) count++
        isBlank = isEnd
      }
      wasReturn = byte === CR
    }
    return count
  }
}
