import type { ErrorBody } from '../../kit/errors.js'
import { failure, finishItem, finishSwarm } from './finish.js'
import { backOff, endLease, heard, leasesOf, type LiveLease, liveLease, noteTried, putBack, release, renew } from './leases.js'
import { fill, isDoable, nextUrgent, restEnds } from './schedule.js'
import { nextOverdue } from './slow.js'
import type { AgentState, HostState, ItemState, SwarmEffect, SwarmInput, SwarmParts, SwarmState } from './types.js'

export { counts } from './finish.js'
export { liveLease } from './leases.js'
export type { RunOutcome, SwarmEffect, SwarmInput, SwarmParts, SwarmState } from './types.js'

/** Leases that a node's agents get before any of them has brought a result. */
const FIRST_LEASES = 4
/** A pinned item fails when its agent stays away for this many lease spans. */
const ABSENCE_LEASES = 2

/** A swarm with nobody in it yet. */
export function createSwarm({ items, ...parts }: SwarmParts, now: number): SwarmState {
  const state: SwarmState = {
    createdAt: now,
    parts: { ...parts, maxParallel: Math.max(1, parts.maxParallel) },
    items: items.map(freshItem),
    agents: new Map(),
    hosts: new Map(),
    leases: new Map(),
    returned: new Map(),
    fresh: items.flatMap((item, index) => (item.pinnedTo === undefined ? [index] : [])),
    nextFresh: 0,
    absent: new Map(),
    leaseCount: 0,
    workedMs: 0,
    completed: 0,
    failed: 0,
    status: 'running'
  }
  for (const [index, item] of state.items.entries()) if (item.pinnedTo !== null) agentOf(state, item.pinnedTo).pinned.add(index)
  return state
}

function freshItem({ name, pinnedTo }: SwarmParts['items'][number]): ItemState {
  const none = { attempt: 0, failures: 0, agent: '', leasedAt: 0, tried: [], barred: [], takeovers: 0 }
  return { name, pinnedTo: pinnedTo ?? null, status: 'waiting', ...none }
}

function agentOf(state: SwarmState, address: string): AgentState {
  const known = state.agents.get(address)
  if (known !== undefined) return known
  const none = { isPresent: false, slots: 0, inUse: 0, lastLease: 0, backoffUntil: 0, refusals: 0 }
  const agent = { address, host: hostOf(state, address), ...none, pinned: new Set<number>() }
  state.agents.set(address, agent)
  return agent
}

function hostOf(state: SwarmState, address: string): HostState {
  const name = address.slice(address.lastIndexOf('@') + 1)
  const host = state.hosts.get(name) ?? { allowed: FIRST_LEASES, inUse: 0, isProven: false, silentUntil: 0 }
  state.hosts.set(name, host)
  return host
}

/** What a step works on. */
interface Step {
  readonly state: SwarmState
  readonly now: number
  readonly effects: SwarmEffect[]
}

/**
 * Moves a swarm by one input and gives the effects in order. The state is changed in place and given back; the same
 * inputs at the same times always give the same effects. After `done` nothing happens any more.
 *
 * - One live lease an item; its attempt number rises with each. A result counts only from the agent and attempt of the
 *   live lease, so each item gets exactly one outcome, however often and late messages come.
 * - Leases that are lost (link, silence, no room, agent gone) cost no retry; runs that failed do. Who may not do an item is
 *   not asked for it again, and where nobody else is there it has failed.
 * - Work goes to the agent with most free slots, then to the one that waited longest. A node's agents get few leases at
 *   first and one more with each result, so that none takes a swarm by claiming many places.
 * - What is held far longer than others take goes to a proven agent that is idle.
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
  else if (state.items.length === 0) finishSwarm(state, 'completed', effects)
  else if (now >= state.parts.deadlineAt) expire(step)
  else {
    apply(step, input)
    fill(state, now, effects)
  }
  return { state, effects }
}

function apply(step: Step, input: Exclude<SwarmInput, { type: 'cancel' }>): void {
  switch (input.type) {
    case 'accepted':
      return accepted(step, input.agent, input.slots)
    case 'recruited':
      for (const { agent, slots } of input.agents) accepted(step, agent, slots)
      return
    case 'left':
      return left(step, input)
    case 'gone':
      return gone(step, input)
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

function accepted({ state }: Step, address: string, slots: number): void {
  const agent = agentOf(state, address)
  agent.isPresent = true
  agent.slots = Math.max(0, Math.floor(slots))
  agent.host.silentUntil = 0
  state.absent.delete(address)
}

function left(step: Step, { agent: address, reason, error }: Extract<SwarmInput, { type: 'left' }>): void {
  const agent = depart(step, address, reason)
  if (agent === undefined) return
  const outcome = error === undefined ? failure('PEER_OFFLINE', `${address} does not take part: ${reason}`) : { ok: false as const, error }
  failPinned(step, agent, outcome)
}

function gone(step: Step, { agents, reason }: Extract<SwarmInput, { type: 'gone' }>): void {
  for (const address of agents) {
    const agent = depart(step, address, reason)
    if (agent !== undefined && agent.pinned.size > 0 && !step.state.absent.has(address)) step.state.absent.set(address, step.now)
  }
}

/** Takes an agent's leases back and gives it no more. Undefined when the swarm never heard of it. */
function depart({ state, now, effects }: Step, address: string, reason: string): AgentState | undefined {
  const agent = state.agents.get(address)
  if (agent === undefined) return undefined
  for (const lease of leasesOf(state, new Set([address]))) release(state, lease, { reason, now, effects })
  agent.isPresent = false
  agent.backoffUntil = 0
  agent.refusals = 0
  return agent
}

function failPinned({ state, now, effects }: Step, agent: AgentState, outcome: { ok: false; error: ErrorBody }): void {
  state.absent.delete(agent.address)
  for (const index of [...agent.pinned]) finishItem(state, index, { outcome, now, effects })
}

function heartbeat({ state, now }: Step, leases: readonly { index: number; attempt: number }[]): void {
  for (const one of leases) {
    const lease = liveLease(state, one)
    if (lease !== null) renew(state, lease, now)
  }
}

function result({ state, now, effects }: Step, input: Extract<SwarmInput, { type: 'result' }>): void {
  const lease = liveLease(state, input)
  if (lease === null) return
  const { index, item, agent } = lease
  endLease(state, lease)
  if (agent !== undefined) heard(agent)
  if (input.outcome.ok) credit(state, lease, now)
  if (!input.outcome.ok && input.outcome.isRefusal === true) item.barred.push(item.agent)
  const isLast = item.failures >= state.parts.retries || !isDoable(state, item)
  if (input.outcome.ok || input.outcome.isFinal === true || isLast) {
    if (!input.outcome.ok) item.failures++
    return finishItem(state, index, { outcome: input.outcome, now, effects })
  }
  item.failures++
  noteTried(item)
  putBack(state, lease, now)
  effects.push({ type: 'retry', index, agent: item.agent, attempt: item.attempt, error: input.outcome.error })
}

function credit(state: SwarmState, { item, agent }: LiveLease, now: number): void {
  state.workedMs += now - item.leasedAt
  if (agent === undefined) return
  agent.host.allowed++
  agent.host.isProven = true
}

function busy({ state, now, effects }: Step, input: Extract<SwarmInput, { type: 'busy' }>): void {
  const lease = liveLease(state, input)
  if (lease === null) return
  release(state, lease, { reason: 'busy', now, effects })
  backOff(lease.agent, now)
}

function tick(step: Step): void {
  const { state, now, effects } = step
  for (const [index, beatAt] of state.leases) {
    if (now - beatAt < state.parts.leaseMs) break
    const item = state.items[index]
    if (item === undefined) continue
    const lease = { index, item, agent: state.agents.get(item.agent) }
    noteTried(item)
    release(state, lease, { reason: `no heartbeat for ${state.parts.leaseMs} ms`, now, effects })
    backOff(lease.agent, now)
    if (lease.agent !== undefined) lease.agent.host.silentUntil = now + state.parts.leaseMs
  }
  for (const [address, goneAt] of state.absent) {
    if (now - goneAt < ABSENCE_LEASES * state.parts.leaseMs) break
    const agent = state.agents.get(address)
    if (agent !== undefined) failPinned(step, agent, failure('PEER_OFFLINE', `${address} is offline and did not come back`))
  }
}

function expire(step: Step): void {
  const { state, now, effects } = step
  releaseAll(step, 'deadline')
  const outcome = failure('TIMEOUT', 'not finished by the deadline of the swarm')
  for (const index of state.items.keys()) finishItem(state, index, { outcome, now, effects })
}

function cancel(step: Step): void {
  releaseAll(step, 'canceled')
  finishSwarm(step.state, 'canceled', step.effects)
}

function releaseAll({ state, now, effects }: Step, reason: string): void {
  for (const [index, item] of [...state.leases.keys()].map((key) => [key, state.items[key]] as const)) {
    if (item !== undefined) release(state, { index, item, agent: state.agents.get(item.agent) }, { reason, now, effects })
  }
}

/** Where a swarm stands, for people: `stalled` while it runs without any agent that could get a lease. */
export function swarmStatus(state: SwarmState): SwarmState['status'] | 'stalled' {
  if (state.status !== 'running') return state.status
  for (const agent of state.agents.values()) if (agent.isPresent && agent.slots > 0) return 'running'
  return 'stalled'
}

/** When the next tick will do something, so that the owner sets one timer: at the latest the deadline. Null after the end. */
export function nextTickAt(state: SwarmState, now: number): number | null {
  if (state.status !== 'running') return null
  const { leaseMs, deadlineAt } = state.parts
  const times = [deadlineAt, restEnds(state, now), nextUrgent(state, now), nextOverdue(state, now)]
  for (const beatAt of firstOf(state.leases)) times.push(beatAt + leaseMs)
  for (const goneAt of firstOf(state.absent)) times.push(goneAt + ABSENCE_LEASES * leaseMs)
  return Math.min(...times)
}

function firstOf(times: ReadonlyMap<unknown, number>): number[] {
  const first = times.values().next()
  return first.done === true ? [] : [first.value]
}
