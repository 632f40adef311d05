import { messageOf, NodeError } from '../../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../../kit/errors.js'
import { endOf, notRetryable, retryAfterMs } from '../reliable/repeat.js'
import type { RequestPayload } from './payloads.js'

/** An end without a result. */
export interface Ending {
  readonly status: 'failed' | 'unknown'
  readonly error: ErrorBody
}

/** Which run a response is of. */
type Run = Pick<RequestPayload, 'requestId' | 'attempt'> & { readonly run?: number }

/** Ends that the node of the agent gives. */
export const ENDINGS = {
  stopped: failed('PEER_OFFLINE', 'the node that had it was stopped, which ended the work'),
  tooLate: failed('TIMEOUT', 'its time was over before it could be begun; nothing was done'),
  noPlace: failed('TIMEOUT', 'it expired before a slot was free'),
  undelivered: failed('PEER_OFFLINE', 'the peer did not come back in time; nothing was begun'),
  forgotten: failed('DELIVERY_FAILED', 'the work was done before, but its result is no longer kept'),
  full: failed('OVERLOADED', 'the ledger of the node is full; old requests have to expire first'),
  diskFull: failed(
    'OVERLOADED',
    'the disk of the node is full, so it takes nothing new until there is room; nothing was begun'
  ),
  unwritable: failed(
    'OVERLOADED',
    'the ledger of the node cannot be written, so it takes nothing new; nothing was begun'
  ),
  malformed: failed('INVALID_ENVELOPE', 'the request has no requestId, attempt or input'),
  unreadable: failed('OVERLOADED', 'the ledger of the node cannot be read'),
  interrupted: neverRepeated(
    'the node ended while it worked on it: it is unknown whether it was done, and the capability may not be repeated; look, then call it anew or allow its repeat'
  ),
  cutTwice: neverRepeated(
    'its node ended twice while it ran; it is not run again, and it is unknown whether it was done; look, then call it anew'
  ),
  cutByFault: neverRepeated(
    'its node ended by an error of its own while it ran; it is not run again, and it is unknown whether it was done; look, then call it anew'
  ),
  late: unknown(
    'it had begun when its node ended, and was not begun again, since its time was over when the node was back: it is unknown whether it was done'
  ),
  lateInDoubt: unknown(
    'its node ended while it had it, and its time was over when the node was back: it may have begun, and it is unknown whether it was done'
  ),
  damaged: unknown(
    'the record that its node has of it is damaged: it is unknown whether it was done; look, then call it anew'
  ),
  removed: failed('OVERLOADED', 'its node had no room for it, and keeps no record of it; nothing was begun'),
  noTrace: unknown('the node has no record of it: it is unknown whether it was done')
} as const satisfies Record<string, Ending>

/** Is its outcome unknown for ever? It is not queried any more. */
export function isNeverLearned({ isFinal }: ErrorBody): boolean {
  return isFinal === true
}

/** It was not done, or is over without a result. */
export function failed(code: ErrorCode, message: string): Ending & { readonly status: 'failed' } {
  return { status: 'failed', error: new NodeError(code, message).toBody() }
}

/** A failure as an agent reports it. */
export interface ReportedFailure {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable?: boolean
  readonly data?: unknown
  readonly isUnknown?: boolean
}

/**
 * How work ends of which an agent says so, with the details that it gives. `isRepeatable`: its capability may be
 * repeated, or its caller allowed it. An agent that names a time for the next try means that there may be one, as far
 * as the work may be repeated.
 */
export function endedBy(reported: ReportedFailure, isRepeatable: boolean): Ending {
  const { code, message, retryable, data, isUnknown = false } = reported
  const mayRetry = retryable ?? (isRepeatable && retryAfterMs({ data }) > 0 ? true : undefined)
  const details = {
    ...(mayRetry === undefined ? {} : { retryable: mayRetry }),
    ...(data === undefined ? {} : { data })
  }
  const made = new NodeError(code, message, details).toBody()
  const error = made.retryable ? made : notRetryable(made)
  const status = endOf({ isUnknown, isRepeatable })
  // When its agent does not know whether it was done, the outcome stays unknown.
  if (status === 'unknown') return { status, error: { ...notRetryable(error), isFinal: true } }
  return { status, error: retryable === false ? { ...error, isFinal: true } : error }
}

function unknown(message: string): Ending & { readonly status: 'unknown' } {
  return { status: 'unknown', error: new NodeError('TIMEOUT', message).toBody() }
}

/** The end of work that is not repeated. */
function neverRepeated(message: string): Ending & { readonly status: 'unknown' } {
  const { status, error } = unknown(message)
  return { status, error: notRetryable(error) }
}

/** The response with a result. */
export function completedBy(run: Run, result: unknown): unknown {
  return { outcome: 'COMPLETED', result, error: null, ...namesOf(run) }
}

/** The response without one. */
export function responseOf(run: Run, { status, error }: Ending): unknown {
  return { outcome: status === 'failed' ? 'FAILED' : 'UNKNOWN', error, ...namesOf(run) }
}

function namesOf({ requestId, attempt, run }: Run): Run {
  return run === undefined ? { requestId, attempt } : { requestId, attempt, run }
}

/** Work that the ledger did not accept has not begun, and may be requested again. @throws NodeError OVERLOADED */
export function notBegun(error: unknown): never {
  throw new NodeError('OVERLOADED', `the ledger of the node takes nothing now: ${messageOf(error)}`, { cause: error })
}
