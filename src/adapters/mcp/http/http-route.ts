import type { IncomingMessage, ServerResponse } from 'node:http'
import { classifyInboundRequest, type RequestId } from '@modelcontextprotocol/server'
import type { Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import type { LongLine } from '../../../kit/lines.js'
import { idOfEdges } from '../../../kit/mcp/message-edges.js'
import { changeNotices } from '../../../kit/mcp/session-state.js'
import { clientMessage } from '../../../kit/schema/nulls.js'
import type { Principal } from '../../../ports/node-api.js'
import { HttpAnswer } from './http-answer.js'
import type { HttpConnection } from './http-connection.js'
import { decodedHeader, standardHeadersFault } from './http-headers.js'
import { HttpSessions, type SessionCaller } from './http-sessions.js'
import type { KeptSessions } from './kept-sessions.js'
import { correlationIdOf, errorResponse, inFlightFault, type JsonRpcFault } from '../server/json-rpc.js'
import { oversizedResult, toolOfEdges } from '../server/oversized-call.js'
import { createError, JSON_RPC, type StructuredError } from '../server/structured-error.js'

/** A request with a valid token: its caller, its body and its end. */
export interface McpHttpCall extends SessionCaller {
  /** Calls back when the client has hung up, its token ends or the node stops. */
  onAbort(run: () => void): void
  readBody(): Promise<Buffer>
  /** Reads past a refused body and keeps its edges; null beyond the limits. */
  skipBody(limits: { readonly maxBytes: number; readonly timeoutMs: number }): Promise<LongLine | null>
}

/** Dependencies of {@link McpHttp}. */
export interface McpHttpDeps {
  readonly clock: Clock
  /** Makes ids of sessions and correlation ids. */
  readonly newId: () => string
  /** Sessions that continue after a restart of the node. */
  readonly kept?: KeptSessions
  /** A connection of a caller to a server of its own. */
  connect(principal: Principal): HttpConnection
  /** Counts a call of a tool whose body was too large to be read. Never rejects. */
  refuseOversized(tool: string, principal: Principal): Promise<StructuredError>
  readonly keepAliveMs?: number
}

/** Milliseconds between two comments on a quiet stream. */
const KEEP_ALIVE_MS = 15_000
/** Statuses of errors that were found before anything ran. */
const STATUS: Readonly<Record<number, number>> = {
  [JSON_RPC.PARSE_ERROR]: 400,
  [JSON_RPC.INVALID_REQUEST]: 400,
  [JSON_RPC.UNSUPPORTED_VERSION]: 400,
  [JSON_RPC.NOT_INITIALIZED]: 400,
  [JSON_RPC.MISSING_CAPABILITY]: 400
}
/** Of messages that claim a version: since 2026 a missing method has the status of a missing page. */
const STATUS_OF_CLAIMED: typeof STATUS = { ...STATUS, [JSON_RPC.METHOD_NOT_FOUND]: 404 }
/** Twice the largest `tools.maxPayloadBytes`. */
const SKIP = { maxBytes: 33_554_432, timeoutMs: 10_000 }
const SESSION = 'mcp-session-id'
const LISTEN = 'subscriptions/listen'
const CALL = 'tools/call'
/** It keeps nothing between two texts. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/**
 * MCP over streamable HTTP, in both eras. Messages that claim a version of 2026 or later need no session: all messages
 * of a token share one server. Older clients get a session at their handshake. The answer is JSON, or a stream once a
 * message precedes it.
 */
export class McpHttp {
  readonly #deps: McpHttpDeps
  readonly #sessions: HttpSessions

  constructor(deps: McpHttpDeps) {
    this.#deps = deps
    this.#sessions = new HttpSessions(deps)
  }

  /** Answers one request. */
  async handle(request: IncomingMessage, response: ServerResponse, call: McpHttpCall): Promise<void> {
    if (request.method === 'GET') return this.#listen(request, response, call)
    if (request.method === 'DELETE') return this.#end(request, response, call)
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
      return this.#refuse(response, { status: 415, message: 'the content type is not application/json' })
    }
    const accept = request.headers.accept ?? '*/*'
    if (!/application\/json|\*\/\*|application\/\*|text\/event-stream/i.test(accept)) {
      return this.#refuse(response, { status: 406, message: 'accept application/json and text/event-stream' })
    }
    const read = await call.readBody().catch((error: unknown) => this.#unread(error, { request, response, call }))
    if (read === null) return
    const body = parsed(read)
    if (body === undefined)
      return this.#refuse(response, { status: 400, code: JSON_RPC.PARSE_ERROR, message: 'Parse error' })
    if (!isRecord(body)) {
      const reason = Array.isArray(body)
        ? 'batches are not served: send one message a request'
        : 'a message is a JSON object'
      return this.#refuse(response, {
        status: 400,
        code: JSON_RPC.INVALID_REQUEST,
        message: 'Invalid Request',
        data: { reason }
      })
    }
    await this.#post(clientMessage(body), {
      request,
      response,
      call,
      mayStream: /text\/event-stream|\*\/\*/i.test(accept)
    })
  }

  /** Ends every session and stream. */
  async close(): Promise<void> {
    await this.#sessions.close()
  }

  async #post(body: McpMessage, posted: Posted): Promise<void> {
    const { request, response } = posted
    const headers = {
      httpMethod: 'POST',
      body,
      ...header(request, 'mcp-protocol-version', 'protocolVersionHeader'),
      ...header(request, 'mcp-method', 'mcpMethodHeader'),
      ...header(request, 'mcp-name', 'mcpNameHeader')
    }
    const route = classifyInboundRequest(headers)
    if (route.kind === 'reject') {
      const { httpStatus: status, code, message, data } = route
      return this.#refuse(response, { status, code, message, data, body })
    }
    if (route.kind === 'legacy') return this.#legacy(body, posted)
    const fault = route.messageKind === 'request' ? standardHeadersFault(headers, body) : null
    if (fault !== null) return this.#refuse(response, { ...fault, body })
    // Its answer has no end: it can only be a stream.
    if (route.messageKind === 'request' && body['method'] === LISTEN && !posted.mayStream) {
      return this.#refuse(response, {
        status: 406,
        message: `${LISTEN} is answered as text/event-stream: accept that`,
        body
      })
    }
    // Its ids belong to many clients; a client cancels its own request by ending the answer.
    if (body['method'] === 'notifications/cancelled') return void response.writeHead(202).end()
    const connection = this.#sessions.shared(posted.call)
    if (connection === null) return this.#full(response, body)
    const isCall = body['method'] === CALL
    const looked = isCall ? (connection.paramHeaders?.faultOf(body['params'], request.headers) ?? null) : null
    const mismatch = looked instanceof Promise ? await looked : looked
    if (mismatch !== null) return this.#refuse(response, { ...mismatch, body })
    // It may have ended while its tools were asked.
    if (connection.isClosed) return this.#refuse(response, { status: 503, message: 'Connection closed', body })
    this.#deliver(connection, body, { ...posted, statuses: STATUS_OF_CLAIMED })
  }

  #legacy(body: McpMessage, posted: Posted): void {
    const { request, response, call } = posted
    if (body['method'] === 'initialize' && idOf(body) !== null) {
      const session = this.#sessions.open(call)
      if (session === null) return this.#full(response, body)
      // Its client does not learn of a session that was refused.
      this.#sessions.took(session.id, call, body)
      const onError = (): void => void this.#sessions.end(session.id, call)
      return this.#deliver(session.connection, body, { ...posted, headers: { [SESSION]: session.id }, onError })
    }
    const id = request.headers[SESSION]
    if (typeof id !== 'string') {
      const data = {
        ...createError('NOT_INITIALIZED', `send initialize first, then its ${SESSION} header with every request`)
      }
      return this.#refuse(response, {
        status: 400,
        code: JSON_RPC.NOT_INITIALIZED,
        message: 'Not initialized',
        data,
        body
      })
    }
    const connection = this.#sessions.find(id, call)
    if (connection === null) return this.#noSession(response, body)
    this.#sessions.took(id, call, body)
    const named = typeof body['method'] === 'string' ? idOf(body) : null
    if (named !== null && connection.isInFlight(named))
      return this.#refuse(response, { status: 400, ...inFlightFault(named), body })
    this.#deliver(connection, body, posted)
  }

  #deliver(connection: HttpConnection, body: McpMessage, posted: Posted): void {
    const { response, call, mayStream, headers = {}, statuses = STATUS, onError = () => {} } = posted
    const id = idOf(body)
    if (id === null || typeof body['method'] !== 'string') {
      const { method, params } = body
      // It names the request by the client's id; here the request has another.
      if (method === 'notifications/cancelled' && isRecord(params)) connection.cancel({ ...body, params })
      else connection.notify(body)
      response.writeHead(202, headers).end()
      return
    }
    const { keepAliveMs = KEEP_ALIVE_MS } = this.#deps
    const answer = new HttpAnswer(response, {
      mayStream,
      headers,
      onError,
      keepAliveMs,
      statusOf: (code) => statuses[code] ?? 200
    })
    const giveUp = connection.request({ ...body, id }, answer)
    call.onAbort(giveUp)
  }

  /**
   * A body that is too large. Of one of at most 32 MiB the edges are read: a call whose id they show gets a
   * result, as over stdio. Unless a header names another method, others may only be that large as a call of a tool.
   * null: it is answered. @throws the error
   */
  async #unread(error: unknown, { request, response, call }: Unread): Promise<null> {
    const { 'mcp-method': method = CALL, 'mcp-name': given } = request.headers
    if (!(error instanceof Error && 'status' in error && error.status === 413) || method !== CALL) throw error
    const edges = isLonger(request, SKIP.maxBytes) ? null : await call.skipBody(SKIP)
    const shown = edges === null ? null : toolOfEdges(edges)
    const id = edges && idOfEdges(edges)
    const named = typeof given === 'string' ? (decodedHeader(given.trim()) ?? '') : ''
    const refusal = await this.#deps.refuseOversized(shown || named, call.principal)
    if (id !== null && shown !== null) {
      const answer = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: oversizedResult(refusal) }))
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
      return null
    }
    const { correlationId = '', ...data } = refusal
    const fault = { code: JSON_RPC.INVALID_REQUEST, message: 'Invalid Request', id, data }
    throw Object.assign(error, { shape: errorResponse(fault, correlationId) })
  }

  /** Opens the stream for a session's notifications. */
  #listen(request: IncomingMessage, response: ServerResponse, call: McpHttpCall): void {
    if (!/text\/event-stream|\*\/\*/i.test(request.headers.accept ?? '')) {
      return this.#refuse(response, { status: 406, message: 'accept text/event-stream' })
    }
    const id = request.headers[SESSION]
    const connection = typeof id === 'string' ? this.#sessions.find(id, call) : null
    if (connection === null) return this.#noSession(response)
    if (connection.isListenedTo)
      return this.#refuse(response, { status: 409, message: 'the session has a stream already' })
    const { keepAliveMs = KEEP_ALIVE_MS } = this.#deps
    const answer = new HttpAnswer(response, { mayStream: true, keepAliveMs })
    answer.open()
    connection.listen(answer)
    // Lists may be others in another process of the node.
    if (this.#sessions.isNewlyRenewed(connection)) for (const notice of changeNotices(true, [])) answer.note(notice)
    response.once('close', () => connection.listen(null))
  }

  #end(request: IncomingMessage, response: ServerResponse, call: McpHttpCall): void {
    const id = request.headers[SESSION]
    if (typeof id !== 'string' || !this.#sessions.end(id, call)) return this.#noSession(response)
    response.writeHead(204).end()
  }

  #noSession(response: ServerResponse, body: McpMessage = {}): void {
    this.#refuse(response, { status: 404, code: -32_001, message: 'Session not found', body })
  }

  #full(response: ServerResponse, body: McpMessage): void {
    const data = { ...createError('RESOURCE_EXHAUSTED', 'all sessions are taken; try again when one has ended') }
    this.#refuse(response, { status: 503, message: 'Too many sessions', data, body })
  }

  #refuse(
    response: ServerResponse,
    { status, code = -32_000, message, data, body = {}, id = idOf(body) }: McpRefusal
  ): void {
    const fault: JsonRpcFault = { code, message, id, ...(isRecord(data) ? { data } : {}) }
    const { params } = body
    const named = isRecord(params) ? correlationIdOf(params['_meta']) : null
    const answer = Buffer.from(JSON.stringify(errorResponse(fault, named ?? this.#deps.newId())))
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
  }
}

interface Unread {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly call: McpHttpCall
}

type McpMessage = Readonly<Record<string, unknown>>

interface Posted {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly call: McpHttpCall
  /** Does the client take a stream? */
  readonly mayStream: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly statuses?: typeof STATUS
  /** Called when the answer was an error. */
  readonly onError?: () => void
}

interface McpRefusal {
  readonly status: number
  readonly code?: number
  readonly message: string
  readonly data?: unknown
  /** The message that is refused; it may name a correlation id. */
  readonly body?: McpMessage
  /** Default: that of the message. */
  readonly id?: RequestId | null
}

/** Does a request announce more? A body in chunks announces nothing. */
function isLonger({ headers }: IncomingMessage, bytes: number): boolean {
  return !(Number(headers['content-length'] ?? 0) <= bytes)
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(UTF_8.decode(body)) as unknown
  } catch {
    return undefined
  }
}

function idOf({ id }: McpMessage): RequestId | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

function header<K extends string>(request: IncomingMessage, name: string, key: K): { readonly [P in K]?: string } {
  const value = request.headers[name]
  return (typeof value === 'string' ? { [key]: value } : {}) as { readonly [P in K]?: string }
}
