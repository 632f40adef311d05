import type { ErrorBody } from '../../kit/errors.js'
import { decideRepeat, retryAfterMs } from '../reliable/repeat.js'
import { agentOf, offerItem } from './create.js'
import { dropItem, endIfDone, failure, finishItem, finishSwarm } from './finish.js'
import {
  backOff,
  endLease,
  markAlive,
  leasesOf,
  type LiveLease,
  liveLease,
  lose,
  nextAwake,
  noteTried,
  patience,
  putBack,
  release,
  renew,
  wake
} from './leases.js'
import { giveUpLacking, nextGivenUp } from './lacking.js'
import { fill, isDoable, nextUrgent, restEnds } from './schedule.js'
import { nextOverdue } from './slow.js'
import type {
  SwarmAgentState,
  ItemState,
  Range,
  Recruit,
  RunOutcome,
  SwarmEffect,
  SwarmInput,
  SwarmState
} from './types.js'

export { createSwarm } from './create.js'
export { counts } from './finish.js'
export { liveLease } from './leases.js'
export { type KnownItem, restoreSwarm } from './restore.js'
export type {
  FinalSwarmStatus,
  RunOutcome,
  SwarmEffect,
  SwarmInput,
  SwarmParts,
  SwarmState
} from './types.js'

/** A pinned item fails when its agent stays away for this many lease spans. */
const ABSENCE_LEASES = 2

interface Step {
  readonly state: SwarmState
  readonly now: number
  readonly effects: SwarmEffect[]
}

/**
 * Moves a swarm by one input and returns the effects in order. The state is changed in place and returned; the same
 * inputs at the same times always give the same effects. After `done` it never changes. Rules:
 *
 * - One live lease an item; its attempt number rises with each. A result counts only from the agent and attempt of the
 *   live lease. So each item has exactly one outcome, however late or often messages come.
 * - Lost leases (link, silence, no slot, agent gone) cost no retry; failed runs do. Retries follow the rule of every
 *   request, {@link decideRepeat}. A barred agent is not asked again for the item; without another agent the item has
 *   failed.
 * - Work goes to the agent with most free slots, then to the one that waited longest. A node's agents get few leases at
 *   first and one more with each result, so that none takes a swarm by claiming many slots.
 * - A lease far longer than others moves to an idle agent with results.
 * - An item without a capable agent fails after a while: a swarm never waits for ever.
 * - Work that may not be repeated has one lease once it may have begun. The lease outlives the link for a while, and
 *   then the outcome is unknown.
 */
export function stepSwarm(
  state: SwarmState,
  input: SwarmInput,
  now: number
): { readonly state: SwarmState; readonly effects: readonly SwarmEffect[] } {
  const effects: SwarmEffect[] = []
  if (state.status !== 'running') return { state, effects }
  const step = { state, now, effects }
  if (input.type === 'cancel') cancel(step)
  else if (endIfDone(state, effects)) return { state, effects }
  else if (now >= state.parts.deadlineAt) expire(step)
  else {
    apply(step, input)
    wake(state, now)
    fill(state, now, effects)
  }
  return { state, effects }
}

function apply(step: Step, input: Exclude<SwarmInput, { type: 'cancel' }>): void {
  switch (input.type) {
    case 'accepted':
      return accepted(step, input)
    case 'recruited':
      for (const recruit of input.agents) accepted(step, recruit)
      return
    case 'left':
      return left(step, input)
    case 'gone':
      return gone(step, input)
    case 'open':
      return open(step, input)
    case 'drop':
      return drop(step, input)
    case 'heartbeat':
      return heartbeat(step, input.leases)
    case 'result':
      return result(step, input)
    case 'busy':
      return busy(step, input)
    case 'tick':
      return tick(step)
  }
}

function accepted({ state }: Step, { agent: address, slots, isRepeatable = true, need = 0 }: Recruit): void {
  const agent = agentOf(state, address)
  agent.isPresent = true
  agent.needs.set(need, isRepeatable)
  agent.slots = Math.max(0, Math.floor(slots))
  agent.host.silentUntil = 0
  state.absent.delete(address)
}

function left(step: Step, { agent: address, reason, error, need }: Extract<SwarmInput, { type: 'left' }>): void {
  const agent = depart(step, address, { reason, ...(need === undefined ? {} : { need }) })
  if (agent === undefined) return
  const outcome =
    error === undefined
      ? failure('PEER_OFFLINE', `${address} does not take part: ${reason}`)
      : { ok: false as const, error }
  failPinned(step, agent, { outcome, ...(need === undefined ? {} : { need }) })
}

function open({ state, now }: Step, { from, count }: Range): void {
  for (let index = from; index < from + count; index++) {
    const item = state.items[index]
    if (item?.status !== 'blocked') continue
    item.status = 'waiting'
    offerItem(state, index, now)
    // It was asked when the swarm began: it has its time to come back, and no more.
    const { pinnedTo } = item
    if (pinnedTo !== null && state.agents.get(pinnedTo)?.isPresent !== true && !state.absent.has(pinnedTo)) {
      state.absent.set(pinnedTo, now + ABSENCE_LEASES * state.parts.leaseMs)
    }
  }
}

function drop(
  { state, now, effects }: Step,
  { from, count, status, reason }: Extract<SwarmInput, { type: 'drop' }>
): void {
  for (const lease of allLeases(state)) {
    if (lease.index >= from && lease.index < from + count) release(state, lease, { reason, now, effects })
  }
  for (let index = from; index < from + count; index++) dropItem(state, index, { status, reason, effects })
}

function gone(step: Step, { agents, reason }: Extract<SwarmInput, { type: 'gone' }>): void {
  for (const address of agents) {
    const agent = depart(step, address, { reason })
    if (agent !== undefined && agent.pinned.size > 0 && !step.state.absent.has(address))
      step.state.absent.set(address, step.now)
  }
}

/** Removes an agent and returns its leases, of all items or of one need. Undefined when the swarm does not know it. */
function depart(
  { state, now, effects }: Step,
  address: string,
  { reason, need }: { reason: string; need?: number }
): SwarmAgentState | undefined {
  const agent = state.agents.get(address)
  if (agent === undefined) return undefined
  for (const lease of leasesOf(state, new Set([address]))) {
    if (lease.item.isRepeatable && isOf(lease.item, need)) release(state, lease, { reason, now, effects })
  }
  if (need === undefined) agent.needs.clear()
  else agent.needs.delete(need)
  if (agent.needs.size > 0) return agent
  agent.isPresent = false
  agent.backoffUntil = 0
  agent.refusals = 0
  return agent
}

function isOf(item: ItemState | undefined, need: number | undefined): boolean {
  return need === undefined || item?.need === need
}

function failPinned(
  { state, now, effects }: Step,
  agent: SwarmAgentState,
  { outcome, need }: { outcome: { ok: false; error: ErrorBody }; need?: number }
): void {
  if (!agent.isPresent) state.absent.delete(agent.address)
  for (const index of [...agent.pinned])
    if (isOf(state.items[index], need)) finishItem(state, index, { outcome, now, effects })
}

function heartbeat({ state, now }: Step, leases: readonly { index: number; attempt: number }[]): void {
  for (const one of leases) {
    const lease = liveLease(state, one)
    if (lease !== null) renew(state, lease, now)
  }
}

function result(step: Step, input: Extract<SwarmInput, { type: 'result' }>): void {
  const { state, now, effects } = step
  const lease = liveLease(state, input)
  if (lease === null) return
  if (!input.outcome.ok) return failedRun(step, lease, input.outcome)
  endLease(state, lease)
  if (lease.agent !== undefined) markAlive(lease.agent)
  credit(state, lease, now)
  finishItem(state, lease.index, { outcome: input.outcome, now, effects })
}

/** A run without a result: its item is tried again, or ends. */
function failedRun(step: Step, lease: LiveLease, outcome: Extract<RunOutcome, { ok: false }>): void {
  const { state, now, effects } = step
  const { index, item } = lease
  const { error, isUnknown = false, isUnsent = false } = outcome
  const { retries, deadlineAt } = state.parts
  const { isRepeatable, failures } = item
  const next = decideRepeat({
    error,
    isUnknown,
    isUnsent,
    isRepeatable,
    isForAnyone: true,
    failures,
    retries,
    leftMs: deadlineAt - now
  })
  if (next.type === 'repeat' && !next.isCounted) return notTaken(step, lease, retryAfterMs(error))
  endLease(state, lease)
  if (lease.agent !== undefined) markAlive(lease.agent)
  if (outcome.isRefusal === true) item.barred.push(item.agent)
  item.failures++
  if (next.type === 'end' || !isDoable(state, item)) return finishItem(state, index, { outcome, now, effects })
  noteTried(item)
  putBack(state, lease, { now, afterMs: next.afterMs })
  effects.push({ type: 'retry', index, agent: item.agent, attempt: item.attempt, error, afterMs: next.afterMs })
}

/**
 * The agent had no slot or is away: the item goes back. The agent gets no lease for a while, at least as long as it
 * requested.
 */
function notTaken({ state, now, effects }: Step, lease: LiveLease, askedMs: number): void {
  release(state, lease, { reason: 'busy', now, effects })
  backOff(lease.agent, now, askedMs)
}

function credit(state: SwarmState, { item, agent }: LiveLease, now: number): void {
  state.workedMs += now - item.leasedAt
  if (agent === undefined) return
  agent.host.allowed++
  agent.host.isProven = true
}

function busy(step: Step, input: Extract<SwarmInput, { type: 'busy' }>): void {
  const lease = liveLease(step.state, input)
  if (lease !== null) notTaken(step, lease, 0)
}

function tick(step: Step): void {
  const { state, now, effects } = step
  for (const [index, heartbeatAt] of state.leases) {
    const item = state.items[index]
    if (item === undefined || now - heartbeatAt < patience(state, item)) continue
    const lease = { index, item, agent: state.agents.get(item.agent) }
    noteTried(item)
    lose(state, lease, { reason: `no heartbeat for ${patience(state, item)} ms`, now, effects })
    backOff(lease.agent, now)
    if (lease.agent !== undefined) lease.agent.host.silentUntil = now + state.parts.leaseMs
  }
  for (const [address, goneAt] of state.absent) {
    if (now - goneAt < ABSENCE_LEASES * state.parts.leaseMs) break
    const agent = state.agents.get(address)
    if (agent !== undefined)
      failPinned(step, agent, { outcome: failure('PEER_OFFLINE', `${address} is offline and did not come back`) })
  }
  giveUpLacking(state, { now, effects })
}

function expire(step: Step): void {
  const { state, now, effects } = step
  for (const lease of allLeases(state)) lose(state, lease, { reason: 'deadline', code: 'TIMEOUT', now, effects })
  const outcome = failure('TIMEOUT', 'not finished by the deadline of the swarm, which canceled work under way')
  for (const [index, item] of state.items.entries()) {
    if (item.status === 'blocked') item.status = 'waiting'
    finishItem(state, index, { outcome, now, effects })
  }
}

function cancel({ state, now, effects }: Step): void {
  for (const lease of allLeases(state)) release(state, lease, { reason: 'canceled', now, effects })
  finishSwarm(state, 'canceled', effects)
}

function allLeases(state: SwarmState): LiveLease[] {
  return [...state.leases.keys()].flatMap((index) => {
    const item = state.items[index]
    return item === undefined ? [] : [{ index, item, agent: state.agents.get(item.agent) }]
  })
}

/** State of a swarm for people: `stalled` while it runs without an agent for the waiting items. */
export function swarmStatus(state: SwarmState): SwarmState['status'] | 'stalled' {
  if (state.status !== 'running') return state.status
  if (state.leases.size === 0 && state.lacking.size > 0) return 'stalled'
  for (const agent of state.agents.values()) if (agent.isPresent && agent.slots > 0) return 'running'
  return 'stalled'
}

/**
 * When the next tick will do something, so that the owner sets one timer: at the latest the deadline. Null after the
 * end.
 */
export function nextTickAt(state: SwarmState, now: number): number | null {
  if (state.status !== 'running') return null
  const { leaseMs, deadlineAt } = state.parts
  const times = [
    deadlineAt,
    restEnds(state, now),
    nextUrgent(state, now),
    nextOverdue(state, now),
    nextGivenUp(state),
    nextAwake(state)
  ]
  for (const [index, heartbeatAt] of state.leases) times.push(heartbeatAt + patience(state, state.items[index]))
  for (const goneAt of firstOf(state.absent)) times.push(goneAt + ABSENCE_LEASES * leaseMs)
  return Math.min(...times)
}

function firstOf(times: ReadonlyMap<unknown, number>): number[] {
  const first = times.values().next()
  return first.done === true ? [] : [first.value]
}
