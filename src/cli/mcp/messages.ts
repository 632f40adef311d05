import { isRecord } from '../../kit/json.js'
import { type MessageId, metaOf, type RpcMessage } from '../../kit/mcp/rpc-message.js'

/** The error of a request that no node answers: a code of JSON-RPC, and the code and next steps of this program. */
export interface Unanswered {
  readonly message: string
  readonly next: readonly string[]
}

const INTERNAL_ERROR = -32_603

/** The message in a line; null when it is no JSON object. */
export function messageIn(line: Uint8Array): RpcMessage | null {
  try {
    const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line)) as unknown
    return isRecord(value) ? value : null
  } catch {
    return null
  }
}

/** The answer to a request. */
export function resultOf(id: MessageId, result: RpcMessage): RpcMessage {
  return { jsonrpc: '2.0', id, result }
}

/**
 * The answer to a request that no node answers: a failed result for a call of a tool, whose model reads it, and an
 * error for all else. Both say that a repeat may succeed.
 */
export function unansweredOf(request: RpcMessage, id: MessageId, { message, next }: Unanswered): RpcMessage {
  const { correlationId } = metaOf(request)
  const traced = typeof correlationId === 'string' ? { correlationId } : {}
  const details = { code: 'NODE_NOT_RUNNING', retryable: true, next }
  if (request['method'] !== 'tools/call')
    return { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message, data: { ...details, ...traced } } }
  const text = JSON.stringify({ code: 'INTERNAL', message, details, ...traced })
  return resultOf(id, { content: [{ type: 'text', text }], isError: true, resultType: 'complete' })
}

/** A line that is no message, as its sender is answered. */
export function malformed(reason: string): RpcMessage {
  return { jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'Parse error', data: { reason } } }
}

/** The answer to a request before the handshake. */
export function notInitialized(id: MessageId): RpcMessage {
  const data = { code: 'NOT_INITIALIZED', message: 'send initialize and notifications/initialized first' }
  return { jsonrpc: '2.0', id, error: { code: -32_002, message: 'Not initialized', data } }
}
