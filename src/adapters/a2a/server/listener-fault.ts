import type { LongLine } from '../../../kit/lines.js'
import { idOfEdges } from '../../../kit/mcp/message-edges.js'
import { errorInfo, rateLimited, type RestFault } from './fault.js'
import { rpcIdIn } from './json-rpc.js'
import { pathVersion } from './rest.js'

/** Names of HTTP statuses in error bodies (google.rpc.Code). */
const NAMES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE'
}
/** The same for the facade. */
const FACADE_NAMES: Readonly<Record<number, string>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'timeout',
  413: 'payload_too_large',
  429: 'rate_limited',
  500: 'internal_error',
  503: 'unavailable'
}
/** The same for OAuth, for errors other than `invalid_request` (RFC 6749, 4.1.2.1). */
const OAUTH_NAMES: Readonly<Record<number, string>> = {
  403: 'access_denied',
  429: 'temporarily_unavailable',
  500: 'server_error',
  503: 'temporarily_unavailable'
}
/** Error codes of JSON-RPC by HTTP status; it has none for missing rights. */
const INVALID_REQUEST = -32_600
const INTERNAL = -32_603

/** An error of the listener. */
export interface ListenerError {
  readonly status: number
  readonly code: string
  readonly message: string
  /** Headers of the answer: those of a 401 say whether a token came, those of a 429 when to try again. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request that the listener refused. */
export interface ListenerRequest {
  readonly method: string
  readonly path: string
  /** Absent or null when it was not read; its id names the answer of JSON-RPC. */
  readonly body?: Uint8Array | null
  /** Of a body that was too large to be read. */
  readonly edges?: LongLine | null
}

/** An error of the listener below the URL of an agent or of the node, in the form of the binding there. */
export function listenerFault(
  error: ListenerError,
  { method, path, body = null, edges = null }: ListenerRequest
): object {
  if (method === 'POST' && path === '')
    return { jsonrpc: '2.0', id: body === null ? edges && idOfEdges(edges) : rpcIdIn(body), error: rpcError(error) }
  return pathVersion(path, null) === '0.3' ? oldRestError(error) : restError(error)
}

function rpcError(error: ListenerError): object {
  const { status, message } = error
  if (status === 429) return limitOf(error).toRpc()
  return { code: [400, 405, 408, 413].includes(status) ? INVALID_REQUEST : INTERNAL, message, data: [infoOf(error)] }
}

/** Errors of REST in 0.3 are the bare error objects of its JSON-RPC, whose data is one object. */
function oldRestError(error: ListenerError): object {
  return error.status === 429 ? limitOf(error).toOldRpc() : { ...rpcError(error), data: infoOf(error) }
}

/** The same fault as that of a token with too many calls. */
function limitOf({ message, headers = {} }: ListenerError): ReturnType<typeof rateLimited> {
  return rateLimited(message, headers['retry-after'] ?? '1')
}

/** The same in the form of REST (A2A 1.0, section 11.6). */
export function restError(error: ListenerError): RestFault {
  const { status, message } = error
  if (status === 429) return limitOf(error).toRest()
  return { error: { code: status, status: NAMES[status] ?? 'INVALID_ARGUMENT', message, details: [infoOf(error)] } }
}

/** The details of an error, with its name in the gateway's specification. */
function infoOf({ status, code, headers = {} }: ListenerError): object {
  if (status !== 401) return errorInfo(code)
  const isWrong = headers['www-authenticate']?.includes('error="invalid_token"') === true
  return errorInfo(code, { name: isWrong ? 'INVALID_CREDENTIALS' : 'AUTHENTICATION_REQUIRED' })
}

/** The same at a path of the facade. */
export function facadeListenerFault({ status, code, message }: ListenerError): object {
  return { error: FACADE_NAMES[status] ?? 'invalid_request', message, code }
}

/** The same at a path of the OAuth server (RFC 6749, 5.2). */
export function oauthListenerFault({ status, message }: ListenerError): object {
  return { error: OAUTH_NAMES[status] ?? 'invalid_request', error_description: message }
}
