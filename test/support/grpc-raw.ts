import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'
import type { GrpcCall } from '../../src/adapters/a2a/grpc/grpc-call.js'
import { GrpcListener, type GrpcLimits, type GrpcServing } from '../../src/adapters/a2a/grpc/grpc-listener.js'
import { plainStatus } from '../../src/adapters/a2a/grpc/grpc-status.js'
import { realClock } from './agents/real-clock.js'

/** The answer to a raw call. `code`: of gRPC, -1 for none; `reset`: the code of HTTP/2 that closed its stream. */
export interface RawAnswer {
  readonly http: number
  readonly code: number
  readonly message: string
  readonly reset: number
  readonly messages: readonly Buffer[]
}

/** One message as bytes on the wire. */
export function framed(message: Uint8Array, { length = message.length, flag = 0 } = {}): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

/** How a raw call is made. `open`: its request does not end. */
export interface RawCall {
  readonly headers?: http2.OutgoingHttpHeaders
  readonly body?: Uint8Array
  readonly open?: true
}

/** Begins a call without a library of gRPC. */
export function begin(
  session: http2.ClientHttp2Session,
  { headers, body, open }: RawCall = {}
): http2.ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/x/Y',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers
  })
  if (open === true) stream.write(body ?? framed(Buffer.from('hello')))
  else stream.end(body ?? framed(Buffer.from('hello')))
  return stream
}

/** Reads an answer to its end. */
export function answerOf(stream: http2.ClientHttp2Stream): Promise<RawAnswer> {
  let head: http2.IncomingHttpHeaders = {}
  let tail: http2.IncomingHttpHeaders = {}
  let bytes = Buffer.alloc(0)
  stream.on('response', (headers) => {
    head = headers
  })
  stream.on('trailers', (headers) => {
    tail = headers
  })
  stream.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
  })
  stream.on('error', () => {})
  return new Promise((resolve) => {
    stream.on('close', () => {
      const of = (name: string): string => String(tail[name] ?? head[name] ?? '')
      resolve({
        http: Number(head[':status'] ?? 0),
        code: of('grpc-status') === '' ? -1 : Number(of('grpc-status')),
        message: decodeURI(of('grpc-message')),
        reset: stream.rstCode ?? 0,
        messages: messagesIn(bytes)
      })
    })
  })
}

function messagesIn(bytes: Buffer): Buffer[] {
  const all: Buffer[] = []
  for (let at = 0; at + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1)
    all.push(bytes.subarray(at + 5, at + 5 + length))
    at += 5 + length
  }
  return all
}

/** A listener of a test, and how to connect to it. */
export interface RawScene {
  readonly listener: GrpcListener
  connect(options?: http2.ClientSessionOptions): http2.ClientHttp2Session
}

/** Answers each call with its message. */
export async function echo(call: GrpcCall): Promise<void> {
  await call.send(await call.message())
}

/** Binds a listener until the test ends. `serving`: null leaves it unopened. */
export async function rawScene(
  t: Assert,
  serving: GrpcServing['serve'] | GrpcServing | null = echo,
  { limits = {}, maxConnections = 8 }: { readonly limits?: Partial<GrpcLimits>; readonly maxConnections?: number } = {}
): Promise<RawScene> {
  const listener = new GrpcListener({
    clock: realClock,
    maxConnections,
    maxMessageBytes: 1_000_000,
    limits: { graceMs: 50, checkMs: 10, ...limits }
  })
  if (typeof serving === 'function')
    listener.open({
      serve: serving,
      failed: (error) => ({ status: plainStatus('INTERNAL', (error as Error).message), isRefused: false })
    })
  else if (serving !== null) listener.open(serving)
  await new Promise<void>((resolve) => listener.server.listen({ host: '127.0.0.1', port: 0 }, resolve))
  const { port } = listener.server.address() as AddressInfo
  const sessions: http2.ClientHttp2Session[] = []
  t.teardown(async () => {
    for (const session of sessions) session.destroy()
    await listener.close()
  })
  return {
    listener,
    connect: (options = {}) => {
      const session = http2.connect(`http://127.0.0.1:${port}`, options)
      session.on('error', () => {})
      sessions.push(session)
      return session
    }
  }
}
