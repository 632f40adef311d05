import { mayRunAgain } from './repeat.js'
import { retryDelay } from './retry-policy.js'
import type { RetryPolicy } from './retry-policy.js'

/**
 * State of a request at either end. The spec's outcome UNKNOWN covers every state but COMPLETED and FAILED. `pending`:
 * not begun, as far as this end knows. `started`: its handler was called. `unknown`: it may have been done; a late
 * outcome still counts.
 */
export type RequestStatus = 'pending' | 'started' | 'unknown' | 'completed' | 'failed'

/** Ends that nothing follows. */
export const SETTLED: ReadonlySet<RequestStatus> = new Set(['completed', 'failed'])

/**
 * Ends of its node that may cut short the runs of one request, which may be repeated, before its outcome is unknown.
 * One says little: the power failed, or another request ended the node. At two there was a run that began after the
 * first, with few others or none beside it.
 */
export const MAX_CUTS = 2

/** A request at the node of the working agent. */
export interface CalleeRequest {
  readonly status: RequestStatus
  /** Times that its handler was begun. */
  readonly runs: number
  /** Ends of its node that cut a run short, as far as a start counted them. */
  readonly cuts: number
  /** May it be run again after an unknown outcome? */
  readonly isRepeatable: boolean
}

/** The effect of a message about a request: the handler runs, the message joins a run, or the known state is sent. */
export type ArrivalVerdict = 'run' | 'join' | 'tell' | 'absent'

/**
 * The meaning of a message about a request. A new one runs, unless its caller only queries it (`query`). A known one
 * never runs twice at once, nor after its end.
 */
export function arrive(known: CalleeRequest | null, kind: 'request' | 'query'): ArrivalVerdict {
  if (known === null) return kind === 'request' ? 'run' : 'absent'
  return known.status === 'pending' || known.status === 'started' ? 'join' : 'tell'
}

/** Its handler begins. That has to be durable before it does anything, unless it may be repeated. */
export function begin(request: CalleeRequest): CalleeRequest {
  return { ...request, status: 'started', runs: request.runs + 1 }
}

/** Its handler has ended. */
export function end(request: CalleeRequest, outcome: 'completed' | 'failed'): CalleeRequest {
  return { ...request, status: outcome }
}

/**
 * A start finds it: a run without an end was cut short, since an orderly stop ends every run. `isAtFault`: the end was
 * an error of the node itself, which counts as all there may be.
 */
export function found(request: CalleeRequest, isAtFault = false): CalleeRequest {
  if (request.status !== 'started') return request
  return { ...request, cuts: isAtFault ? Math.max(MAX_CUTS, request.cuts) : request.cuts + 1 }
}

/**
 * Recovery of a request without an end, as {@link found}. `run`: again. `unknown`: it may have been done and must not
 * be repeated. `suspect`: its node ended too often during it, perhaps because of it.
 */
export function recover(request: CalleeRequest): 'run' | 'unknown' | 'suspect' | 'nothing' {
  if (request.status === 'pending') return 'run'
  if (request.status !== 'started') return 'nothing'
  if (!mayRunAgain({ isRepeatable: request.isRepeatable, isUndone: false })) return 'unknown'
  return request.cuts >= MAX_CUTS ? 'suspect' : 'run'
}

/** A request at the node that asked. */
export interface CallerRequest {
  readonly status: RequestStatus
  readonly isRepeatable: boolean
  /** Times that it was sent, or asked after. */
  readonly tries: number
  /** Unix milliseconds; then its outcome is unknown. */
  readonly deadline: number
  /** Unix milliseconds of the next try; null for none. */
  readonly retryAt: number | null
  /** Unix milliseconds of its last change. */
  readonly updatedAt: number
  /** Unix milliseconds; then no one asks any more, and its record may be removed. */
  readonly expiresAt: number
}

/** Inputs of a request at the caller. */
export type CallerInput =
  /** Its callee says how it ended. `unknown`: it cannot say, and does not run it again. */
  | { readonly type: 'outcome'; readonly outcome: 'completed' | 'failed' | 'unknown' }
  /** Time passed. `chance` in [0, 1). */
  | { readonly type: 'tick'; readonly chance: number }
  /** A new path to its callee: an unknown outcome is queried now, even after the last try. */
  | { readonly type: 'back' }

/** Effects for the owner of a request. */
export type CallerEffect =
  /** Send it once more, under its own id: `query` only asks for its state. */
  | { readonly type: 'send'; readonly kind: 'request' | 'query' }
  /** Tell the waiting callers. `isLate`: after the outcome was reported as unknown. */
  | { readonly type: 'tell'; readonly status: 'completed' | 'failed' | 'unknown'; readonly isLate: boolean }

/** Retries of a request without an outcome by default: 5 tries in all, after up to 5 s, 10 s, 20 s and 40 s. */
export const REQUEST_POLICY: RetryPolicy = {
  maxAttempts: 5,
  baseDelayMs: 5000,
  maxDelayMs: 60_000,
  backoffMultiplier: 2
}

/** A request that is sent for the first time. */
export function ask(
  parts: Pick<CallerRequest, 'isRepeatable' | 'deadline' | 'expiresAt' | 'updatedAt'>
): CallerRequest {
  return { status: 'pending', tries: 1, retryAt: null, ...parts }
}

/** Moves a request at the node that asked. The same state comes back when nothing changes. `now`: unix milliseconds. */
export function stepCaller(
  request: CallerRequest,
  input: CallerInput,
  { now, policy = REQUEST_POLICY }: { readonly now: number; readonly policy?: RetryPolicy }
): { readonly request: CallerRequest; readonly effects: readonly CallerEffect[] } {
  if (SETTLED.has(request.status)) return { request, effects: [] }
  if (input.type === 'outcome') return settled(request, input.outcome)
  if (input.type === 'back')
    return { request: isAskedOnReturn(request, { now, policy }) ? { ...request, retryAt: now } : request, effects: [] }
  if (request.status === 'pending') {
    if (now < request.deadline) return { request, effects: [] }
    const next = { ...request, status: 'unknown' as const, updatedAt: now }
    return {
      request: { ...next, retryAt: retryAt(next, { now, policy, chance: input.chance }) },
      effects: [tell('unknown', false)]
    }
  }
  if (!isDue(request, now)) return { request, effects: [] }
  const next = { ...request, tries: request.tries + 1, updatedAt: now }
  const effect: CallerEffect = {
    type: 'send',
    kind: mayRunAgain({ isRepeatable: request.isRepeatable, isUndone: false }) ? 'request' : 'query'
  }
  return { request: { ...next, retryAt: retryAt(next, { now, policy, chance: input.chance }) }, effects: [effect] }
}

/** Is an outcome that is not known to be asked for by now? `now`: unix milliseconds. */
export function isDue(request: CallerRequest, now: number): boolean {
  // A clock that was put back since cannot tell how long it has waited.
  return request.status === 'unknown' && request.retryAt !== null && (now >= request.retryAt || now < request.updatedAt)
}

function isAskedOnReturn(
  { status, tries, retryAt: dueAt, expiresAt }: CallerRequest,
  { now, policy }: { readonly now: number; readonly policy: RetryPolicy }
): boolean {
  if (status !== 'unknown' || now >= expiresAt) return false
  // Its callee may never have had it, so the wait for a late answer is over. Without a time it said that it cannot
  // tell, or the tries are over.
  return dueAt === null ? tries >= policy.maxAttempts : dueAt > now
}

function settled(request: CallerRequest, outcome: 'completed' | 'failed' | 'unknown'): ReturnType<typeof stepCaller> {
  const isLate = request.status === 'unknown'
  // A callee without an answer now will never have one.
  if (outcome === 'unknown' && isLate) return { request: { ...request, retryAt: null }, effects: [] }
  return { request: { ...request, status: outcome, retryAt: null }, effects: [tell(outcome, isLate)] }
}

function retryAt(
  { tries, expiresAt }: CallerRequest,
  { now, policy, chance }: { readonly now: number; readonly policy: RetryPolicy; readonly chance: number }
): number | null {
  if (tries >= policy.maxAttempts) return null
  const at = now + retryDelay(policy, tries - 1, chance)
  return at < expiresAt ? at : null
}

function tell(status: 'completed' | 'failed' | 'unknown', isLate: boolean): CallerEffect {
  return { type: 'tell', status, isLate }
}
