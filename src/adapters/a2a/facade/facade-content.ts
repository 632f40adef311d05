import { isRecord } from '../../../kit/json.js'
import { RESULT } from '../../../domain/gateway/content.js'
import type { Part } from '../../../domain/gateway/message.js'
import {
  ASKING_STATES,
  type GatewayEvent,
  type GatewaySnapshot,
  type GatewayState,
  RESTING_STATES
} from '../../../domain/gateway/task.js'

/** An intermediate item of a stream: a text of the agent, other progress of it, or the reason for a wait. */
export type FacadeState =
  | { readonly token: string }
  | { readonly data: unknown }
  | { readonly waitingFor: string; readonly message: string }

/** The result of a task: a text if it is one, else JSON; of a waiting task its question. */
export function contentOf({ task, artifacts }: GatewaySnapshot): unknown {
  if (task.state !== 'completed') return plainContent(task.message?.parts ?? [])
  const result = artifacts.find(({ artifactId }) => artifactId === RESULT)
  return plainContent(result?.parts ?? artifacts.flatMap(({ parts }) => parts))
}

/** Translates an event of a task to an item of the stream; null for none. */
export function stateOf(event: GatewayEvent): FacadeState | null {
  if (event.type === 'message' || isResult(event)) return null
  const parts = event.type === 'artifact' ? event.artifact.parts : (event.message?.parts ?? [])
  const [first] = parts
  // Outcomes and questions are sent as the result.
  if (first === undefined || (event.type === 'status' && RESTING_STATES.has(event.state))) return null
  const waitingFor = event.type === 'status' ? first.metadata?.['waitingFor'] : undefined
  if (typeof waitingFor === 'string') return { waitingFor, message: first.text ?? '' }
  const content = plainContent(parts)
  // The last chunk of a text may be empty.
  if (content === '') return null
  return typeof content === 'string' ? { token: content } : { data: content }
}

/** Has a task completed, or does it ask its client? */
export function isAnswered(state: GatewayState): boolean {
  return state === 'completed' || ASKING_STATES.has(state)
}

/** Is it the result artifact made by the node? An agent's own artifacts of that name come in chunks. */
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
