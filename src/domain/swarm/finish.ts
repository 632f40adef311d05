import { NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import { endOf, errorForCaller } from '../reliable/repeat.js'
import type { FinalSwarmStatus, ItemCounts, ItemState, RunOutcome, SwarmEffect, SwarmState } from './types.js'

/** Gives an item that waits (no lease is live) its one outcome, and ends the swarm with the last. */
export function finishItem(
  state: SwarmState,
  index: number,
  { outcome, now, effects }: { outcome: RunOutcome; now: number; effects: SwarmEffect[] }
): void {
  const item = state.items[index]
  if (item === undefined || item.status !== 'waiting') return
  item.status = outcome.ok
    ? 'completed'
    : endOf({ isUnknown: outcome.isUnknown === true, isRepeatable: item.isRepeatable })
  if (outcome.ok) state.completed++
  else state.failed++
  forget(state, index)
  effects.push({
    type: 'item',
    index,
    agent: item.agent,
    attempt: item.attempt,
    status: item.status,
    result: outcome.ok ? outcome.result : null,
    error: outcome.ok ? null : errorOf(outcome, item),
    durationMs: item.attempt === 0 ? 0 : item.givenAt === null ? null : now - item.givenAt
  })
  endIfDone(state, effects)
}

function errorOf(
  { error, isUnknown = false, isUnsent }: Extract<RunOutcome, { ok: false }>,
  { attempt, isRepeatable }: ItemState
): ErrorBody {
  return errorForCaller({ error, isUnknown, isUnsent: isUnsent === true || attempt === 0, isRepeatable })
}

/** Gives an item that is not needed its outcome, whatever it waits for. One that is leased has to be released first. */
export function dropItem(
  state: SwarmState,
  index: number,
  { status, reason, effects }: { status: 'skipped' | 'canceled'; reason: string; effects: SwarmEffect[] }
): void {
  const item = state.items[index]
  if (item === undefined || (item.status !== 'waiting' && item.status !== 'blocked')) return
  item.status = status
  state.skipped++
  forget(state, index)
  const { agent, attempt } = item
  const error = new NodeError('CANCELED', `${status}: ${reason}`).toBody()
  effects.push({ type: 'item', index, agent, attempt, status, result: null, error, durationMs: 0 })
  endIfDone(state, effects)
}

function forget(state: SwarmState, index: number): void {
  state.returned.delete(index)
  state.resting.delete(index)
  const pinnedTo = state.items[index]?.pinnedTo ?? null
  if (pinnedTo !== null) state.agents.get(pinnedTo)?.pinned.delete(index)
}

/** Ends a swarm whose items all have their outcome. */
export function endIfDone(state: SwarmState, effects: SwarmEffect[]): boolean {
  const isDone = state.completed + state.failed + state.skipped === state.items.length
  if (isDone) finishSwarm(state, verdict(state), effects)
  return isDone
}

/** Ends the swarm. */
export function finishSwarm(state: SwarmState, status: FinalSwarmStatus, effects: SwarmEffect[]): void {
  if (state.status !== 'running') return
  state.status = status
  effects.push({ type: 'done', status, counts: counts(state) })
}

/** Items by fate, so far. */
export function counts(state: SwarmState): ItemCounts {
  const { completed, failed, skipped } = state
  return { total: state.items.length, completed, failed, ...(skipped === 0 ? {} : { skipped }) }
}

function verdict(state: SwarmState): FinalSwarmStatus {
  if (state.failed === 0) return 'completed'
  return state.completed === 0 ? 'failed' : 'partial'
}

/** A failed outcome of this node's own making. */
export function failure(code: ErrorCode, message: string): { ok: false; error: ErrorBody } {
  return { ok: false, error: new NodeError(code, message).toBody() }
}

/** The outcome of an item that may not be repeated, when its lease ended without one. */
export function doubt(reason: string, code: ErrorCode): RunOutcome {
  const message =
    `it is unknown whether it was done: ${reason}, while an agent had it. Its capability may not be repeated, so no other was asked: ` +
    'look whether it was done, and if not, launch it anew; a swarm that allows repeats does such items again'
  return { ...failure(code, message), isUnknown: true }
}
