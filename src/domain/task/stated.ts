import type { ErrorBody } from '../../kit/errors.js'
import { isRecord, writtenJson } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { ReportedFailure } from './outcome.js'

/** States that an agent may give its task by its result. */
const STATED = ['input-required', 'auth-required', 'rejected', 'failed', 'canceled'] as const

/** The states by their letters alone. */
const BY_LETTERS: ReadonlyMap<string, (typeof STATED)[number]> = new Map([
  ...STATED.map((state) => [lettersOf(state), state] as const),
  ['cancelled', 'canceled']
])

/** Most characters of the reason in the error of an end that its agent states. */
export const MAX_STATED_REASON = 4096

/**
 * The state that an agent states, and the member `message` beside it: any JSON, undefined when it is absent, null or a
 * blank text, and the text of an A2A message that has texts alone.
 */
export interface StatedState {
  readonly state: (typeof STATED)[number]
  readonly message: unknown
}

/**
 * The state of `{"a2a": {"state": "rejected", "message": "..."}}`; null: the value states none. States are read in each
 * spelling of A2A and its SDKs: `input-required`, `input_required`, `inputRequired`, `TASK_STATE_INPUT_REQUIRED`,
 * `TaskState.input_required`, `cancelled`.
 */
export function statedState(value: unknown): StatedState | null {
  if (!isRecord(value)) return null
  const about = value['a2a']
  if (!isRecord(about)) return null
  const named = about['state']
  if (typeof named !== 'string') return null
  const state = BY_LETTERS.get(lettersOf(named))
  return state === undefined ? null : { state, message: wordsIn(about['message']) }
}

function lettersOf(named: string): string {
  return named
    .toLowerCase()
    .replaceAll(/[^a-z]/g, '')
    .replace(/^taskstate/, '')
}

/** Many serializers write an absent text as null, or as an empty one. The text of an A2A message is that text. */
function wordsIn(message: unknown): unknown {
  const words = textOf(message) ?? message
  return words === null || (typeof words === 'string' && words.trim() === '') ? undefined : words
}

/** The text of `{"role"?, "parts": [{"text"}, ...]}`; null: it has another part, or is no message. */
function textOf(message: unknown): string | null {
  const parts = isRecord(message) ? message['parts'] : null
  if (!Array.isArray(parts)) return null
  const texts = parts.map((part: unknown) => (isRecord(part) ? part['text'] : null))
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : null
}

/** Does a task end by the state? Otherwise it waits for its client. */
export function isEnd({ state }: StatedState): boolean {
  return state !== 'input-required' && state !== 'auth-required'
}

/** The failure of a run whose result states an end; null for another state. A long reason is cut in the error. */
export function statedFailure(
  stated: StatedState
): (ReportedFailure & { readonly code: 'TASK_FAILED' | 'CANCELED' }) | null {
  if (!isEnd(stated)) return null
  const { state, message } = stated
  const why = message === undefined ? '' : typeof message === 'string' ? message : writtenJson(message)
  const reason = shown(why, MAX_STATED_REASON)
  return {
    code: state === 'canceled' ? 'CANCELED' : 'TASK_FAILED',
    message:
      reason === '' ? `the agent ${state === 'failed' ? 'failed' : `${state} it`}, and does not say why` : reason,
    data: { a2a: { state, ...(why === '' ? {} : { message: why.length > MAX_STATED_REASON ? reason : message }) } }
  }
}

/** The end that an agent stated, by the error of its task; null: it stated none. */
export function statedEnd(error: Pick<ErrorBody, 'code' | 'data'> | null): StatedState | null {
  if (error?.code !== 'TASK_FAILED' && error?.code !== 'CANCELED') return null
  const stated = statedState(error.data)
  return stated !== null && isEnd(stated) ? stated : null
}

/** The final state of a task by the error that it ended with. */
export function endStateOf(error: ErrorBody): 'failed' | 'canceled' | 'rejected' {
  if (error.code === 'CANCELED') return 'canceled'
  return statedEnd(error)?.state === 'rejected' ? 'rejected' : 'failed'
}
