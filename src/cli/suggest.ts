import { type ErrorCode, NodeError } from '../kit/errors.js'
import { isRecord } from '../kit/json.js'
import { nearest } from '../kit/text.js'
import type { NodeApi } from '../ports/node-api.js'
import type { CommandContext } from './context.js'

/** Lists the names that an error of this code may have meant. */
const KNOWN_NAMES: { readonly [C in ErrorCode]?: (api: NodeApi) => Promise<string[]> } = {
  PEER_NOT_FOUND: async (api) => (await api.call('peers.list', { all: true })).peers.map((one) => one.name),
  AGENT_NOT_FOUND: async (api) => (await api.call('agents.list', {})).agents.flatMap((one) => [one.id, one.address]),
  CAPABILITY_NOT_FOUND: capabilities,
  DOCUMENT_NOT_FOUND: async (api) => (await api.call('documents.list', {})).documents.map((one) => one.name),
  NO_CAPABLE_AGENT: capabilities
}

async function capabilities(api: NodeApi): Promise<string[]> {
  return (await api.call('agents.list', {})).agents.flatMap((one) => one.capabilities)
}

/**
 * The same error, with `did you mean ...?` when a typed word or the capability in question is close to an existing
 * name.
 */
export async function withSuggestion(
  error: NodeError,
  context: CommandContext,
  words: readonly string[]
): Promise<NodeError> {
  const list = KNOWN_NAMES[error.code]
  if (list === undefined || error.message.includes('did you mean')) return error
  const names = new Set(await list(context.api()).catch(() => []))
  // Other arguments, such as the text of a message, are no names.
  const { capability } = isRecord(error.data) ? error.data : {}
  const meant = [...words, ...(typeof capability === 'string' ? [capability] : [])].filter(
    (word) => word !== '' && !names.has(word) && error.message.includes(word)
  )
  const near = [...new Set(meant.flatMap((word) => nearest(word, names)))]
  if (near.length === 0) return error
  const message = `${error.message} (did you mean ${near.slice(0, 3).join(' or ')}?)`
  const data = { ...(typeof error.data === 'object' ? error.data : {}), nearest: near }
  return new NodeError(error.code, message, { data, next: error.next, cause: error })
}
