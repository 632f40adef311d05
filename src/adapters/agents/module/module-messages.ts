import { isRecord } from '../../../kit/json.js'
import type { QuestionAnswer } from '../../../domain/task/question.js'
import type { AgentTask } from '../../../ports/agent-runtime.js'

/** Messages from the node to the child of a `module` agent. */
export type ToChild =
  | { readonly type: 'load'; readonly path: string; readonly maxOutputBytes: number }
  | { readonly type: 'run'; readonly run: number; readonly task: AgentTask }
  | { readonly type: 'abort'; readonly run: number }
  | { readonly type: 'answer'; readonly run: number; readonly id: number; readonly answer: QuestionAnswer }

/** How a run inside the child ended. `json` is the result as JSON text. */
export type ChildOutcome =
  | { readonly ok: true; readonly json: string }
  | {
      readonly ok: false
      readonly code: 'TASK_FAILED' | 'INVALID_OUTPUT' | 'PAYLOAD_TOO_LARGE'
      readonly message: string
    }

/** Messages from the child to the node. */
export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'load-failed'; readonly message: string }
  | { readonly type: 'progress'; readonly run: number; readonly data: unknown }
  | { readonly type: 'log'; readonly run: number; readonly message: string }
  | { readonly type: 'ask'; readonly run: number; readonly id: number; readonly params: unknown }
  | { readonly type: 'done'; readonly run: number; readonly outcome: ChildOutcome }

/** Largest progress report, as JSON text. */
export const MAX_PROGRESS_JSON = 65_536
/** Longest log line of an agent. */
export const MAX_LOG_LINE = 1024
/** Longest message of a failure. */
export const MAX_FAILURE_MESSAGE = 4096

/** Checks a message of the channel: an agent's module shares the process, so it could have written anything. */
export function readFromChild(value: unknown): FromChild | null {
  if (!isRecord(value)) return null
  const { type, run, id, message, data, outcome } = value
  if (type === 'ready') return { type }
  if (type === 'load-failed' && typeof message === 'string')
    return { type, message: message.slice(0, MAX_FAILURE_MESSAGE) }
  if (typeof run !== 'number') return null
  if (type === 'log' && typeof message === 'string')
    return { type, run, message: message.slice(0, MAX_FAILURE_MESSAGE) }
  if (type === 'ask' && typeof id === 'number') return { type, run, id, params: value['params'] }
  if (type === 'progress') return { type, run, data }
  const checked = type === 'done' ? readOutcome(outcome) : null
  return checked === null ? null : { type: 'done', run, outcome: checked }
}

function readOutcome(value: unknown): ChildOutcome | null {
  if (!isRecord(value)) return null
  const { ok, json, code, message } = value
  if (ok === true && typeof json === 'string') return { ok, json }
  if (ok !== false || typeof message !== 'string') return null
  if (code !== 'TASK_FAILED' && code !== 'INVALID_OUTPUT' && code !== 'PAYLOAD_TOO_LARGE') return null
  return { ok, code, message: message.slice(0, MAX_FAILURE_MESSAGE) }
}
