import { isRecord } from '../../../kit/json.js'
import { isJustification } from '../../../domain/envelope/header.js'
import { ENVELOPE_LIMITS } from '../../../domain/envelope/limits.js'
import { inputOf } from '../../../domain/gateway/content.js'
import { MAX_CLIENT_ID, type Part } from '../../../domain/gateway/message.js'
import { invalidRequest } from './facade-fault.js'
import { parsedBody } from '../server/json-rpc.js'

/** A request to run an agent. */
export interface FacadeRequest {
  readonly prompt: string
  /** Names a conversation: the A2A context of its tasks. */
  readonly sessionId: string | null
  readonly context: Readonly<Record<string, unknown>> | null
  /** Justification for a more powerful agent. */
  readonly justification: string | null
}

const KEYS: ReadonlySet<string> = new Set(['prompt', 'sessionId', 'context', 'justification', 'toolsPolicy'])

/** Reads a body. @throws FacadeFault; A2AFault when it is no JSON within the limits */
export function readFacadeBody(body: Uint8Array): FacadeRequest {
  const value = parsedBody(body)
  if (!isRecord(value)) throw invalidRequest('the body must be an object: {"prompt": "..."}')
  const unknown = Object.keys(value).find((key) => !KEYS.has(key))
  if (unknown !== undefined)
    throw invalidRequest(
      `${JSON.stringify(unknown.slice(0, 100))}: there is no such member; there are ${[...KEYS].join(', ')}`
    )
  return requestOf(value)
}

/** Reads the query of a stream request by GET. @throws FacadeFault */
export function readFacadeQuery(query: string): FacadeRequest {
  const params = new URLSearchParams(query)
  for (const name of params.keys())
    if (name !== 'prompt' && name !== 'sessionId')
      throw invalidRequest('a query has prompt and sessionId; send anything else by POST')
  if (params.getAll('prompt').length > 1 || params.getAll('sessionId').length > 1)
    throw invalidRequest('prompt and sessionId stand in a query once')
  return requestOf({ prompt: params.get('prompt'), sessionId: params.get('sessionId') })
}

/** The input of the agent: the prompt as `send` passes it, with the context as another member. */
export function partsOfRequest({ prompt, context }: FacadeRequest): readonly Part[] {
  const parts: readonly Part[] = [{ text: prompt }]
  const input = inputOf(parts)
  return context === null || !isRecord(input) ? parts : [{ data: { ...input, context } }]
}

function requestOf(given: Record<string, unknown>): FacadeRequest {
  const { prompt, sessionId = null, context = null, justification = null, toolsPolicy = null } = given
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw invalidRequest('prompt: must be a text that is not empty')
  if (sessionId !== null && (typeof sessionId !== 'string' || sessionId === '' || sessionId.length > MAX_CLIENT_ID))
    throw invalidRequest(`sessionId: must be a text of 1 to ${MAX_CLIENT_ID} characters`)
  if (context !== null && !isRecord(context)) throw invalidRequest('context: must be an object')
  if (justification !== null && !isJustification(justification))
    throw invalidRequest(`justification: must be a text of at most ${ENVELOPE_LIMITS.maxJustificationBytes} bytes`)
  // Refused, since the node cannot enforce it.
  if (toolsPolicy !== null)
    throw invalidRequest(
      'toolsPolicy: no agent of this node can be held to one; leave it out, and bind the agent by its tier and the policy'
    )
  return { prompt, sessionId, context, justification }
}
