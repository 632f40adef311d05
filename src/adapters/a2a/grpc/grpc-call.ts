import http2 from 'node:http2'
import { Abort } from '../../../kit/abort.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { drained } from '../server/event-stream.js'
import { type GrpcStatus, plainStatus, statusHeaders } from './grpc-status.js'
import type { BufferedBytes, Holder } from './buffered-bytes.js'

/** Bytes before a message: whether it is compressed, and its length. */
const PREFIX = 5
const FIRST_BYTES = 4096
/** Bytes that are written at once. */
const SLICE = 65_536
const TYPE = 'application/grpc+proto'
/** Milliseconds of the units of `grpc-timeout`. */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }
/** Longest timer of the host, in milliseconds. */
const MAX_TIMER = 2_147_483_647

/** A call that ends with a status. */
export class GrpcEnd extends Error {
  readonly status: GrpcStatus

  constructor(status: GrpcStatus) {
    super(status.message)
    this.status = status
  }
}

/** Dependencies of a {@link GrpcCall}. */
export interface GrpcCallDeps {
  readonly clock: Clock
  readonly buffered: BufferedBytes
  /** Largest message of a client, in bytes. */
  readonly maxMessageBytes: number
  /** Called once when the stream of the call has closed. `isDone`: after its status. */
  onClosed(call: GrpcCall, isDone: boolean): void
}

/** One call on its stream of HTTP/2, with one message of the client. */
export class GrpcCall implements Holder {
  /** Aborts when the client hangs up, its time is over, its token ends or the node stops. */
  readonly signal = new Abort()
  /** Monotonic milliseconds at which it began to wait for its client: for its message, or for its reading. */
  waitsSince: number | null
  readonly #stream: http2.ServerHttp2Stream
  readonly #deps: GrpcCallDeps
  readonly #headers: Record<string, string> = {}
  #deadline: Timer | null = null
  #isDone = false

  constructor(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, deps: GrpcCallDeps) {
    this.#stream = stream
    this.#deps = deps
    this.waitsSince = deps.clock.monotonic()
    stream.on('error', ignore)
    stream.on('close', () => this.#closed())
    this.#limitTime(headers['grpc-timeout'])
  }

  /** Adds a header to the answer, before its first message. */
  setHeader(name: string, value: string): void {
    this.#headers[name] = value
  }

  /** The message of the client. @throws GrpcEnd */
  async message(): Promise<Buffer> {
    const bytes = await this.#request()
    this.waitsSince = null
    return bytes
  }

  /** Sends a message; resolves when the client may get the next one. @throws GrpcEnd when the client is gone */
  async send(message: Buffer): Promise<void> {
    const { buffered } = this.#deps
    buffered.hold(this, message.length + PREFIX)
    try {
      const prefix = Buffer.alloc(PREFIX)
      prefix.writeUInt32BE(message.length, 1)
      await this.#write(prefix)
      for (let at = 0; at < message.length; at += SLICE) await this.#write(message.subarray(at, at + SLICE))
    } finally {
      buffered.release(this)
    }
  }

  /** Ends the call. Later calls do nothing. */
  end(status: GrpcStatus): void {
    if (this.#isDone) return
    this.#isDone = true
    this.signal.abort()
    this.#deps.clock.clear(this.#deadline)
    this.waitsSince = this.#deps.clock.monotonic()
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    try {
      if (stream.headersSent) {
        stream.once('wantTrailers', () => trail(stream, status))
        stream.end()
      } else stream.respond({ ...this.#head(), ...statusHeaders(status) }, { endStream: true })
      // Further bytes of the client are not read (RFC 9113, section 8.1).
      if (!stream.readableEnded) stream.close(http2.constants.NGHTTP2_NO_ERROR)
    } catch {
      this.cut()
    }
  }

  /** Ends the call before anything of gRPC, with a status of HTTP. */
  refuse(httpStatus: number): void {
    this.#isDone = true
    try {
      this.#stream.respond({ ':status': httpStatus }, { endStream: true })
      this.#stream.close(http2.constants.NGHTTP2_NO_ERROR)
    } catch {
      this.cut()
    }
  }

  /** Has it ended, though its client may not have read all? */
  get isDone(): boolean {
    return this.#isDone
  }

  /** Ends its stream at once. */
  cut(): void {
    this.#stream.destroy()
  }

  #head(): http2.OutgoingHttpHeaders {
    return { ':status': 200, 'content-type': TYPE, 'grpc-accept-encoding': 'identity', ...this.#headers }
  }

  async #write(bytes: Buffer): Promise<void> {
    const stream = this.#stream
    if (stream.destroyed || stream.closed || this.#isDone) throw gone()
    if (!stream.headersSent) stream.respond(this.#head(), { waitForTrailers: true })
    if (stream.write(bytes)) return
    if (await drained(stream, this.#deps.clock)) return
    this.cut()
    throw gone()
  }

  #request(): Promise<Buffer> {
    const stream = this.#stream
    const gathered = new GatheredMessage(this.#deps.maxMessageBytes)
    return new Promise((resolve, reject) => {
      const over = (settle: () => void): void => {
        stream.off('data', onData).off('end', onEnd).off('close', onClose)
        this.#deps.buffered.release(this)
        settle()
      }
      const onData = (chunk: Buffer): void => {
        const fault = gathered.add(chunk)
        if (fault !== null) return over(() => reject(new GrpcEnd(fault)))
        this.#deps.buffered.hold(this, chunk.length)
      }
      const onEnd = (): void => {
        const { message } = gathered
        if (message === null) over(() => reject(new GrpcEnd(plainStatus('INVALID_ARGUMENT', 'there is no message'))))
        else over(() => resolve(message))
      }
      const onClose = (): void => over(() => reject(gone()))
      stream.on('data', onData).on('end', onEnd).on('close', onClose)
      if (stream.destroyed) onClose()
    })
  }

  /** Other texts than those of the protocol count as none. */
  #limitTime(text: string | readonly string[] | undefined): void {
    const [, digits = '', unit = ''] = typeof text === 'string' ? (/^(\d{1,8})([HMSmun])$/.exec(text) ?? []) : []
    if (digits === '') return
    const ms = Math.min(MAX_TIMER, Number(digits) * (UNITS[unit] ?? 0))
    this.#deadline = this.#deps.clock.after(ms, () => this.end(plainStatus('DEADLINE_EXCEEDED', 'the time is over')))
  }

  #closed(): void {
    this.#deps.clock.clear(this.#deadline)
    this.#deps.buffered.release(this)
    this.signal.abort()
    this.#deps.onClosed(this, this.#isDone)
  }
}

/** The bytes of one message as they come: no more memory than twice that, whatever length it announces. */
class GatheredMessage {
  readonly #max: number
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** The message once it is complete; null before. */
  get message(): Buffer | null {
    return this.#size >= PREFIX && this.#size === PREFIX + this.#length
      ? this.#bytes.subarray(PREFIX, this.#size)
      : null
  }

  get #length(): number {
    return this.#bytes.readUInt32BE(1)
  }

  /** Adds bytes; the status of a fault, else null. */
  add(chunk: Buffer): GrpcStatus | null {
    const size = this.#size + chunk.length
    if (size > PREFIX + this.#max) return tooLarge(this.#max)
    if (size > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(size, 2 * this.#bytes.length))
      this.#bytes.copy(larger, 0, 0, this.#size)
      this.#bytes = larger
    }
    chunk.copy(this.#bytes, this.#size)
    this.#size = size
    if (size < PREFIX) return null
    if (this.#bytes[0] !== 0) return plainStatus('UNIMPLEMENTED', 'compressed messages are not taken')
    if (this.#length > this.#max) return tooLarge(this.#max)
    return size > PREFIX + this.#length ? plainStatus('UNIMPLEMENTED', 'only one message is taken') : null
  }
}

function trail(stream: http2.ServerHttp2Stream, status: GrpcStatus): void {
  try {
    stream.sendTrailers(statusHeaders(status))
  } catch {
    stream.destroy()
  }
}

function tooLarge(max: number): GrpcStatus {
  return plainStatus('RESOURCE_EXHAUSTED', `the message is larger than ${max} bytes`)
}

function gone(): GrpcEnd {
  return new GrpcEnd(plainStatus('CANCELLED', 'the client is gone'))
}

function ignore(): void {}
