import { type ToolChoiceCode, ToolExecutionError } from '../tools/client-tool.js'
import { asNodeError, isErrorCode, NodeError, type ErrorBody, type ErrorCode } from '../../../kit/errors.js'

/**
 * Codes of errors of tools and of the state of a connection (spec mcp-runtime, ErrorCode). Codes of the node that say
 * more to a model than INTERNAL are passed on.
 */
export type StructuredErrorCode =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'TIMEOUT'
  | 'RESOURCE_EXHAUSTED'
  | 'INTERNAL'
  | 'UNAUTHORIZED'
  | 'NOT_INITIALIZED'
  | 'PEER_OFFLINE'
  | 'TASK_FAILED'
  | 'INVALID_OUTPUT'
  | 'CANCELED'

/** An error as a caller of a tool reads it (spec mcp-runtime, StructuredError). */
export interface StructuredError {
  readonly code: StructuredErrorCode
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly runId?: string
  readonly correlationId?: string
}

/** Codes of JSON-RPC errors (spec mcp-runtime, JSON-RPC Error Code Mapping). */
export const JSON_RPC = {
  PARSE_ERROR: -32_700,
  INVALID_REQUEST: -32_600,
  METHOD_NOT_FOUND: -32_601,
  INVALID_PARAMS: -32_602,
  INTERNAL_ERROR: -32_603,
  /** Of messages without a version claim only; `data.code` says NOT_INITIALIZED. */
  NOT_INITIALIZED: -32_002,
  /** Of MCP 2026-07-28: the message claims a version that is not served. */
  UNSUPPORTED_VERSION: -32_022,
  /** Of MCP 2026-07-28: the client has not declared a capability that the answer needs. */
  MISSING_CAPABILITY: -32_021
} as const

/** Longest error message for a caller, in characters. */
const MAX_MESSAGE = 4096

/** The one table from the node's codes to those of the runtime. */
const OF_NODE_ERROR: Readonly<Record<ErrorCode, StructuredErrorCode>> = {
  NODE_NOT_RUNNING: 'INTERNAL',
  PEER_NOT_FOUND: 'NOT_FOUND',
  AGENT_NOT_FOUND: 'NOT_FOUND',
  CAPABILITY_NOT_FOUND: 'NOT_FOUND',
  CLIENT_NOT_FOUND: 'NOT_FOUND',
  NO_CAPABLE_AGENT: 'NOT_FOUND',
  TASK_NOT_FOUND: 'NOT_FOUND',
  SWARM_NOT_FOUND: 'NOT_FOUND',
  TOKEN_NOT_FOUND: 'NOT_FOUND',
  NOTIFICATION_NOT_FOUND: 'NOT_FOUND',
  TOOL_SERVER_NOT_FOUND: 'NOT_FOUND',
  DOCUMENT_NOT_FOUND: 'NOT_FOUND',
  APPROVAL_NOT_FOUND: 'NOT_FOUND',
  INVITE_NOT_FOUND: 'NOT_FOUND',
  AMBIGUOUS_NAME: 'INVALID_ARGUMENT',
  TIER_VIOLATION: 'UNAUTHORIZED',
  SANDBOX_VIOLATION: 'UNAUTHORIZED',
  ESCALATION_REQUIRED: 'UNAUTHORIZED',
  POLICY_DENIED: 'UNAUTHORIZED',
  APPROVAL_TIMEOUT: 'UNAUTHORIZED',
  INVITE_USED: 'UNAUTHORIZED',
  INVITE_EXPIRED: 'UNAUTHORIZED',
  INVITE_REVOKED: 'UNAUTHORIZED',
  INVITE_INVALID: 'INVALID_ARGUMENT',
  REVOKED: 'UNAUTHORIZED',
  NOT_ADMIN: 'UNAUTHORIZED',
  TIMEOUT: 'TIMEOUT',
  PROPOSAL_TIMEOUT: 'TIMEOUT',
  NO_ADMIN_ONLINE: 'INTERNAL',
  NETWORK_OFFLINE: 'INTERNAL',
  BOOTSTRAP_OFFLINE: 'INTERNAL',
  WEBSOCKET_OFFLINE: 'INTERNAL',
  BOOTSTRAP_MISSING: 'INTERNAL',
  LAN_OFFLINE: 'INTERNAL',
  UDP_BLOCKED: 'INTERNAL',
  NAT_RANDOM: 'INTERNAL',
  PUNCH_FAILED: 'INTERNAL',
  PEER_OFFLINE: 'PEER_OFFLINE',
  DELIVERY_FAILED: 'PEER_OFFLINE',
  CHANNEL_CLOSED: 'PEER_OFFLINE',
  ALREADY_RUNNING: 'INTERNAL',
  ALREADY_IN_MESH: 'INTERNAL',
  STORE_LOCKED: 'INTERNAL',
  PORT_IN_USE: 'INTERNAL',
  NO_PERMISSION: 'UNAUTHORIZED',
  DISK_FULL: 'RESOURCE_EXHAUSTED',
  STORE_DAMAGED: 'INTERNAL',
  CONFIG_INVALID: 'INTERNAL',
  PATH_TOO_LONG: 'INVALID_ARGUMENT',
  CONFLICT: 'INVALID_ARGUMENT',
  FILE_EXISTS: 'INVALID_ARGUMENT',
  AGENT_FILE_INVALID: 'INVALID_ARGUMENT',
  USAGE: 'INVALID_ARGUMENT',
  INVALID_INPUT: 'INVALID_ARGUMENT',
  INVALID_OUTPUT: 'INVALID_OUTPUT',
  INVALID_CARD: 'INVALID_ARGUMENT',
  INVALID_ENVELOPE: 'INVALID_ARGUMENT',
  SCHEMA_VERSION_MISMATCH: 'INTERNAL',
  PAYLOAD_TOO_LARGE: 'RESOURCE_EXHAUSTED',
  CRDT_DESERIALIZATION_FAILED: 'INTERNAL',
  OVERLOADED: 'RESOURCE_EXHAUSTED',
  LLM_INIT_FAILED: 'INTERNAL',
  TASK_FAILED: 'TASK_FAILED',
  CANCELED: 'CANCELED',
  FORBIDDEN: 'UNAUTHORIZED',
  INTERNAL: 'INTERNAL'
}

/** The node's codes for the client tool's own reasons. */
const OF_CLIENT_TOOL: Readonly<Record<ToolChoiceCode, ErrorCode>> = {
  SERVER_NOT_CONFIGURED: 'TOOL_SERVER_NOT_FOUND',
  TOOL_NOT_FOUND: 'CAPABILITY_NOT_FOUND',
  TOOL_NOT_CHOSEN: 'INVALID_INPUT'
}

/** A structured error; the ids of the call are added where it is answered. The message is cut at 4,096 characters. */
export function createError(
  code: StructuredErrorCode,
  message: string,
  details?: Readonly<Record<string, unknown>>
): StructuredError {
  const error = { code, message: message.slice(0, MAX_MESSAGE) }
  return details === undefined ? error : { ...error, details }
}

/**
 * The error of a handler, for its caller. `details` has the node's own code, `retryable` and the next step. Of any
 * other error only the message is passed on, never its stack.
 */
export function structuredErrorOf(thrown: unknown): StructuredError {
  if (thrown instanceof ToolExecutionError) return ofClientTool(thrown)
  const error = asNodeError(thrown)
  if (!(thrown instanceof NodeError)) return createError(OF_NODE_ERROR[error.code], error.message)
  return ofNode(error.toBody())
}

/** The error of a call that is not begun, with the node's own code and further `details`. */
export function refusalOf(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {}
): StructuredError {
  const { retryable, next } = new NodeError(code, message)
  return createError(OF_NODE_ERROR[code], message, { code, retryable, next, ...details })
}

function ofNode({ code, message, retryable, next, data }: ErrorBody): StructuredError {
  return createError(OF_NODE_ERROR[code], message, { code, retryable, next, ...(data === undefined ? {} : { data }) })
}

/** A failed call has the same error as the direct call. */
function ofClientTool({ code, message, data }: ToolExecutionError): StructuredError {
  if (data.error !== undefined) return ofNode(data.error)
  return isErrorCode(code) ? refusalOf(code, message) : refusalOf(OF_CLIENT_TOOL[code], message, { ...data, code })
}
