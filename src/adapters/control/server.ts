import { setMaxListeners } from 'node:events'
import { chmod } from 'node:fs/promises'
import http from 'node:http'
import type { Duplex } from 'node:stream'
import type { Tier } from '../../domain/routing/tier.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { NodeApi, Principal } from '../../ports/node-api.js'
import { type ControlRefusal, refusalOf } from './guard.js'
import { answerOpen } from './open.js'
import { answerCall, answerError, answerWatch, routeOf } from './respond.js'
import { claimSocket } from './socket-file.js'

const HEADER_MAX_BYTES = 16_384
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 60_000
const CLOSE_GRACE_MS = 1000

/** Dependencies of a control server. */
export interface ControlServerOptions {
  /** Path of the unix socket, at most 103 bytes. */
  readonly path: string
  /** Gives the API of a caller. */
  apiFor(principal: Principal): NodeApi
  /** The tier of this node's certificate now: that of the operator. */
  tier(): Tier
  /** Serves a stream of raw bytes of each protocol until it ends, e.g. `mcp`. None by default. */
  readonly protocols?: Readonly<Record<string, (stream: Duplex, principal: Principal) => void>>
  /** Told of every request that the guard refused, for the audit log. */
  onRefusal?(refusal: ControlRefusal): void
  /** Connections at once; further ones are dropped. Default 128. */
  readonly maxConnections?: number
  /** Blank lines on quiet watches, in milliseconds. Default 15,000. */
  readonly keepAliveMs?: number
}

/** A serving control API. */
export interface ControlServer {
  readonly path: string
  /**
   * Ends every watch with NODE_NOT_RUNNING, lets calls finish for a second, then cuts. Removes the socket. Idempotent.
   */
  close(): Promise<void>
}

/**
 * Serves NodeApi over HTTP on a unix socket (0600 in a 0700 directory). Every user who can open the socket is the
 * operator.
 * @throws NodeError ALREADY_RUNNING, NO_PERMISSION, DISK_FULL, PATH_TOO_LONG
 */
export async function startControlServer(options: ControlServerOptions): Promise<ControlServer> {
  await claimSocket(options.path)
  const closing = new AbortController()
  // Every watch listens to it.
  setMaxListeners(0, closing.signal)
  const server = http.createServer({
    maxHeaderSize: HEADER_MAX_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS
  })
  server.maxConnections = options.maxConnections ?? 128
  // Node drops headers past a count silently: an Origin among them would not be seen. The size limit bounds them.
  server.maxHeadersCount = 0
  const context = { ...options, closing: closing.signal, keepAliveMs: options.keepAliveMs ?? 15_000 }
  server.on('request', (request, response) => void serve(request, response, context))
  // Their sockets are no connections of the server any more, so it does not end them.
  server.on('upgrade', (request, socket, head) =>
    answerOpen({ request, socket, head }, { ...context, principal: operator(context) })
  )
  server.on('clientError', (_error, socket) => {
    options.onRefusal?.({ status: 400, rule: 'malformed', reason: 'the request is not well-formed HTTP' })
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    else socket.destroy()
  })
  await listen(server, options.path)
  let closed: Promise<void> | null = null
  return {
    path: options.path,
    close() {
      closed ??= shut(server, closing)
      return closed
    }
  }
}

interface ServeContext extends ControlServerOptions {
  readonly closing: AbortSignal
  readonly keepAliveMs: number
}

async function serve(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  context: ServeContext
): Promise<void> {
  response.on('error', () => response.destroy())
  try {
    const refusal = refusalOf(request)
    if (refusal !== null) {
      context.onRefusal?.(refusal)
      request.resume()
      return answerError(response, new NodeError('FORBIDDEN', `refused: ${refusal.reason}`), refusal.status)
    }
    const route = routeOf(request.url ?? '')
    const api = context.apiFor(operator(context))
    if (route.kind === 'call') await answerCall(route, { request, response, api })
    else
      await answerWatch(route, { request, response, api, closing: context.closing, keepAliveMs: context.keepAliveMs })
  } catch (error) {
    answerError(response, error)
  }
}

function operator({ tier }: ControlServerOptions): Principal {
  return { kind: 'operator', name: 'operator', tier: tier(), sandboxId: null, scopes: ['read', 'send', 'admin'] }
}

async function listen(server: http.Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, path)))
    server.listen(path, resolve)
  })
  server.on('error', () => {})
  await chmod(path, 0o600)
}

function listenError(error: Error, path: string): NodeError {
  const code = (error as NodeJS.ErrnoException).code
  const text = `cannot serve the control socket ${path}: ${messageOf(error)}`
  if (code === 'EADDRINUSE') return new NodeError('ALREADY_RUNNING', `a node serves ${path} already`, { cause: error })
  if (code === 'ENAMETOOLONG' || code === 'EINVAL') return new NodeError('PATH_TOO_LONG', text, { cause: error })
  return new NodeError(code === 'ENOSPC' ? 'DISK_FULL' : 'NO_PERMISSION', text, { cause: error })
}

async function shut(server: http.Server, closing: AbortController): Promise<void> {
  const ended = new Promise<void>((resolve) => server.close(() => resolve()))
  closing.abort()
  server.closeIdleConnections()
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
  await ended
  clearTimeout(cut)
}
