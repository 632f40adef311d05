import { isRecord } from '../../../kit/json.js'
import { RESULT } from '../../../domain/gateway/content.js'
import type { Part } from '../../../domain/gateway/message.js'
import { ASKING_STATES, type GatewayEvent, type GatewaySnapshot, type GatewayState, RESTING_STATES } from '../../../domain/gateway/task.js'

/** What a stream tells on the way: a text of the agent, another report of it, or what holds it up. */
export type FacadeState =
  | { readonly token: string }
  | { readonly data: unknown }
  | { readonly waitingFor: string; readonly message: string }

/** What came of a task: a text where it is one, else JSON. A question of the agent is what it asks. */
export function contentOf({ task, artifacts }: GatewaySnapshot): unknown {
  if (task.state !== 'completed') return plainContent(task.message?.parts ?? [])
  const result = artifacts.find(({ artifactId }) => artifactId === RESULT)
  return plainContent(result?.parts ?? artifacts.flatMap(({ parts }) => parts))
}

/** What an event of a task is to a reader of its stream; null for nothing. */
export function stateOf(event: GatewayEvent): FacadeState | null {
  if (event.type === 'message' || isResult(event)) return null
  const parts = event.type === 'artifact' ? event.artifact.parts : (event.message?.parts ?? [])
  const [first] = parts
  // How a task ended, and what it asks, is its result.
  if (first === undefined || (event.type === 'status' && RESTING_STATES.has(event.state))) return null
  const waitingFor = event.type === 'status' ? first.metadata?.['waitingFor'] : undefined
  if (typeof waitingFor === 'string') return { waitingFor, message: first.text ?? '' }
  const content = plainContent(parts)
  // The last piece of a text may say only that it is the last.
  if (content === '') return null
  return typeof content === 'string' ? { token: content } : { data: content }
}

/** Has a task ended as it should, or asked back? */
export function isAnswered(state: GatewayState): boolean {
  return state === 'completed' || ASKING_STATES.has(state)
}

/** The artifact that the node makes of what an agent gave back; those that an agent reports by that name come in pieces. */
function isResult(event: GatewayEvent): boolean {
  return event.type === 'artifact' && event.artifact.artifactId === RESULT && event.lastChunk && !event.append
}

function plainContent(parts: readonly Part[]): unknown {
  const texts = parts.flatMap(({ text }) => (text === undefined ? [] : [text]))
  if (parts.length === 0) return null
  if (texts.length === parts.length) return texts.join('')
  const [only] = parts
  return parts.length === 1 && only !== undefined && isRecord(only) && 'data' in only ? only.data : parts
}
