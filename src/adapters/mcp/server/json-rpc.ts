import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/server'
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server'
import { LOG_LEVELS } from '../../../domain/task/question.js'
import { isRecord, jsonFault, SIZED_LIMITS } from '../../../kit/json.js'
import { JSON_RPC } from './structured-error.js'

/** Longest id of a request, in characters. */
const MAX_ID = 256
/** Longest correlation id that a client may name, in characters. */
const MAX_CORRELATION_ID = 128

/** The versions that are served without a handshake. The SDK serves these, but exports no list of them. */
const UNSHAKEN_VERSIONS: readonly unknown[] = ['2026-07-28']
/** Methods that these versions no longer have. Without this list their params would be checked. */
const REMOVED: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe'
])

/** Why a message is refused as such. */
export interface JsonRpcFault {
  readonly code: number
  readonly message: string
  /** null when the message has none that can be answered. */
  readonly id: RequestId | null
  readonly data?: Readonly<Record<string, unknown>>
}

/** A message whose shape is right. */
export type ReadMessage =
  | {
      readonly kind: 'request'
      readonly id: RequestId
      readonly method: string
      readonly params: Readonly<Record<string, unknown>>
    }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Readonly<Record<string, unknown>> }
  | { readonly kind: 'response' }
  | { readonly kind: 'fault'; readonly fault: JsonRpcFault }
  /** Wrong, but of a kind that is never answered. */
  | { readonly kind: 'dropped'; readonly reason: string }

/**
 * Looks at the shape of a message as JSON-RPC 2.0 and MCP have it (no batches, ids are texts or whole numbers). Total.
 */
export function readMessage(message: unknown): ReadMessage {
  if (Array.isArray(message)) return invalid(null, 'batches are not served: send one message at a time')
  if (!isRecord(message)) return invalid(null, 'a message is a JSON object')
  if ('method' in message) return readCall(message)
  if ('result' in message || 'error' in message) return readResponse(message)
  return invalid(isRequestId(message['id']) ? message['id'] : null, 'it has neither a method nor a result')
}

function readCall(message: Readonly<Record<string, unknown>>): ReadMessage {
  const { id, method, params = {} } = message
  if ('id' in message && !isRequestId(id))
    return invalid(null, 'id must be a text of at most 256 characters or a whole number')
  const answerTo = 'id' in message ? (id as RequestId) : null
  if (message['jsonrpc'] !== '2.0') return invalid(answerTo, "jsonrpc must be '2.0'")
  if (typeof method !== 'string' || method.length === 0) return invalid(answerTo, 'method must be a text')
  const fault = jsonFault(message, SIZED_LIMITS)
  if (fault !== null) return invalid(answerTo, fault)
  if (answerTo === null) {
    return isRecord(params)
      ? { kind: 'notification', method, params }
      : { kind: 'dropped', reason: 'params of a notification are no object' }
  }
  if (isRecord(params)) return { kind: 'request', id: answerTo, method, params }
  return faulty({
    code: JSON_RPC.INVALID_PARAMS,
    message: 'Invalid params',
    id: answerTo,
    data: { reason: 'params must be an object' }
  })
}

// A wrong response gets no answer: answers could go back and forth for ever.
function readResponse(message: Readonly<Record<string, unknown>>): ReadMessage {
  const isWhole =
    message['jsonrpc'] === '2.0' && 'result' in message !== 'error' in message && isRequestId(message['id'])
  return isWhole && jsonFault(message, SIZED_LIMITS) === null
    ? { kind: 'response' }
    : { kind: 'dropped', reason: 'not a response to any request' }
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' ? id.length <= MAX_ID : Number.isSafeInteger(id)
}

function invalid(id: RequestId | null, reason: string): ReadMessage {
  return faulty({ code: JSON_RPC.INVALID_REQUEST, message: 'Invalid Request', id, data: { reason } })
}

function faulty(fault: JsonRpcFault): ReadMessage {
  return { kind: 'fault', fault }
}

/**
 * The protocol version that a message claims itself (MCP 2026-07-28: it needs no handshake), as written; undefined for
 * none.
 */
export function versionClaim(params: Readonly<Record<string, unknown>>): unknown {
  const meta = params['_meta']
  return isRecord(meta) && Object.hasOwn(meta, PROTOCOL_VERSION_META_KEY) ? meta[PROTOCOL_VERSION_META_KEY] : undefined
}

/**
 * The fault of a claim, or of a method that its version does not have; null when there is none, or when the SDK reports
 * it better. A claim of another version at a handshake counts as that handshake.
 */
export function claimFault(method: string, claim: unknown): Omit<JsonRpcFault, 'id'> | null {
  if (UNSHAKEN_VERSIONS.includes(claim))
    return REMOVED.has(method) ? { code: JSON_RPC.METHOD_NOT_FOUND, message: 'Method not found' } : null
  if (typeof claim !== 'string' || method === 'initialize') return null
  return unsupportedVersion(claim, UNSHAKEN_VERSIONS)
}

/** The fault of a message that claims a version which is not served. */
export function unsupportedVersion(claim: unknown, supported: readonly unknown[]): Omit<JsonRpcFault, 'id'> {
  const requested = typeof claim === 'string' ? claim.slice(0, 64) : 'unknown'
  return { code: JSON_RPC.UNSUPPORTED_VERSION, message: 'Unsupported protocol version', data: { supported, requested } }
}

/** The fault of a request with an id in use. Under that id the client would take it for the first request's answer. */
export function inFlightFault(id: RequestId): JsonRpcFault {
  const data = { reason: 'a request with this id is in flight', requestId: id }
  return { code: JSON_RPC.INVALID_REQUEST, message: 'Invalid Request', id: null, data }
}

/** The correlation id that a request names in `_meta`, or null; one that is not 1 to 128 characters counts as none. */
export function correlationIdOf(meta: unknown): string | null {
  const id = isRecord(meta) ? meta['correlationId'] : undefined
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_CORRELATION_ID ? id : null
}

type Shape = 'text' | 'object' | 'texts' | 'info' | 'level' | 'ref' | 'argument' | 'given'

/** Fields that a client adds after it was asked something. */
const ROUND = { inputResponses: 'object?', requestState: 'text?' } as const

/** Parameters of each method; a `?` may be absent. The SDK would report a wrong one as its own fault. */
const PARAMS: Readonly<Record<string, Readonly<Record<string, Shape | `${Shape}?`>>>> = {
  initialize: { protocolVersion: 'text', capabilities: 'object', clientInfo: 'info' },
  'tools/list': { cursor: 'text?' },
  'tools/call': { name: 'text', arguments: 'object?', ...ROUND },
  'resources/list': { cursor: 'text?' },
  'resources/templates/list': { cursor: 'text?' },
  'resources/read': { uri: 'text' },
  'resources/subscribe': { uri: 'text' },
  'resources/unsubscribe': { uri: 'text' },
  'prompts/list': { cursor: 'text?' },
  'prompts/get': { name: 'text', arguments: 'texts?', ...ROUND },
  'logging/setLevel': { level: 'level' },
  'completion/complete': { ref: 'ref', argument: 'argument', context: 'given?' }
}

const WORDS: Readonly<Record<Shape, string>> = {
  text: 'must be a text',
  object: 'must be an object',
  texts: 'must be an object of texts',
  info: 'must be an object with the texts name and version',
  level: `must be one of ${LOG_LEVELS.join(', ')}`,
  ref: "must be an object with the type 'ref/prompt' and a text name, or 'ref/resource' and a text uri",
  argument: 'must be an object with the texts name and value',
  given: 'must be an object, its arguments an object of texts'
}

/** A member of the params of a method, as it is looked at. */
type Member = readonly [key: string, shape: Shape, isOptional: boolean]

const META: Member = ['_meta', 'object', true]
/** The table, laid out once: it is looked at for every request. */
const MEMBERS: ReadonlyMap<string, readonly Member[]> = new Map(
  Object.entries(PARAMS).map(([method, shapes]) => [method, [...Object.entries(shapes).map(memberOf), META]])
)

function memberOf([key, shape]: readonly [string, Shape | `${Shape}?`]): Member {
  return [key, shape.replace('?', '') as Shape, shape.endsWith('?')]
}

/** The fault of the params of a request (spec mcp-runtime, Processing Order, step 2), or null. */
export function paramsFault(method: string, params: Readonly<Record<string, unknown>>): string | null {
  for (const [key, shape, isOptional] of MEMBERS.get(method) ?? [META]) {
    const value = params[key]
    if (value === undefined && isOptional) continue
    if (!fits(value, shape)) return `${key} ${WORDS[shape]}`
  }
  return null
}

function fits(value: unknown, shape: Shape): boolean {
  if (shape === 'text') return typeof value === 'string'
  if (shape === 'level') return LOG_LEVELS.includes(value as (typeof LOG_LEVELS)[number])
  return isRecord(value) && OBJECTS[shape](value)
}

function hasTexts(value: Readonly<Record<string, unknown>>, keys: readonly string[] = Object.keys(value)): boolean {
  return keys.every((key) => typeof value[key] === 'string')
}

const OBJECTS: Readonly<
  Record<Exclude<Shape, 'text' | 'level'>, (value: Readonly<Record<string, unknown>>) => boolean>
> = {
  object: () => true,
  texts: (value) => hasTexts(value),
  info: (value) => hasTexts(value, ['name', 'version']),
  ref: (value) => hasTexts(value, [value['type'] === 'ref/prompt' ? 'name' : 'uri']) && REFS.includes(value['type']),
  argument: (value) => hasTexts(value, ['name', 'value']),
  given: ({ arguments: given }) => given === undefined || (isRecord(given) && hasTexts(given))
}

const REFS: readonly unknown[] = ['ref/prompt', 'ref/resource']

/** An error response. Its `id` may be null, which the types of the SDK do not know. */
export function errorResponse({ code, message, id, data }: JsonRpcFault, correlationId: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id: id as RequestId, error: { code, message, data: { ...data, correlationId } } }
}
