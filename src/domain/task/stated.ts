import type { ErrorBody } from '../../kit/errors.js'
import { isRecord, writtenJson } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { ReportedFailure } from './outcome.js'

/** States that an agent may give its task by its result. */
const STATED = ['input-required', 'auth-required', 'rejected', 'failed', 'canceled'] as const

/** Most characters of the reason in the error of an end that its agent states. */
export const MAX_STATED_REASON = 4096

/**
 * The state that an agent states, and the member `message` beside it: any JSON, undefined when it is absent, null or a
 * blank text.
 */
export interface StatedState {
  readonly state: (typeof STATED)[number]
  readonly message: unknown
}

/**
 * The state of `{"a2a": {"state": "rejected", "message": "..."}}`; null: the value states none. States are read in each
 * spelling of A2A: `input-required`, `input_required`, `TASK_STATE_INPUT_REQUIRED`, `cancelled`.
 */
export function statedState(value: unknown): StatedState | null {
  if (!isRecord(value)) return null
  const about = value['a2a']
  if (!isRecord(about)) return null
  const named = about['state']
  if (typeof named !== 'string') return null
  const name = named
    .trim()
    .toLowerCase()
    .replaceAll('_', '-')
    .replace(/^task-state-/, '')
  const state = STATED.find((one) => one === (name === 'cancelled' ? 'canceled' : name))
  return state === undefined ? null : { state, message: wordsIn(about['message']) }
}

/** Many serializers write an absent text as null, or as an empty one. */
function wordsIn(message: unknown): unknown {
  return message === null || (typeof message === 'string' && message.trim() === '') ? undefined : message
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
