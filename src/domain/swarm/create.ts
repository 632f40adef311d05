import type { AgentState, HostState, ItemState, SwarmParts, SwarmState } from './types.js'

/** Leases that a node's agents get before any of them has brought a result. */
const FIRST_LEASES = 4

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
  const none = { attempt: 0, failures: 0, agent: '', leasedAt: 0, isRepeatable: true, tried: [], barred: [], takeovers: 0 }
  return { name, pinnedTo: pinnedTo ?? null, status: 'waiting', ...none }
}

/** A participant by its address; one that was never heard of is absent. */
export function agentOf(state: SwarmState, address: string): AgentState {
  const known = state.agents.get(address)
  if (known !== undefined) return known
  const none = { isPresent: false, isRepeatable: true, slots: 0, inUse: 0, lastLease: 0, backoffUntil: 0, refusals: 0 }
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
