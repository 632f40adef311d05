import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCResponse,
  MessageExtraInfo,
  RequestId,
  Transport,
  TransportSendOptions
} from '@modelcontextprotocol/server'
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import { isRecord } from '../../../kit/json.js'
import { clientMessage } from '../../../kit/schema/nulls.js'
import {
  claimFault,
  correlationIdOf,
  errorResponse,
  inFlightFault,
  paramsFault,
  readMessage,
  unsupportedVersion,
  versionClaim,
  type JsonRpcFault,
  type ReadMessage
} from './json-rpc.js'
import { stepLifecycle, type LifecycleInput, type LifecycleState, type LifecycleVerdict } from './lifecycle.js'
import { createError, JSON_RPC } from './structured-error.js'
import type { ToolLog } from './tool.js'

/** Requests of one connection that wait for their answer at once. */
const MAX_IN_FLIGHT = 1024
/** Questions of the server to the client of one connection that wait for their answer at once. */
const MAX_ASKED = 64

/** Which versions are served: those with a handshake, those without, or both. */
export type Eras = 'both' | 'legacy' | 'modern'

/** A request that was refused as such, before any tool was called. */
export interface RefusedRequest {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly code: number
  readonly message: string
  readonly correlationId: string
}

/** Dependencies of {@link GatedTransport}. */
export interface GatedTransportDeps {
  /** Id of the connection, for every protocol error whose request names none. */
  readonly correlationId: string
  readonly eras: Eras
  readonly log: ToolLog
  /** Called with each request that got a JSON-RPC error. */
  readonly onRefused?: (refused: RefusedRequest) => void
}

/** A request that waits for its answer. */
interface RequestInFlight {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

type ReadRequest = Extract<ReadMessage, { kind: 'request' }>
type ReadNotification = Extract<ReadMessage, { kind: 'notification' }>

/**
 * Filters a transport of the SDK: passes messages with a valid shape and id at the right time. It answers all others as
 * the specification says (mcp-runtime, Error Model). Once closed it writes nothing.
 */
export class GatedTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #inner: Transport
  readonly #deps: GatedTransportDeps
  readonly #inFlight = new Map<RequestId, RequestInFlight>()
  /** Ids of questions that the client has not answered. */
  readonly #asked = new Set<unknown>()
  #state: LifecycleState = 'STARTING'

  constructor(inner: Transport, deps: GatedTransportDeps) {
    this.#inner = inner
    this.#deps = deps
  }

  /** State of the connection. */
  get state(): LifecycleState {
    return this.#state
  }

  /** Parameters of the requests of a method that wait for their answer. */
  *waiting(method: string): Iterable<Readonly<Record<string, unknown>>> {
    for (const one of this.#inFlight.values()) if (one.method === method) yield one.params
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream === true
  }

  start(): Promise<void> {
    this.#inner.onmessage = (message, extra) => this.#take(message, extra)
    this.#inner.onerror = (error) => this.onerror?.(error)
    this.#inner.onclose = () => {
      this.#step('close')
      this.#inFlight.clear()
      this.#asked.clear()
      this.onclose?.()
    }
    return this.#inner.start()
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#state === 'CLOSED') return Promise.resolve()
    if ('method' in message) return this.#tell(message, options)
    return this.#inner.send(this.#answered(message), options)
  }

  /** Remembers a question to the client until it is answered or the server cancels it. */
  async #tell(
    message: Extract<JSONRPCMessage, { readonly method: string }>,
    options?: TransportSendOptions
  ): Promise<void> {
    if (message.method === 'notifications/cancelled') this.#asked.delete(message.params?.['requestId'])
    if (!('id' in message)) return await this.#inner.send(message, options)
    if (this.#asked.size >= MAX_ASKED) throw new Error(`the client has not answered ${MAX_ASKED} questions`)
    this.#asked.add(message.id)
    try {
      await this.#inner.send(message, options)
    } catch (error) {
      this.#asked.delete(message.id)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#step('close')
    this.#inFlight.clear()
    this.#asked.clear()
    await this.#inner.close()
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version)
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#inner.setSupportedProtocolVersions?.(versions)
  }

  #step(input: LifecycleInput): LifecycleVerdict {
    const { state, verdict } = stepLifecycle(this.#state, input)
    this.#state = state
    return verdict
  }

  #take(given: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    if (this.#state === 'CLOSED') return
    const message = clientMessage(given)
    const read = readMessage(message)
    if (read.kind === 'fault') this.#refuse(read.fault, message)
    else if (read.kind === 'dropped') this.#deps.log('warn', 'dropped a message', { reason: read.reason })
    else if (read.kind === 'response') this.#responded(message, extra)
    else if (read.kind === 'notification' ? this.#notified(read) : this.#requested(read))
      this.onmessage?.(message, extra)
  }

  /** Only the answer to a question goes to the server. */
  #responded(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    if ('id' in message && this.#asked.delete(message.id)) this.onmessage?.(message, extra)
    else this.#deps.log('debug', 'dropped a message', { reason: 'not a response to any request' })
  }

  /** Does it go to the server? A notification gets no answer. */
  #notified({ method, params }: ReadNotification): boolean {
    const input = this.#inputOf(method, params, 'notifications/initialized')
    if (this.#step(input) !== 'pass') return false
    // The server does not answer a cancelled request: its id is free again.
    if (method === 'notifications/cancelled') this.#inFlight.delete(params['requestId'] as RequestId)
    return true
  }

  /** Does it go to the server? Otherwise it has been answered. */
  #requested(request: ReadRequest): boolean {
    const fault = this.#faultOf(request)
    if (fault === null) {
      this.#inFlight.set(request.id, request)
      return true
    }
    this.#refuse(fault, request)
    return false
  }

  #faultOf({ id, method, params }: ReadRequest): JsonRpcFault | null {
    if (this.#inFlight.has(id)) return inFlightFault(id)
    if (this.#inFlight.size >= MAX_IN_FLIGHT) {
      const data = { code: 'RESOURCE_EXHAUSTED', reason: `${MAX_IN_FLIGHT} requests are in flight` }
      return { code: JSON_RPC.INTERNAL_ERROR, message: 'Too many requests', id, data }
    }
    const claim = versionClaim(params)
    if (claim !== undefined) {
      const isLegacy = this.#deps.eras === 'legacy'
      const fault = isLegacy ? unsupportedVersion(claim, SUPPORTED_PROTOCOL_VERSIONS) : claimFault(method, claim)
      if (fault !== null) return { ...fault, id }
    }
    const { state, verdict } = stepLifecycle(this.#state, this.#inputOf(method, params, 'initialize'))
    if (verdict === 'initialized-already') {
      const data = { reason: 'this connection is initialized already; open another one for another handshake' }
      return { code: JSON_RPC.INVALID_REQUEST, message: 'Invalid Request', id, data }
    }
    if (verdict !== 'pass') {
      const data = { ...createError('NOT_INITIALIZED', 'send initialize and notifications/initialized first') }
      return { code: JSON_RPC.NOT_INITIALIZED, message: 'Not initialized', id, data }
    }
    const reason = paramsFault(method, params)
    if (reason !== null) return { code: JSON_RPC.INVALID_PARAMS, message: 'Invalid params', id, data: { reason } }
    this.#state = state
    return null
  }

  #inputOf(
    method: string,
    params: Readonly<Record<string, unknown>>,
    step: 'initialize' | 'notifications/initialized'
  ): LifecycleInput {
    const { eras } = this.#deps
    // Where only versions without a handshake are served, the server says so itself.
    if (eras === 'modern' || (eras === 'both' && versionClaim(params) !== undefined)) return 'claimed'
    if (method !== step) return 'other'
    return step === 'initialize' ? 'initialize' : 'initialized'
  }

  /** Refuses any message as it came. */
  #refuse(fault: JsonRpcFault, message: unknown): void {
    const { method, params } = isRecord(message) ? message : {}
    const known = { method: typeof method === 'string' ? method : '', params: isRecord(params) ? params : {} }
    const named = correlationIdOf(known.params['_meta'])
    // The specification wants the connection's id, even when the request names one.
    const isState = fault.code === JSON_RPC.NOT_INITIALIZED
    const correlationId = isState ? this.#deps.correlationId : (named ?? this.#deps.correlationId)
    this.#refused(known, fault, correlationId)
    this.#inner.send(errorResponse(fault, correlationId)).catch((error: unknown) => this.onerror?.(error as Error))
  }

  /** Handles an answer of the server: errors get a correlation id. */
  #answered(message: JSONRPCResponse): JSONRPCMessage {
    const { id } = message
    const request = id === undefined ? undefined : this.#inFlight.get(id)
    if (id !== undefined) this.#inFlight.delete(id)
    const isRefused = 'error' in message
    // One that claims a version wrongly is taken for a handshake all the same: the answer tells.
    if (request?.method === 'initialize') this.#step(isRefused ? 'initialize-refused' : 'initialize')
    return isRefused ? this.#traced(message, request ?? { method: '', params: {} }) : message
  }

  #traced(message: JSONRPCErrorResponse, request: RequestInFlight): JSONRPCMessage {
    const { data } = message.error
    const correlationId = correlationIdOf(request.params['_meta']) ?? this.#deps.correlationId
    this.#refused(request, message.error, correlationId)
    if (data !== undefined && !isRecord(data)) return message
    return { ...message, error: { ...message.error, data: { ...data, correlationId } } }
  }

  #refused(
    { method, params }: RequestInFlight,
    { code, message }: Pick<JsonRpcFault, 'code' | 'message'>,
    correlationId: string
  ): void {
    this.#deps.log('debug', 'refused a request', { method, code, correlationId })
    this.#deps.onRefused?.({ method, params, code, message, correlationId })
  }
}
