import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { BoundedSet } from '../../../kit/bounded.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { MCP_NULLS, withoutNulls } from '../../../kit/schema/nulls.js'
import { type RateLimit, TokenBucket } from '../../../kit/rate.js'
import { shown } from '../../../kit/text.js'
import type { ProgramSpec, ProgramStarter, RunningProgram } from '../../../ports/programs.js'
import { ImportedLines } from './imported-lines.js'

/** Room of a line beside the result in it: JSON writes some characters as six. */
const LINE_FACTOR = 2
const LINE_EXTRA_BYTES = 65_536
/** Requests that await an answer; beyond this the oldest are forgotten, and their answers count as unrequested. */
const MAX_ASKED = 4096
/**
 * Rate of messages that were not requested (notifications, requests, other answers), and of lines that are no messages.
 */
export const UNASKED_RATE: RateLimit = { perSecond: 1000, burst: 5000 }

/** Dependencies of {@link StdioTransport}. */
export interface StdioDeps {
  readonly program: ProgramSpec
  readonly programs: ProgramStarter
  readonly clock: Clock
  readonly maxOutputBytes: number
}

/**
 * The client's transport to a program: lines of JSON on its standard streams, bounded. The program is started through
 * the node, which records and guards it; the transport of the library would spawn one that may outlive the node.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  // By these two members the library knows a transport to a program, whose silence means an older protocol, not an
  // outage.
  readonly stderr = null
  readonly pid = null
  readonly #deps: StdioDeps
  readonly #unasked: TokenBucket
  readonly #lines: ImportedLines
  readonly #asked = new BoundedSet<unknown>(MAX_ASKED)
  #program: RunningProgram | null = null
  #isClosed = false
  /** A notification was passed on in this turn of the event loop. */
  #hasNotified = false
  /** Why it ended; null while it runs or when it was closed from here. */
  #reason: string | null = null

  constructor(deps: StdioDeps) {
    this.#deps = deps
    this.#unasked = new TokenBucket(UNASKED_RATE, deps.clock)
    this.#lines = new ImportedLines(deps.maxOutputBytes * LINE_FACTOR + LINE_EXTRA_BYTES, {
      line: (text) => this.#line(text),
      tooLong: (id) => this.#tooLong(id),
      endless: () => this.cut('it writes a line without end')
    })
  }

  /** Why the connection ended, for people; null: it did not, or was closed from here. */
  get reason(): string | null {
    return this.#reason
  }

  async start(): Promise<void> {
    const { programs, program } = this.#deps
    const running = await programs.start(program, (chunk) => {
      if (!this.#isClosed) this.#lines.push(chunk)
    })
    this.#program = running
    void running.exited.then((how) => {
      if (!this.#isClosed) this.#reason ??= `its program ${how}`
      this.#ended()
    })
    // It may have been closed while it was started.
    if (this.#isClosed) await running.end()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const program = this.#program
    if (program === null || this.#isClosed) throw new Error('the program does not run')
    if ('method' in message && 'id' in message) this.#asked.add(message.id)
    await program.write(`${JSON.stringify(message)}\n`).catch((error: unknown) => this.#unwritten(program, error))
  }

  /**
   * Ends a program that reads no more. Mostly it has ended already, and its end says more than the error of the pipe.
   */
  async #unwritten(program: RunningProgram, error: unknown): Promise<never> {
    await program.end()
    await program.exited
    throw new Error(this.#reason ?? messageOf(error))
  }

  async close(): Promise<void> {
    const wasClosed = this.#isClosed
    this.#isClosed = true
    await this.#program?.end()
    if (!wasClosed) this.onclose?.()
  }

  #line(text: string): void {
    if (this.#isClosed) return
    let message: unknown
    try {
      message = withoutNulls(JSON.parse(text), MCP_NULLS)
    } catch {
      return this.#garbage(text)
    }
    if (!isRecord(message) || message['jsonrpc'] !== '2.0') return this.#garbage(text)
    const isAnswer = !('method' in message) && this.#asked.delete(message['id'])
    if (!isAnswer && !this.#unasked.take()) return this.cut('it floods this node with messages')
    this.#deliver(message as unknown as JSONRPCMessage)
  }

  /**
   * The library handles notifications a moment later, and answers at once: an answer that was read together with the
   * last progress of its call would come before it, and the progress would be lost.
   */
  #deliver(message: JSONRPCMessage): void {
    if (!('method' in message) && this.#hasNotified) return void setImmediate(() => this.#pass(message))
    if ('method' in message && !this.#hasNotified) {
      this.#hasNotified = true
      setImmediate(() => {
        this.#hasNotified = false
      })
    }
    this.#pass(message)
  }

  #pass(message: JSONRPCMessage): void {
    try {
      this.onmessage?.(message)
    } catch (error) {
      this.onerror?.(new Error(messageOf(error)))
    }
  }

  /** Programs print lines that are no messages. They are skipped; only a flood of them ends the connection. */
  #garbage(text: string): void {
    if (!this.#unasked.take()) return this.cut('it floods this node with lines that are no messages')
    this.onerror?.(new Error(`a line that is no message: ${shown(text, 100)}`))
  }

  /** Answers the request with an error, since its answer is lost. Without an id the connection ends. */
  #tooLong(id: number | null): void {
    if (id === null) return this.cut('it sent a message that is too large')
    const error = { code: -32_000, message: `the answer has more than ${this.#deps.maxOutputBytes} bytes` }
    this.#line(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }

  /** Ends the program and the connection. */
  cut(reason: string): void {
    if (this.#isClosed) return
    this.#reason ??= reason
    this.onerror?.(new Error(reason))
    void this.#program?.end()
    this.#ended()
  }

  #ended(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.onclose?.()
  }
}
