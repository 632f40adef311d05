import type { ServerResponse } from 'node:http'
import { isRecord } from '../../../kit/json.js'
import type { McpExchange } from './http-connection.js'

/** Options of an answer. */
export interface AnswerOptions {
  /** May it be a stream of events? */
  readonly mayStream: boolean
  /** Not of an error. */
  readonly headers?: Readonly<Record<string, string>>
  /** Called when the answer was an error. */
  readonly onError?: () => void
  /** The status of an error of the protocol, by its code; 200 for all else. */
  readonly statusOf?: (code: number) => number
  /** Milliseconds between two comments that keep a stream open. */
  readonly keepAliveMs: number
}

/** Bytes that may wait for a client that does not read its stream; further messages before the answer are dropped. */
const MAX_BUFFERED = 1_048_576

/**
 * The answer to one HTTP request: JSON when nothing precedes it, a stream of server-sent events from the first message
 * before it.
 */
export class HttpAnswer implements McpExchange {
  readonly #response: ServerResponse
  readonly #options: AnswerOptions
  #timer: NodeJS.Timeout | null = null
  #isStream = false

  constructor(response: ServerResponse, options: AnswerOptions) {
    this.#response = response
    this.#options = options
    response.once('close', () => this.#stop())
  }

  /** Begins the stream at once: there is no one answer, as on a stream of changes. */
  open(): void {
    if (this.#isStream || this.#response.writableEnded) return
    this.#isStream = true
    this.#response.writeHead(200, {
      ...this.#options.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store'
    })
    this.#response.flushHeaders()
    this.#timer = setInterval(() => this.#write(': \n\n'), this.#options.keepAliveMs)
  }

  note(message: unknown): boolean {
    if (!this.#options.mayStream || this.#response.writableEnded) return false
    const event = eventOf(message)
    this.open()
    if (this.#response.writableLength > MAX_BUFFERED) return false
    this.#write(event)
    return true
  }

  answer(message: unknown): void {
    if (this.#response.writableEnded) return
    this.#stop()
    const isError = isRecord(message) && 'error' in message
    if (this.#isStream) this.#response.end(eventOf(message))
    else this.#answer(message, isError ? {} : { ...this.#options.headers })
    if (isError) this.#options.onError?.()
  }

  #answer(message: unknown, more: Readonly<Record<string, string>>): void {
    // As text: it goes out with its headers in one piece.
    const body = JSON.stringify(message)
    const status = this.#options.statusOf?.(errorCode(message)) ?? 200
    const headers = { ...more, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    this.#response.writeHead(status, headers).end(body)
  }

  end(): void {
    this.#stop()
    if (this.#response.writableEnded) return
    if (!this.#isStream) this.#response.writeHead(204, { ...this.#options.headers })
    this.#response.end()
  }

  #write(text: string): void {
    if (!this.#response.writableEnded && !this.#response.destroyed) this.#response.write(text)
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}

function eventOf(message: unknown): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`
}

/** The code of an error; 0 for other messages. */
function errorCode(message: unknown): number {
  const error = isRecord(message) ? message['error'] : undefined
  return isRecord(error) && typeof error['code'] === 'number' ? error['code'] : 0
}
