import { NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import type { FinalSwarmStatus, ItemCounts, RunOutcome, SwarmEffect, SwarmState } from './types.js'

/** Gives an item that waits (no lease is live) its one outcome, and ends the swarm with the last. */
export function finishItem(
  state: SwarmState,
  index: number,
  { outcome, now, effects }: { outcome: RunOutcome; now: number; effects: SwarmEffect[] }
): void {
  const item = state.items[index]
  if (item === undefined || item.status !== 'waiting') return
  // Of what may be repeated nobody needs to look whether it was done.
  item.status = outcome.ok ? 'completed' : outcome.isUnknown === true && !item.isRepeatable ? 'unknown' : 'failed'
  if (outcome.ok) state.completed++
  else state.failed++
  state.returned.delete(index)
  if (item.pinnedTo !== null) state.agents.get(item.pinnedTo)?.pinned.delete(index)
  effects.push({
    type: 'item',
    index,
    agent: item.agent,
    attempt: item.attempt,
    status: item.status,
    result: outcome.ok ? outcome.result : null,
    error: outcome.ok ? null : outcome.error,
    durationMs: item.attempt === 0 ? 0 : now - item.leasedAt
  })
  if (state.completed + state.failed === state.items.length) finishSwarm(state, verdict(state), effects)
}

/** Ends the swarm. */
export function finishSwarm(state: SwarmState, status: FinalSwarmStatus, effects: SwarmEffect[]): void {
  if (state.status !== 'running') return
  state.status = status
  effects.push({ type: 'done', status, counts: counts(state) })
}

/** Items by fate, so far. */
export function counts(state: SwarmState): ItemCounts {
  return { total: state.items.length, completed: state.completed, failed: state.failed }
}

/** How a swarm ends whose items all have their outcome. */
export function verdict(state: SwarmState): FinalSwarmStatus {
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
    `nobody can say whether it was done: ${reason}, while an agent had it. Its capability may not be repeated, so no other was asked: ` +
    'look whether it was done; with --allow-repeat such items are done again'
  return { ...failure(code, message), isUnknown: true }
}
