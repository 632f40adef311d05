import http2 from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../../../kit/clock.js'
import { TokenBucket } from '../../../kit/rate.js'
import { GrpcCall, GrpcEnd } from './grpc-call.js'
import { GRPC_OK, type GrpcStatus, plainStatus } from './grpc-status.js'
import { BufferedBytes } from './buffered-bytes.js'

/** Limits for clients, in milliseconds and bytes. */
export const GRPC_LIMITS = {
  /** Calls of one connection at once. */
  streams: 64,
  /** Headers of one call. */
  headers: 64,
  /** Frames against the protocol, and streams beyond the limit, after which a connection is cut. */
  invalidFrames: 100,
  /** Memory of one connection, before it is refused new calls; Node.js counts it in megabytes. */
  sessionBytes: 16_777_216,
  /** Until the message of a client is there, from its call on. */
  messageMs: 60_000,
  /** Until the first call of a connection. */
  firstCallMs: 10_000,
  /** Between two calls of a connection. */
  idleMs: 300_000,
  /** A connection with calls is asked in this interval whether it is there, and answers within it. */
  pingMs: 30_000,
  /** A client that reads nothing of a finished answer for this time is cut off. */
  unreadMs: 60_000,
  /** How often these times are looked at. */
  checkMs: 1000,
  /** Calls that a client may give up: at once, and per second. Beyond it its connection is cut. */
  canceledBurst: 200,
  canceledPerSecond: 20,
  /** Messages and answers that wait for their clients, of all connections together. */
  bufferedBytes: 134_217_728,
  /** Until a connection is cut after a refusal, or when the listener closes. */
  graceMs: 1000
} as const

/** The numbers of {@link GRPC_LIMITS}; tests lower them. */
export type GrpcLimits = Readonly<Record<keyof typeof GRPC_LIMITS, number>>

/** The headers of a call and its connection. */
export interface GrpcRequest {
  readonly headers: http2.IncomingHttpHeaders
  readonly remoteAddress: string
  readonly localAddress: string
  /** `/package.Service/Method`. */
  readonly path: string
}

/** The service behind a listener once the node is up. */
export interface GrpcServing {
  /** Answers a call: `call.message()` once, `call.send()`. A return is success. */
  serve(call: GrpcCall, request: GrpcRequest): Promise<void>
  /** The status of an error that `serve` threw, and whether its connection may go on. */
  failed(error: unknown): { readonly status: GrpcStatus; readonly isRefused: boolean }
}

/** Options of a {@link GrpcListener}. */
export interface GrpcListenerOptions {
  readonly clock: Clock
  readonly maxConnections: number
  /** Largest message of a client, in bytes. */
  readonly maxMessageBytes: number
  readonly limits?: Partial<GrpcLimits>
}

/** Options of Node.js that its types lack. */
interface SessionBounds {
  readonly maxSessionInvalidFrames: number
  readonly maxSessionRejectedStreams: number
}

/** One connection. */
interface GrpcConnection {
  readonly session: http2.ServerHttp2Session
  readonly calls: Set<GrpcCall>
  readonly canceled: TokenBucket
  hasCalled: boolean
  /** Monotonic milliseconds of the last change of its calls, or of the last ping. */
  since: number
  isPinged: boolean
}

/** gRPC over HTTP/2 without TLS. Until `open` every call ends with UNAVAILABLE. */
export class GrpcListener {
  /** To be bound by its owner. */
  readonly server: http2.Http2Server
  readonly #options: GrpcListenerOptions
  readonly #limits: GrpcLimits
  readonly #buffered: BufferedBytes
  readonly #connections = new Set<GrpcConnection>()
  readonly #timer: Timer
  #serving: GrpcServing | null = null
  #closed: Promise<void> | null = null

  constructor(options: GrpcListenerOptions) {
    this.#options = options
    this.#limits = { ...GRPC_LIMITS, ...options.limits }
    this.#buffered = new BufferedBytes(this.#limits.bufferedBytes)
    const { streams, headers, invalidFrames, sessionBytes, checkMs } = this.#limits
    const bounds: http2.ServerOptions & SessionBounds = {
      settings: { maxConcurrentStreams: streams },
      maxHeaderListPairs: headers,
      maxSessionInvalidFrames: invalidFrames,
      maxSessionRejectedStreams: invalidFrames,
      maxSessionMemory: sessionBytes / 1_048_576
    }
    this.server = http2.createServer(bounds)
    this.server.maxConnections = options.maxConnections
    this.server.on('session', (session) => this.#connected(session))
    this.server.on('sessionError', ignore)
    this.#timer = options.clock.every(checkMs, () => this.#check())
  }

  /** Begins to serve. */
  open(serving: GrpcServing): void {
    this.#serving = serving
  }

  /** Takes no more calls, lets those under way finish for a second, then cuts. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const { clock } = this.#options
    const ended = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const { session, calls } of this.#connections) {
      for (const call of calls) call.signal.abort()
      session.close()
    }
    const cut = clock.after(this.#limits.graceMs, () => {
      for (const { session } of this.#connections) session.destroy()
    })
    await ended
    clock.clear(cut)
    clock.clear(this.#timer)
  }

  #connected(session: http2.ServerHttp2Session): void {
    const { clock } = this.#options
    const { canceledBurst, canceledPerSecond } = this.#limits
    const connection: GrpcConnection = {
      session,
      calls: new Set(),
      canceled: new TokenBucket({ burst: canceledBurst, perSecond: canceledPerSecond }, clock),
      hasCalled: false,
      since: clock.monotonic(),
      isPinged: false
    }
    this.#connections.add(connection)
    session.on('error', ignore)
    session.on('close', () => this.#connections.delete(connection))
    session.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
      stream.on('error', ignore)
      try {
        this.#called(connection, stream, headers)
      } catch {
        stream.destroy()
      }
    })
    if (this.#closed !== null) session.close()
  }

  #called(connection: GrpcConnection, stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    const { clock, maxMessageBytes } = this.#options
    const onClosed = (call: GrpcCall, isDone: boolean): void => this.#over(connection, call, isDone)
    const call = new GrpcCall(stream, headers, { clock, buffered: this.#buffered, maxMessageBytes, onClosed })
    connection.calls.add(call)
    connection.hasCalled = true
    connection.since = clock.monotonic()
    if (headers[':method'] !== 'POST') return call.refuse(405)
    if (!/^application\/grpc(?:\+proto)?(?:;|$)/.test(headers['content-type'] ?? '')) return call.refuse(415)
    const { remoteAddress = '', localAddress = '' } = socketOf(connection.session)
    const path = headers[':path'] ?? ''
    void this.#serve(connection, call, { headers, remoteAddress, localAddress, path })
  }

  async #serve(connection: GrpcConnection, call: GrpcCall, request: GrpcRequest): Promise<void> {
    const serving = this.#serving
    if (serving === null || this.#closed !== null)
      return call.end(plainStatus('UNAVAILABLE', 'the node is starting or stopping'))
    try {
      await serving.serve(call, request)
      call.end(GRPC_OK)
    } catch (error) {
      if (error instanceof GrpcEnd) return call.end(error.status)
      const { status, isRefused } = serving.failed(error)
      call.end(status)
      if (isRefused) this.#refused(connection)
    }
  }

  /** Others may call over the same connection, through a proxy: it is cut only when none of them does. */
  #refused({ session, calls }: GrpcConnection): void {
    const { clock } = this.#options
    clock.after(this.#limits.graceMs, () => {
      if (calls.size > 0 || session.destroyed) return
      session.close()
      clock.after(this.#limits.graceMs, () => session.destroy())
    })
  }

  #over(connection: GrpcConnection, call: GrpcCall, isDone: boolean): void {
    connection.calls.delete(call)
    connection.since = this.#options.clock.monotonic()
    if (!isDone && !connection.canceled.take())
      connection.session.destroy(undefined, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  #check(): void {
    const now = this.#options.clock.monotonic()
    for (const connection of this.#connections) {
      const { calls, session } = connection
      const { pingMs, idleMs, firstCallMs } = this.#limits
      const quietMs = now - connection.since
      if (calls.size === 0 && quietMs > (connection.hasCalled ? idleMs : firstCallMs)) {
        session.close()
        if (quietMs > idleMs + this.#limits.graceMs || !connection.hasCalled) session.destroy()
      } else if (calls.size > 0 && quietMs > pingMs) this.#ping(connection, now)
      for (const call of [...calls]) this.#checkCall(call, now)
    }
  }

  #checkCall(call: GrpcCall, now: number): void {
    const { waitsSince, isDone } = call
    if (waitsSince === null) return
    const { messageMs, unreadMs } = this.#limits
    if (isDone && now - waitsSince > unreadMs) call.cut()
    else if (!isDone && now - waitsSince > messageMs)
      call.end(plainStatus('DEADLINE_EXCEEDED', `the message did not come within ${messageMs} ms`))
  }

  /** A client behind a dead connection would keep its calls for hours. */
  #ping(connection: GrpcConnection, now: number): void {
    const { session } = connection
    if (connection.isPinged) return session.destroy()
    connection.isPinged = true
    connection.since = now
    try {
      session.ping(() => {
        connection.isPinged = false
      })
    } catch {
      session.destroy()
    }
  }
}

/** The addresses of a connection that may be gone. */
function socketOf(session: http2.ServerHttp2Session): Partial<Pick<Socket, 'remoteAddress' | 'localAddress'>> {
  return session.destroyed ? {} : session.socket
}

function ignore(): void {}
