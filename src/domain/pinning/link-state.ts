import { jitteredBackoffMs } from '../../kit/backoff.js'

/** How long a changed list is waited with, so that changes that come together are one; milliseconds. */
export const GATHER_MS = 250
/** Shortest time between two lists that the other side asks for, in milliseconds. */
export const LIST_GAP_MS = 2000
/** A session that is lost sooner than this after its start is a failure, not a restart of the server; milliseconds. */
export const SESSION_MIN_MS = 1000
/** Wait before the second try to connect is at most this; each further one is twice as long. Milliseconds. */
export const FIRST_RETRY_MS = 1000
/** Longest wait between two tries, in milliseconds. */
export const MAX_RETRY_MS = 60_000
/** Shortest, so that chance cannot make it none; milliseconds. */
export const MIN_RETRY_MS = 100

/** State of the link to an import. `starting` lasts until its first list (of tools, or a card) is in force. */
export type Phase = 'idle' | 'starting' | 'ready' | 'backoff' | 'closed'

/** The link to one import. */
export interface LinkState {
  readonly phase: Phase
  /** A connection is open or is being opened. */
  readonly isOpen: boolean
  /** A list was asked for and is awaited. */
  readonly isListing: boolean
  /** The list changed since it was asked for last. */
  readonly isDirty: boolean
  /** Failures without a good list between them. */
  readonly failures: number
  readonly starts: number
  readonly startedAt: number
  /** When the last good list came; null: none yet. */
  readonly listedAt: number | null
  /** When {@link step} is to be called with `wake`; null: never. */
  readonly wakeAt: number | null
  readonly lastError: string | null
}

/** Inputs of a link. `chance` is in [0, 1). */
export type LinkInput =
  | { readonly type: 'start' | 'connected' | 'listed' | 'busy' | 'changed' | 'refresh' | 'wake' | 'close' }
  | { readonly type: 'failed'; readonly reason: string; readonly chance: number }
  | { readonly type: 'lost'; readonly reason: string; readonly chance: number }

/** Effects for the owner of a link, in this order. */
export type LinkEffect = 'disconnect' | 'connect' | 'list'

/** A state and the effects on the way to it. */
export interface LinkStep {
  readonly state: LinkState
  readonly effects: readonly LinkEffect[]
}

/** Before anything. */
export const IDLE: LinkState = {
  phase: 'idle',
  isOpen: false,
  isListing: false,
  isDirty: false,
  failures: 0,
  starts: 0,
  startedAt: 0,
  listedAt: null,
  wakeAt: null,
  lastError: null
}

/** One step of a link: applies an input to a state. `now`: monotonic milliseconds; `ttlMs`: how long a list is good. */
export function step(
  state: LinkState,
  input: LinkInput,
  { now, ttlMs }: { readonly now: number; readonly ttlMs: number }
): LinkStep {
  if (state.phase === 'closed') return { state, effects: [] }
  switch (input.type) {
    case 'start':
      return state.phase === 'idle' ? connect(state, now) : stay(state)
    case 'connected':
      return state.phase === 'starting' && !state.isListing ? list(state) : stay(state)
    case 'listed':
      return state.isListing ? listed(state, now, ttlMs) : stay(state)
    // It does not list while it works: its calls are worth more than a new list.
    case 'busy':
      return stay(state.isListing ? { ...state, isListing: false, isDirty: true, wakeAt: now + LIST_GAP_MS } : state)
    case 'changed':
      return stay(changed(state, now))
    case 'refresh':
      return refresh(state, now)
    case 'wake':
      return wake(state, now)
    case 'failed':
      return state.isOpen ? failed(state, input, now) : stay(state)
    case 'lost':
      return lost(state, input, now)
    case 'close':
      return {
        state: { ...state, phase: 'closed', isOpen: false, isListing: false, wakeAt: null },
        effects: state.isOpen ? ['disconnect'] : []
      }
  }
}

/** Full jitter: anything up to a bound that doubles with each failure. */
export function retryDelay(failures: number, chance: number): number {
  return jitteredBackoffMs({ baseMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS, minMs: MIN_RETRY_MS }, failures - 1, chance)
}

function stay(state: LinkState): LinkStep {
  return { state, effects: [] }
}

function connect(state: LinkState, now: number): LinkStep {
  const next: LinkState = {
    ...state,
    phase: 'starting',
    isOpen: true,
    isListing: false,
    isDirty: false,
    starts: state.starts + 1,
    startedAt: now
  }
  return { state: { ...next, wakeAt: null }, effects: state.isOpen ? ['disconnect', 'connect'] : ['connect'] }
}

function list(state: LinkState): LinkStep {
  return { state: { ...state, isListing: true, isDirty: false, wakeAt: null }, effects: ['list'] }
}

function listed(state: LinkState, now: number, ttlMs: number): LinkStep {
  const wakeAt = state.isDirty ? now + LIST_GAP_MS : now + ttlMs
  return stay({ ...state, phase: 'ready', isListing: false, failures: 0, listedAt: now, wakeAt, lastError: null })
}

/** However many say so: one list, and not sooner than its gap allows. */
function changed(state: LinkState, now: number): LinkState {
  if (state.isListing) return { ...state, isDirty: true }
  if (state.phase !== 'ready') return state
  const due = Math.max(now + GATHER_MS, (state.listedAt ?? 0) + LIST_GAP_MS)
  return {
    ...state,
    isDirty: true,
    wakeAt: state.isDirty || state.wakeAt === null ? (state.wakeAt ?? due) : Math.min(state.wakeAt, due)
  }
}

function refresh(state: LinkState, now: number): LinkStep {
  if (state.phase === 'idle' || state.phase === 'backoff') return connect(state, now)
  if (state.phase === 'ready' && !state.isListing) return list(state)
  return stay(state.isListing ? { ...state, isDirty: true } : state)
}

function wake(state: LinkState, now: number): LinkStep {
  if (state.wakeAt === null || now < state.wakeAt) return stay(state)
  if (state.phase === 'backoff') return connect(state, now)
  return state.isOpen && !state.isListing ? list(state) : stay(state)
}

function failed(
  state: LinkState,
  { reason, chance }: { readonly reason: string; readonly chance: number },
  now: number
): LinkStep {
  const failures = state.failures + 1
  const next: LinkState = {
    ...state,
    phase: 'backoff',
    isOpen: false,
    isListing: false,
    isDirty: false,
    failures,
    lastError: reason
  }
  return { state: { ...next, wakeAt: now + retryDelay(failures, chance) }, effects: ['disconnect'] }
}

/** The server forgot the session, as it does when it was restarted: a new one is begun at once. */
function lost(state: LinkState, input: { readonly reason: string; readonly chance: number }, now: number): LinkStep {
  if (!state.isOpen) return stay(state)
  if (state.phase !== 'ready' || now - state.startedAt < SESSION_MIN_MS) return failed(state, input, now)
  return connect({ ...state, lastError: input.reason }, now)
}
