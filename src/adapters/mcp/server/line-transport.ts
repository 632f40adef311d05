import type { CallToolResult, JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/server'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { errorResponse } from './json-rpc.js'
import { LineReader, type Line } from './line-reader.js'
import { JSON_RPC } from './structured-error.js'

/** The part of the input stream that a line transport uses. Streams of Node and of streamx have it. */
export interface LineInput {
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  pause(): unknown
  resume(): unknown
}

/** The part of the output stream that it uses. */
export interface LineOutput {
  on(event: 'drain' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  write(text: string): boolean
  end(): unknown
}

/** Both sides of a connection; for a duplex stream the same object twice. */
export interface LineStreams {
  readonly input: LineInput
  readonly output: LineOutput
}

/** Options of {@link LineTransport}. */
export interface LineOptions {
  /** Bytes of one line; a longer one is skipped to its end and refused. */
  readonly maxLineBytes: number
  /** Id of the connection, for answers to lines that are no message. */
  readonly correlationId: string
  /** The answer to a call of a tool in a line that is too long; absent: it is refused like any other. Never rejects. */
  readonly refuseCall?: (tool: string) => Promise<CallToolResult>
}

/**
 * Messages as lines of JSON over a pair of streams. A line that is no JSON object is answered, never swallowed: -32700
 * when it is no JSON, -32600 when it is a batch, no object or too long. A call of a tool that is too long gets a result
 * of that tool. While the other side does not read, nothing more is read from it.
 */
export class LineTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #streams: LineStreams
  readonly #options: LineOptions
  readonly #reader: LineReader
  #waiting: (() => void)[] = []
  #isClosed = false
  #isFull = false

  constructor(streams: LineStreams, options: LineOptions) {
    this.#streams = streams
    this.#options = options
    this.#reader = new LineReader(options.maxLineBytes)
  }

  start(): Promise<void> {
    const { input, output } = this.#streams
    const ended = (): void => void this.close()
    const failed = (error: Error): void => {
      if (!this.#isClosed) this.onerror?.(error)
      void this.close()
    }
    output.on('error', failed)
    output.on('close', ended)
    output.on('drain', () => this.#drained())
    input.on('error', failed)
    input.on('end', ended)
    input.on('close', ended)
    input.on('data', (chunk) => this.#read(chunk))
    return Promise.resolve()
  }

  /**
   * Resolves once the message is handed to the stream below and that has room again. A message without a JSON form is
   * not sent.
   */
  send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    if (this.#streams.output.write(`${textOf(message, this.#options.correlationId)}\n`)) return Promise.resolve()
    this.#isFull = true
    this.#streams.input.pause()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Ends the output and calls `onclose`, once. Later input is dropped. */
  close(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#isClosed = true
    this.#drained()
    // Later input must not fill up the stream.
    this.#streams.input.resume()
    this.#streams.output.end()
    this.onclose?.()
    return Promise.resolve()
  }

  #read(chunk: Uint8Array | string): void {
    if (this.#isClosed) return
    for (const line of this.#reader.take(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)) {
      if (this.#isClosed) return
      try {
        this.#line(line)
      } catch (error) {
        this.onerror?.(new Error(`a line could not be served: ${messageOf(error)}`))
      }
    }
  }

  #line(line: Line): void {
    if ('tooLong' in line) {
      const { id, tool } = line.tooLong
      const refusal = id === null || tool === null ? undefined : this.#options.refuseCall?.(tool)
      if (id !== null && refusal !== undefined)
        return void refusal.then((result) => this.send({ jsonrpc: '2.0', id, result }))
      const data = { reason: `a line has at most ${this.#options.maxLineBytes} bytes` }
      return this.#refuse(JSON_RPC.INVALID_REQUEST, 'Invalid Request', { id, data })
    }
    const message = parsed(line.text)
    if (message === undefined) return this.#refuse(JSON_RPC.PARSE_ERROR, 'Parse error')
    if (isRecord(message)) return this.onmessage?.(message as unknown as JSONRPCMessage)
    const reason = Array.isArray(message)
      ? 'batches are not served: send one message a line'
      : 'a message is a JSON object'
    this.#refuse(JSON_RPC.INVALID_REQUEST, 'Invalid Request', { id: null, data: { reason } })
  }

  #refuse(
    code: number,
    message: string,
    about: { id: RequestId | null; data?: Readonly<Record<string, unknown>> } = { id: null }
  ): void {
    void this.send(errorResponse({ code, message, ...about }, this.#options.correlationId))
  }

  #drained(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
    if (this.#isFull && !this.#isClosed) this.#streams.input.resume()
    this.#isFull = false
  }
}

/** undefined when the text is no JSON, or no UTF-8. */
function parsed(text: string | null): unknown {
  if (text === null) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The JSON of a message. An answer without a JSON form becomes an internal error. */
function textOf(message: JSONRPCMessage, correlationId: string): string {
  try {
    return JSON.stringify(message)
  } catch {
    const id = 'id' in message && message.id !== undefined ? message.id : null
    return JSON.stringify(
      errorResponse({ code: JSON_RPC.INTERNAL_ERROR, message: 'Internal error', id }, correlationId)
    )
  }
}
