import type { LongLine } from '../lines.js'
import type { MessageId } from './rpc-message.js'

/** Bytes of the start and of the end of a message that is too long, kept to find its id in. */
export const EDGE_BYTES = 512

const ID = String.raw`"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})|"[ !#-[\]-~]{0,256}")`
const OTHER = String.raw`(?:"jsonrpc"\s*:\s*"2\.0"|"method"\s*:\s*"[ !#-[\]-~]{0,128}")`
const FIRST_MEMBER = new RegExp(String.raw`^\s*\{\s*(?:${OTHER}\s*,\s*){0,2}${ID}\s*,`)
const LAST_MEMBER = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${OTHER}\s*){0,2}\}\s*$`)

/**
 * The id of a request or an answer of JSON-RPC of which only the edges are known; null where they do not show it. The
 * members beside the first and the last brace are those of the outermost object.
 */
export function idOfEdges({ head, tail }: Pick<LongLine, 'head' | 'tail'>): MessageId | null {
  const found = FIRST_MEMBER.exec(textOf(head))?.[1] ?? LAST_MEMBER.exec(textOf(tail))?.[1]
  return found === undefined ? null : (JSON.parse(found) as MessageId)
}

/** One character a byte: an edge may cut one of UTF-8. */
function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
