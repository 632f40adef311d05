import { takeOverLease } from './slow.js'
import type { SwarmAgentState, ItemState, SwarmEffect, SwarmState } from './types.js'

/** Returned items looked at in one search; keeps a step cheap when many wait for the same busy agents. */
const MAX_LOOKED_AT = 32

/** Gives out leases while there are items, free slots and room under maxParallel. */
export function fill(state: SwarmState, now: number, effects: SwarmEffect[]): void {
  while (state.status === 'running') {
    const free = freeAgents(state, now)
    if (free.length === 0) return
    const trusted = preferred(state, free, now).filter(({ host }) => host.inUse < host.allowed)
    const match = nextMatch(state, { free, trusted, now }) ?? takeOverLease(state, { free: trusted, now, effects })
    if (match === null) return
    lease(state, match, { now, effects })
  }
}

/** A waiting item and its agent. Pinned items need no credit: they have one possible agent. */
function nextMatch(
  state: SwarmState,
  { free, trusted, now }: { free: readonly SwarmAgentState[]; trusted: readonly SwarmAgentState[]; now: number }
): Match | null {
  if (state.leases.size >= state.parts.maxParallel) return null
  return pinnedMatch(state, free) ?? returnedMatch(state, trusted, now) ?? freshMatch(state, trusted)
}

interface Match {
  readonly index: number
  readonly agent: SwarmAgentState
}

function freeAgents(state: SwarmState, now: number): SwarmAgentState[] {
  const free: SwarmAgentState[] = []
  for (const agent of state.agents.values()) {
    if (agent.isPresent && agent.inUse < agent.slots && agent.backoffUntil <= now) free.push(agent)
  }
  return free
}

/** Leaves out agents of nodes that have just missed heartbeats, while agents of others exist, free or busy. */
function preferred(state: SwarmState, agents: readonly SwarmAgentState[], now: number): readonly SwarmAgentState[] {
  const isResponsive = ({ host }: SwarmAgentState): boolean => host.silentUntil <= now
  for (const agent of state.agents.values())
    if (agent.isPresent && agent.slots > 0 && isResponsive(agent)) return agents.filter(isResponsive)
  return agents
}

/** Most free slots first, then the longest time since the last lease, then by address. */
function best(agents: readonly SwarmAgentState[], fits: (agent: SwarmAgentState) => boolean): SwarmAgentState | null {
  let chosen: SwarmAgentState | null = null
  for (const agent of agents) if (fits(agent) && (chosen === null || isBefore(agent, chosen))) chosen = agent
  return chosen
}

function isBefore(a: SwarmAgentState, b: SwarmAgentState): boolean {
  const more = freeSlots(a) - freeSlots(b)
  if (more !== 0) return more > 0
  return a.lastLease === b.lastLease ? a.address < b.address : a.lastLease < b.lastLease
}

function freeSlots({ slots, inUse, host }: SwarmAgentState): number {
  return Math.min(slots - inUse, host.allowed - host.inUse)
}

function pinnedMatch(state: SwarmState, free: readonly SwarmAgentState[]): Match | null {
  const agent = best(free, (one) => one.pinned.size > 0 && pinnedOf(state, one) !== null)
  const index = agent === null ? null : pinnedOf(state, agent)
  return agent === null || index === null ? null : { index, agent }
}

/** The first item that only this agent may do. */
function pinnedOf({ items }: SwarmState, { pinned, needs }: SwarmAgentState): number | null {
  for (const index of pinned) if (needs.has(items[index]?.need ?? -1)) return index
  return null
}

function returnedMatch(state: SwarmState, free: readonly SwarmAgentState[], now: number): Match | null {
  const needs = new Set(free.flatMap((agent) => [...agent.needs.keys()]))
  let looked = 0
  for (const [index, anyoneFrom] of state.returned) {
    const item = state.items[index]
    if (item === undefined || !needs.has(item.need) || !isDoable(state, item)) continue
    if (++looked > MAX_LOOKED_AT) return null
    const able = free.filter((agent) => agent.needs.has(item.need))
    const agent = agentFor(state, item, { free: able, isUrgent: anyoneFrom <= now })
    if (agent !== null) return { index, agent }
  }
  return null
}

/** One that has not tried the item; while such a one is only busy the item waits for it, but not for ever. */
function agentFor(
  state: SwarmState,
  item: ItemState,
  { free, isUrgent }: { free: readonly SwarmAgentState[]; isUrgent: boolean }
): SwarmAgentState | null {
  // An agent that sent only heartbeats had it: agents with results come first, also one that has lost it before.
  const proven =
    item.takeovers === 0 ? [] : free.filter(({ address, host }) => host.isProven && !item.barred.includes(address))
  if (proven.length > 0) return best(proven, (agent) => !item.tried.includes(agent.address)) ?? best(proven, () => true)
  const untried = best(free, (agent) => !item.tried.includes(agent.address) && !item.barred.includes(agent.address))
  if (untried !== null) return untried
  if (!isUrgent && isAnyUntried(state, item)) return null
  const may = (agent: SwarmAgentState): boolean => !item.barred.includes(agent.address)
  return best(free, (agent) => may(agent) && agent.address !== item.agent) ?? best(free, may)
}

/** False once agents are barred from the item and no other one that could do it is there. */
export function isDoable(state: SwarmState, item: ItemState): boolean {
  if (item.barred.length === 0) return true
  if (item.pinnedTo !== null) return !item.barred.includes(item.pinnedTo)
  return isAnyThere(state, item, item.barred)
}

function isAnyUntried(state: SwarmState, item: ItemState): boolean {
  return isAnyThere(state, item, [...item.tried, ...item.barred])
}

/** Is an agent there that could do the item and is none of these? */
export function isAnyThere(state: SwarmState, { need }: ItemState, but: readonly string[]): boolean {
  for (const agent of state.agents.values()) {
    if (agent.isPresent && agent.slots > 0 && agent.needs.has(need) && !but.includes(agent.address)) return true
  }
  return false
}

function freshMatch(state: SwarmState, free: readonly SwarmAgentState[]): Match | null {
  for (const [need, queue] of state.fresh) {
    while (isOver(state, queue.items[queue.next])) queue.next++
    const index = queue.items[queue.next]
    const agent = index === undefined ? null : best(free, (one) => one.needs.has(need))
    if (index !== undefined && agent !== null) return { index, agent }
  }
  return null
}

/** Has a fresh item got its outcome meanwhile? */
function isOver({ items }: SwarmState, index: number | undefined): boolean {
  return index !== undefined && items[index]?.status !== 'waiting'
}

/** Bars the agent of an item from its siblings, where no agent may do two. */
export function barSiblings({ items }: SwarmState, index: number): void {
  const { siblings = null, agent = '' } = items[index] ?? {}
  for (const one of siblings ?? []) if (one !== index) items[one]?.barred.push(agent)
}

function lease(
  state: SwarmState,
  { index, agent }: Match,
  { now, effects }: { now: number; effects: SwarmEffect[] }
): void {
  const item = state.items[index]
  if (item === undefined) return
  const queue = state.fresh.get(item.need)
  if (queue?.items[queue.next] === index) queue.next++
  state.returned.delete(index)
  agent.pinned.delete(index)
  item.status = 'leased'
  item.attempt = Math.max(item.attempt, state.parts.numberedFrom ?? 0) + 1
  item.agent = agent.address
  item.isRepeatable = agent.needs.get(item.need) ?? true
  barSiblings(state, index)
  item.leasedAt = now
  item.givenAt = now
  agent.inUse++
  agent.host.inUse++
  agent.lastLease = ++state.leaseCount
  state.leases.set(index, now)
  effects.push({ type: 'lease', index, agent: agent.address, attempt: item.attempt })
}

/** When the first agent that rests now, or whose node is silent, may get a lease again; Infinity when there is none. */
export function restEnds(state: SwarmState, now: number): number {
  let at = Number.POSITIVE_INFINITY
  for (const { isPresent, backoffUntil, host } of state.agents.values()) {
    for (const end of [backoffUntil, host.silentUntil]) if (isPresent && end > now) at = Math.min(at, end)
  }
  return at
}

/** When the next returned item stops waiting for an agent that has not tried it; Infinity when none waits so. */
export function nextUrgent(state: SwarmState, now: number): number {
  let looked = 0
  for (const anyoneFrom of state.returned.values()) {
    if (anyoneFrom > now) return anyoneFrom
    if (++looked >= MAX_LOOKED_AT) break
  }
  return Number.POSITIVE_INFINITY
}
