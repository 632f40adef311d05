import { fromUtf8 } from '../../../kit/ids.js'
import { isRecord, jsonFault, SIZED_LIMITS } from '../../../kit/json.js'
import { A2A_NULLS, withoutNulls } from '../../../kit/schema/nulls.js'
import { A2AFault, faultOf } from './fault.js'
import { type OperationInput, METHODS, type Operation } from './operations.js'
import type { ProtocolVersion } from './service-params.js'

/** The id of a request; null when it has none. */
export type RpcId = string | number | null

/** The answer to one request. */
export interface RpcAnswer {
  readonly id: RpcId
  readonly given: OperationInput | { readonly fault: A2AFault }
}

/** Reads one JSON-RPC request and runs `perform` with its method and params. Never throws or rejects. */
export function callRpc(
  body: Uint8Array,
  perform: (method: string, params: unknown) => Promise<OperationInput>
): Promise<RpcAnswer> {
  let id: RpcId = null
  const failed = (error: unknown): RpcAnswer => ({ id, given: { fault: faultOf(error) } })
  try {
    const request = jsonIn(body)
    // Before the limits, since clients drop answers without the id of their request.
    const isNameless = isRecord(request) && (request['id'] ?? null) === null
    if (isRecord(request) && !isNameless) id = idOf(request)
    checkLimits(request)
    if (Array.isArray(request)) throw new A2AFault('INVALID_REQUEST', 'the protocol has no batches: send one request')
    if (!isRecord(request)) throw new A2AFault('INVALID_REQUEST', 'a request is an object')
    const { jsonrpc, method, params } = request
    if (jsonrpc !== '2.0') throw new A2AFault('INVALID_REQUEST', 'jsonrpc: must be "2.0"')
    if (typeof method !== 'string') throw new A2AFault('INVALID_REQUEST', 'method: must be a text')
    // A request without an id is judged by its method first, as the official servers do.
    if (isNameless) {
      rpcOperation(method, null)
      idOf(request)
    }
    return perform(method, withoutNulls(params ?? {}, A2A_NULLS)).then((given) => ({ id, given }), failed)
  } catch (error) {
    return Promise.resolve(failed(error))
  }
}

/**
 * The operation of a method, whose name determines the version. `asked`: the requested version.
 * @throws A2AFault METHOD_NOT_FOUND
 */
export function rpcOperation(method: string, asked: ProtocolVersion | null): Operation {
  const operation = METHODS.get(method)
  if (operation === undefined)
    throw new A2AFault('METHOD_NOT_FOUND', `there is no method ${JSON.stringify(method.slice(0, 100))}`)
  const version = rpcVersion(method)
  if (asked !== null && asked !== version)
    throw new A2AFault('METHOD_NOT_FOUND', `${method} is a method of A2A ${version}, and the request is of ${asked}`)
  return operation
}

/** Methods of 0.3 whose answers are streams; the official servers of 0.3 send their errors as events, too. */
const OLD_STREAMS: ReadonlySet<string> = new Set(['message/stream', 'tasks/resubscribe', 'tasks/subscribe'])

/** Is the answer to a method a stream of events in any case, also when it is an error? */
export function isOldStream(method: string): boolean {
  return OLD_STREAMS.has(method)
}

/** The version of a method, also of one that does not exist. */
export function rpcVersion(method: string): ProtocolVersion {
  return /^[A-Z]/.test(method) ? '1.0' : '0.3'
}

/** Parses a body as JSON within the limits. @throws A2AFault PARSE_ERROR, INVALID_REQUEST */
export function parsedBody(body: Uint8Array): unknown {
  const value = jsonIn(body)
  checkLimits(value)
  return withoutNulls(value, A2A_NULLS)
}

function jsonIn(body: Uint8Array): unknown {
  try {
    return JSON.parse(fromUtf8(body))
  } catch {
    throw new A2AFault('PARSE_ERROR', 'the body is not JSON')
  }
}

function checkLimits(value: unknown): void {
  const fault = jsonFault(value, SIZED_LIMITS)
  if (fault !== null) throw new A2AFault('INVALID_REQUEST', `the body is not taken: ${fault}`)
}

/** The answer as JSON, with errors in the form of a version. */
export function rpcJson(
  id: RpcId,
  given: { readonly value: unknown } | { readonly fault: A2AFault },
  version: ProtocolVersion = '1.0'
): object {
  if ('value' in given) return { jsonrpc: '2.0', id, result: given.value }
  return { jsonrpc: '2.0', id, error: version === '0.3' ? given.fault.toOldRpc() : given.fault.toRpc() }
}

/** The id of the request in a body, for answers without further parsing; null when it has none. */
export function rpcIdIn(body: Uint8Array): RpcId {
  try {
    const request = jsonIn(body)
    return isRecord(request) ? idOf(request) : null
  } catch {
    return null
  }
}

function idOf({ id }: Record<string, unknown>): RpcId {
  if (typeof id === 'string' && id.length <= 256) return id
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id
  throw new A2AFault('INVALID_REQUEST', 'id: must be a text of at most 256 characters or a whole number')
}
