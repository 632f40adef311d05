import { ERROR_CODES } from '../../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { MAX_TTL_MS } from '../task/payloads.js'

/** A node that answers so has no record of the request: it did not do it, or ended it by stopping. */
const FORGOTTEN: ReadonlySet<ErrorCode> = new Set(['OVERLOADED', 'PEER_OFFLINE'])
/** One agent is not there: that says nothing of another. */
const NOT_THERE: ReadonlySet<ErrorCode> = new Set(['CHANNEL_CLOSED', 'AGENT_NOT_FOUND', 'CAPABILITY_NOT_FOUND'])
/** The rules of a node, or a person, did not let the message through. */
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'TIER_VIOLATION',
  'SANDBOX_VIOLATION',
  'ESCALATION_REQUIRED',
  'POLICY_DENIED',
  'APPROVAL_TIMEOUT'
])
/** An agent that fails so has done nothing: see `FailureCode` of the port of agent runtimes. */
const UNABLE: ReadonlySet<ErrorCode> = new Set(['LLM_INIT_FAILED', 'FORBIDDEN'])
/** Every agent would answer alike: the work itself is at fault. */
const AT_FAULT: ReadonlySet<ErrorCode> = new Set(['INVALID_INPUT', 'PAYLOAD_TOO_LARGE'])

/** A try without a result, and the state of its work. */
export interface FailedTry {
  readonly error: ErrorBody
  /** It is unknown whether the work was done; else it failed. */
  readonly isUnknown: boolean
  /** It certainly never left the requesting node. Default false: the error alone decides. */
  readonly isUnsent?: boolean
  /** May it be done twice: is its capability idempotent, or did its caller say `allowRepeat`? */
  readonly isRepeatable: boolean
  /** Can another agent be asked? Default false. */
  readonly isForAnyone?: boolean
  /** Counted tries that failed before this one. */
  readonly failures: number
  /** How often it may be tried again after counted tries. */
  readonly retries: number
  /** Milliseconds until its time is over. */
  readonly leftMs: number
}

/**
 * The step after a try without a result. `repeat`: try again, after `afterMs` milliseconds at the earliest.
 * `isCounted`: it counts as a retry; else only a slot was missing.
 */
export type RepeatDecision =
  | { readonly type: 'repeat'; readonly afterMs: number; readonly isCounted: boolean }
  | { readonly type: 'end'; readonly status: 'failed' | 'unknown' }

/**
 * Is work tried again after a try without a result? The one rule of requests and swarms:
 *
 * - Work that may not be repeated is tried again only after a failure before it began. Else it ends `failed`, or
 *   `unknown` if it may have been done.
 * - A failure that is final by `retryable: false` or by its code is never tried again.
 * - `retryAfter` (seconds, in the data of the error) delays the next try; work whose time ends before then ends.
 * - A missing slot costs no retry, and another agent may be asked at once. Every other failure costs one and delays
 *   all.
 */
export function decideRepeat(one: FailedTry): RepeatDecision {
  const { error, isUnknown, isRepeatable, failures, retries, leftMs } = one
  const end = { type: 'end', status: endOf(one) } as const
  if (!mayRunAgain({ isRepeatable, isUndone: isNothingDone(one) }) || (!isUnknown && isFinal(error))) return end
  const isCounted = isUnknown || one.isUnsent === true || !isPlaceless(one)
  if (isCounted && failures >= retries) return end
  // An agent without room delays its own work only: another agent can be asked at once.
  const afterMs = !isCounted && one.isForAnyone === true ? 0 : retryAfterMs(error)
  return afterMs > 0 && afterMs >= leftMs ? end : { type: 'repeat', afterMs, isCounted }
}

/** May work be run once more? `isUndone`: certainly nothing of it was done. */
export function mayRunAgain({
  isRepeatable,
  isUndone
}: {
  readonly isRepeatable: boolean
  readonly isUndone: boolean
}): boolean {
  return isRepeatable || isUndone
}

/** The end of work after its last try. Repeatable work never ends unknown: it can simply be repeated. */
export function endOf({
  isUnknown,
  isRepeatable
}: Pick<FailedTry, 'isUnknown' | 'isRepeatable'>): 'failed' | 'unknown' {
  return isUnknown && !isRepeatable ? 'unknown' : 'failed'
}

/** The known state of work that ended without a result. */
type Tried = Pick<FailedTry, 'error' | 'isUnknown' | 'isUnsent' | 'isRepeatable'>

/** The error that a caller gets: it is not retryable when the work may have been done and may not be repeated. */
export function errorForCaller(one: Tried): ErrorBody {
  const { error, isRepeatable } = one
  return error.retryable && !mayRunAgain({ isRepeatable, isUndone: isNothingDone(one) }) ? notRetryable(error) : error
}

/** The error of work that is not to be asked for again: it names no time for that. */
export function notRetryable(error: ErrorBody): ErrorBody {
  const { data, ...rest } = error
  if (!isRecord(data) || !Object.hasOwn(data, 'retryAfter')) return { ...error, retryable: false }
  const others = Object.entries(data).filter(([key]) => key !== 'retryAfter')
  return { ...rest, retryable: false, ...(others.length === 0 ? {} : { data: Object.fromEntries(others) }) }
}

/** Does an error say that rules, or a person, did not let the message through? */
export function isRefusal(code: ErrorCode): boolean {
  return REFUSED.has(code)
}

/** Does a node that answers so keep no record of the request, so that it may be sent again under the same id? */
export function isForgotten(code: ErrorCode): boolean {
  return FORGOTTEN.has(code)
}

/**
 * Does an error say of an agent that it has no place for the work, or is not there? The work has not begun, as far as
 * it says.
 */
export function isNotTaken(code: ErrorCode): boolean {
  return FORGOTTEN.has(code) || NOT_THERE.has(code)
}

/**
 * The wait that an error asks for, in whole milliseconds, at most {@link MAX_TTL_MS}, since no work has longer; 0 for
 * none.
 */
export function retryAfterMs({ data }: Pick<ErrorBody, 'data'>): number {
  const seconds = isRecord(data) ? data['retryAfter'] : undefined
  return typeof seconds === 'number' && seconds > 0 ? Math.min(MAX_TTL_MS, Math.ceil(seconds * 1000)) : 0
}

function isNothingDone({ error: { code, retryable }, isUnknown, isUnsent }: Tried): boolean {
  if (isUnknown) return false
  // An agent that says of a failure, which else could not be retried, that it can, says so only when nothing was done.
  const isKnown = retryable && !ERROR_CODES[code].retryable
  return isUnsent === true || isKnown || isNotTaken(code) || isRefusal(code) || UNABLE.has(code)
}

function isFinal({ code, retryable, isFinal: isKnown }: ErrorBody): boolean {
  return isKnown === true || AT_FAULT.has(code) || (!retryable && ERROR_CODES[code].retryable)
}

function isPlaceless({ error: { code }, isForAnyone = false }: FailedTry): boolean {
  return FORGOTTEN.has(code) || (isForAnyone && NOT_THERE.has(code))
}
