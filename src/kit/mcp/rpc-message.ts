import { isRecord } from '../json.js'

/** A message of JSON-RPC as it came; only its being an object is known. */
export type RpcMessage = Readonly<Record<string, unknown>>

/** The id of a request. */
export type MessageId = string | number

const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion'
/** Member of `_meta` of a notification for one `subscriptions/listen`. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'

/** May it be the id of a request? */
export function isMessageId(id: unknown): id is MessageId {
  return typeof id === 'string' || typeof id === 'number'
}

/** The parameters of a message; an empty object for any other value. */
export function paramsOf({ params }: RpcMessage): RpcMessage {
  return isRecord(params) ? params : {}
}

/** The members of `_meta` of a message. */
export function metaOf(message: RpcMessage): RpcMessage {
  const { _meta: meta } = paramsOf(message)
  return isRecord(meta) ? meta : {}
}

/** Does it claim its version of the protocol itself (MCP 2026-07-28), so that it needs no handshake? */
export function isClaimed(message: RpcMessage): boolean {
  return Object.hasOwn(metaOf(message), PROTOCOL_VERSION)
}
