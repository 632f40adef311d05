import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TokenGrant } from '../../ports/token-api.js'
import type { AddressLimit } from './address-limit.js'
import { type Authorized, authorize, NO_TOKEN } from './authorize.js'
import { Authority, bracketed, callerHeaders, type HttpRefusal, targetOf } from './authority.js'
import { isLoopback, listen } from './bind.js'
import { announcedBytes, answerError, isJson, isSending, TooLarge } from './body.js'
import { answerPreflight, allowOrigin, isPreflight } from './cors.js'
import { HttpConnections, type HttpConnectionState, ignore, waitFor } from './connections.js'
import { HttpExchange } from './exchange.js'
import { HttpError, internalError } from './http-error.js'
import { refuseConnection } from './malformed.js'
import { RefusedBodies } from './refused-bodies.js'
import { skippedBody } from './skipped-body.js'
import { UnreadAnswers } from './unread.js'
import { BODY_MAX, type HttpRoute, HttpRouteTable, type RefusedHttpRequest } from './route.js'
import { Bag } from '../../kit/transient.js'

/** Limits for one client, in milliseconds and bytes. */
export const HTTP_LIMITS = {
  maxHeaderBytes: 16_384,
  /** Until the headers are there, from the first byte or the connection on. */
  headersTimeoutMs: 10_000,
  /** Until the whole request is there. */
  requestTimeoutMs: 60_000,
  /** How long a connection may be idle between two requests. */
  keepAliveMs: 5000,
  /** How often these times are looked at. */
  checkMs: 1000,
  /** Further ones are dropped. The setting `http.maxConnections` is another number. */
  maxConnections: 512,
  /** Time and bytes for reading the rest of a request after its answer. */
  drainMs: 2000,
  drainBytes: 4_194_304,
  /** Time for the body of a request that is refused, which is read for the id of its answer only. */
  refusedBodyMs: 1000,
  /** Such bodies that are read at once; further answers name no id. */
  refusedBodies: 64,
  /** Time and bytes for reading past a body that is too large, for the id at one of its edges. */
  skipMs: 2000,
  skipBytes: 33_554_432,
  /**
   * A client that reads nothing of its answer for this time is cut off. Node restarts the time once when some bytes
   * moved in it.
   */
  unreadMs: 30_000,
  /**
   * Bytes of answers that may wait for their clients, of all connections together; beyond it the one that is behind
   * longest is cut.
   */
  unreadBytes: 134_217_728,
  /** Grace period of open requests when the listener closes. */
  closeGraceMs: 1000
}

/** The numbers of {@link HTTP_LIMITS}; tests lower them. */
export type HttpLimits = Readonly<typeof HTTP_LIMITS>

/** Options for binding a listener. */
export interface HttpListenerOptions {
  /** A name or address; a wildcard binds every address. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Further values of Host, as `http.hosts` has them. */
  readonly hosts: readonly string[]
  /** Origins of web pages that may call, as `http.origins` has them. */
  readonly origins: readonly string[]
  /** Its URL from outside, as `http.publicUrl` has it. */
  readonly publicUrl?: string | null
  readonly limits?: Partial<HttpLimits>
  /** Counts requests without a valid token. Absent: they are not counted. */
  readonly addressLimit?: AddressLimit
}

/** The service behind a listener once the node is up. */
export interface HttpService {
  readonly routes: readonly HttpRoute[]
  /** The grant of a token; null for an unknown one. */
  admit(token: string): TokenGrant | null | Promise<TokenGrant | null>
  /** Where clients learn how to get a token (RFC 9728); absent: from the operator alone. */
  readonly resourceMetadata?: string
  /** Called with every request that was refused for its sender or its form, for the audit log. */
  onRefusal(refusal: HttpRefusal): void
  /** Called with every thrown error that is no answer. */
  onFault(error: unknown): void
}

/** A bound HTTP listener. Until `open` every request is answered with 503. */
export interface HttpListener {
  /** `http://127.0.0.1:7420`, for clients; of a wildcard the loopback address. */
  readonly url: string
  /** The same with the bound address, for people: `http://0.0.0.0:7420` of a wildcard. */
  readonly boundUrl: string
  /** Does it listen beyond this machine? */
  readonly isExposed: boolean
  /** Is it bound to every address, so that none is its own? */
  readonly isWildcard: boolean
  open(service: HttpService): void
  /** Takes no more requests, lets those under way finish for a second, then cuts. Idempotent. */
  close(): Promise<void>
}

/**
 * Binds the one HTTP listener of a node.
 * @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID for a host that this machine does not have
 */
export async function startHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const limits = { ...HTTP_LIMITS, ...options.limits }
  const server = http.createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
    // A request without Host is refused like one with a wrong one, in JSON.
    requireHostHeader: false
  })
  server.maxConnections = limits.maxConnections
  // Of a connection on which nothing moves; while no answer is under way Node takes keepAliveTimeout for it.
  server.timeout = limits.unreadMs
  // Node drops headers past a count silently: an Origin among them would not be seen. The size limit bounds them.
  server.maxHeadersCount = 0
  const address = await listen(server, options)
  const listener = new Listener(server, { options, limits, address })
  server.on('request', (request, response) => listener.serve(request, response, null))
  server.on('checkContinue', (request: http.IncomingMessage, response: http.ServerResponse) =>
    listener.serve(request, response, 'continue')
  )
  server.on('checkExpectation', (request: http.IncomingMessage, response: http.ServerResponse) =>
    listener.serve(request, response, 'other')
  )
  server.on('timeout', (socket) => listener.quiet(socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => listener.failed(error, socket as Socket))
  return listener
}

/** Bytes of one answer beyond which it is looked at what waits in all. */
const LARGE_BYTES = 65_536

/** Of a request, by its header `Expect`. `continue`: the client sends its body only after `100 Continue`. */
type Expectation = 'continue' | 'other'

/** One request on its way to its route. */
interface ListenedRequest {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  readonly connection: HttpConnectionState
  readonly expects: Expectation | null
  exchange: HttpExchange | null
}

type ReadBody = Pick<RefusedHttpRequest, 'body' | 'edges'>

const NOT_READ: ReadBody = { body: null }

class Listener implements HttpListener {
  readonly url: string
  readonly boundUrl: string
  readonly isExposed: boolean
  readonly isWildcard: boolean
  readonly #server: http.Server
  readonly #limits: HttpLimits
  readonly #authority: Authority
  readonly #open = new Bag<HttpExchange>()
  readonly #connections = new HttpConnections()
  readonly #unread: UnreadAnswers
  readonly #timer: NodeJS.Timeout
  readonly #addressLimit: AddressLimit | undefined
  readonly #refusedBodies: RefusedBodies
  #service: (HttpService & { readonly table: HttpRouteTable }) | null = null
  #closed: Promise<void> | null = null

  constructor(
    server: http.Server,
    {
      options,
      limits,
      address
    }: { readonly options: HttpListenerOptions; readonly limits: HttpLimits; readonly address: AddressInfo }
  ) {
    this.#server = server
    this.#limits = limits
    this.#addressLimit = options.addressLimit
    this.#refusedBodies = new RefusedBodies(limits)
    this.#unread = new UnreadAnswers(limits)
    this.#timer = setInterval(() => this.#unread.check(), limits.checkMs).unref()
    this.#authority = new Authority({ ...options, port: address.port, bound: [options.host, address.address] })
    const bound = bracketed(address.address)
    this.isWildcard = bound === '0.0.0.0' || bound === '[::]'
    this.boundUrl = `http://${bound}:${address.port}`
    this.url = this.isWildcard ? `http://127.0.0.1:${address.port}` : this.boundUrl
    this.isExposed = !isLoopback(address.address)
  }

  open(service: HttpService): void {
    this.#service = { ...service, table: new HttpRouteTable(service.routes) }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  serve(request: http.IncomingMessage, response: http.ServerResponse, expects: Expectation | null): void {
    const connection = this.#connections.of(request.socket)
    response.on('error', destroyIt)
    request.on('error', ignore)
    // A request behind the last one of a connection is not run: its answer could not be sent.
    if (connection.isRefused) return
    connection.answers.push(response)
    const asked: ListenedRequest = { request, response, connection, expects, exchange: null }
    response.on('close', () => this.#over(asked))
    if (connection.checking === null) this.#serve(asked)
    else void this.#serveLater(asked)
  }

  /** Behind a token that is being checked. */
  async #serveLater(asked: ListenedRequest): Promise<void> {
    const { connection } = asked
    while (connection.checking !== null) await connection.checking
    if (!connection.isRefused) this.#serve(asked)
  }

  /** No promise is made and waited for that is not needed: most requests get to their route in this turn. */
  #serve(asked: ListenedRequest): void {
    try {
      const answering = this.#answer(asked)
      if (answering instanceof Promise)
        answering.then(
          () => this.#report(asked.response),
          (error: unknown) => this.#failed(asked, error)
        )
      else this.#report(asked.response)
    } catch (error) {
      this.#failed(asked, error)
    }
  }

  #failed(asked: ListenedRequest, error: unknown): void {
    const { request, connection } = asked
    if (!(error instanceof HttpError)) this.#service?.onFault(error)
    const known = error instanceof HttpError ? error : internalError()
    if (isSending(request)) connection.isRefused = true
    const reading = this.#refusedBody(asked, known)
    if (reading === null) return this.#refuse(asked, known, NOT_READ)
    void reading.then((read) => this.#refuse(asked, known, read))
  }

  #refuse({ request, response }: ListenedRequest, error: HttpError, read: ReadBody): void {
    this.#shape(request, error, read)
    answerError(request, response, { error, limits: this.#limits })
  }

  /** Reads the body of a refused request, or its edges, for the id in its answer; null: it is not read. */
  #refusedBody(
    { request, connection, exchange, expects }: ListenedRequest,
    error: HttpError
  ): Promise<ReadBody> | null {
    const begun = error instanceof TooLarge ? error.read.length : 0
    if ((expects !== null && begun === 0) || error.shape !== null) return null
    const { method = '', url = '' } = request
    const { path } = targetOf(url)
    const maxBytes = this.#service?.table.find(path)?.refusedBodyBytes?.({ method, path }) ?? 0
    if (maxBytes === 0) return null
    if (error instanceof TooLarge) return this.#edges(request, error.read)
    if (exchange !== null) return null
    const reading = this.#refusedBodies.read(request, maxBytes)
    if (reading === null) return null
    connection.stopReading = reading.stop
    return reading.body.then((body) => ({ body }))
  }

  #edges(request: http.IncomingMessage, begun: Buffer): Promise<ReadBody> | null {
    const { skipMs: timeoutMs, skipBytes: maxBytes } = this.#limits
    if (!isJson(request) || announcedBytes(request) > maxBytes) return null
    return skippedBody(request, { maxBytes, timeoutMs }, begun).then((edges) => ({ body: null, edges }))
  }

  /** Handles a connection on which no byte moved for a while. A client that waits for slow work has nothing to read. */
  quiet(socket: Socket): void {
    if (this.#connections.of(socket).answers.length > 0 && socket.writableLength === 0)
      socket.setTimeout(this.#limits.unreadMs)
    else socket.destroy()
  }

  #over({ response, connection, exchange }: ListenedRequest): void {
    const at = connection.answers.indexOf(response)
    if (at !== -1) connection.answers.splice(at, 1)
    if (exchange === null) return
    this.#open.delete(exchange)
    this.#unread.forget(response)
    exchange.closed()
  }

  /** A connection whose bytes are no request, or come too slowly. */
  failed(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.of(socket)
    connection.stopReading()
    const isNew = !connection.isRefused
    connection.isRefused = true
    const { answers } = connection
    const last = answers.at(-1)
    const how = {
      hasBegun: answers.some(({ headersSent }) => headersSent),
      drainMs: this.#limits.drainMs,
      shape: (reported: HttpError) => (last === undefined ? undefined : this.#shape(last.req, reported, NOT_READ))
    }
    const refusal = isNew ? refuseConnection(error, socket, how) : null
    // A client cannot fill the audit log.
    const isLimited = refusal !== null && (this.#addressLimit?.refusal(connection.address, false) ?? null) !== null
    if (refusal !== null && !isLimited) this.#service?.onRefusal(refusal)
  }

  /** Gives the promise of the route's handler, where it makes one. @throws HttpError */
  #answer(asked: ListenedRequest): unknown {
    const { request, response, connection } = asked
    const { url = '', socket } = request
    const headers = callerHeaders(request)
    const admission = this.#authority.admit(headers, { url, localAddress: socket.localAddress ?? '' })
    if (admission.refusal !== null) throw this.#refusal(asked, admission.refusal, 'FORBIDDEN')
    if (admission.origin !== null && admission.isForeign) allowOrigin(response, admission.origin)
    const service = this.#service
    if (service === null || this.#closed !== null) throw notServing()
    const { path, query } = targetOf(url)
    const route = service.table.find(path)
    if (admission.isForeign && isPreflight(request)) {
      this.#count(connection, false)
      return answerPreflight(request, response, route)
    }
    const found = authorize(service, headers.authorizations)
    if (!(found instanceof Promise)) return this.#enter(asked, { path, query, route, authorized: found })
    return waitFor(connection, found).then((known) => {
      if (!connection.isRefused) return this.#enter(asked, { path, query, route, authorized: known })
    })
  }

  /** It is known who asks: what is allowed goes to its route. @throws HttpError */
  #enter(asked: ListenedRequest, { path, query, route, authorized: { grant, reason } }: ListenedRoute): unknown {
    const { request, response, connection, expects } = asked
    const isPublic = route?.isPublic === true
    if (reason !== null && !isPublic)
      throw this.#refusal(asked, { status: 401, rule: 'http-token', reason }, 'UNAUTHORIZED')
    if (reason !== null && route?.isUnlimited !== true) this.#count(connection, false)
    if (expects === 'other')
      throw new HttpError(417, { code: 'EXPECTATION_FAILED', message: 'only 100-continue may be expected' })
    if (route === undefined) throw new HttpError(404, { code: 'NOT_FOUND', message: 'there is nothing at this path' })
    if (!route.methods.includes(request.method ?? '')) throw wrongMethod(route)
    const maxBytes = route.maxBodyBytes ?? BODY_MAX
    if (announcedBytes(request) > maxBytes && route.readsLargeBodies !== true) throw new TooLarge(maxBytes)
    const exchange = new HttpExchange(
      { request, response },
      {
        ...{ path, query, maxBytes, isWaiting: expects === 'continue', limits: this.#limits },
        grant: isPublic ? null : grant
      }
    )
    asked.exchange = exchange
    this.#open.add(exchange)
    this.#unread.watch(response)
    return route.handle(request, response, exchange)
  }

  #report(response: http.ServerResponse): void {
    if (response.writableLength > LARGE_BYTES) this.#unread.check()
  }

  #shape({ method = '', url = '' }: http.IncomingMessage, error: HttpError, read: ReadBody): void {
    const { path } = targetOf(url)
    error.shape ??= this.#service?.table.find(path)?.errorBody?.(error, { method, path, ...read }) ?? null
  }

  /** Counts a request without a valid token. @throws HttpError 429 */
  #count(connection: HttpConnectionState, hasWrongToken: boolean): void {
    const limited = this.#addressLimit?.refusal(connection.address, hasWrongToken) ?? null
    if (limited === null) return
    connection.isRefused = true
    throw limited
  }

  /** @throws HttpError 429 when its address sends too many of such requests: those are not audited */
  #refusal({ connection }: ListenedRequest, refusal: HttpRefusal, code: string): HttpError {
    this.#count(connection, refusal.rule === 'http-token' && refusal.reason !== NO_TOKEN)
    this.#service?.onRefusal(refusal)
    // The rest of the connection is not read either.
    connection.isRefused = true
    const { status, reason } = refusal
    const challenge =
      status === 401 ? { 'www-authenticate': challengeFor(reason, this.#service?.resourceMetadata) } : null
    return new HttpError(status, {
      code,
      message: `refused: ${reason}`,
      headers: { connection: 'close', ...challenge }
    })
  }

  async #close(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const exchange of [...this.#open]) exchange.stop()
    this.#server.closeIdleConnections()
    const cut = setTimeout(() => this.#server.closeAllConnections(), this.#limits.closeGraceMs)
    await ended
    clearTimeout(cut)
    clearInterval(this.#timer)
  }
}

interface ListenedRoute {
  readonly authorized: Authorized
  readonly path: string
  readonly query: string
  readonly route: HttpRoute | undefined
}

function destroyIt(this: http.ServerResponse): void {
  this.destroy()
}

function challengeFor(reason: string, metadata: string | undefined): string {
  const where = metadata === undefined ? '' : `, resource_metadata="${metadata}"`
  return `Bearer realm="a2a-node"${reason === NO_TOKEN ? '' : ', error="invalid_token"'}${where}`
}

function notServing(): HttpError {
  const headers = { connection: 'close', 'retry-after': '1' }
  return new HttpError(503, { code: 'NODE_NOT_RUNNING', message: 'the node is starting or stopping', headers })
}

function wrongMethod({ methods }: HttpRoute): HttpError {
  const allow = methods.join(', ')
  return new HttpError(405, {
    code: 'METHOD_NOT_ALLOWED',
    message: `only ${allow} may be used here`,
    headers: { allow }
  })
}
