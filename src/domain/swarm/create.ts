import type { SwarmAgentState, HostState, ItemSpec, ItemState, SwarmParts, SwarmState } from './types.js'

/** Leases that a node's agents get before any of them has brought a result. */
const FIRST_LEASES = 4

/** A swarm without agents. */
export function createSwarm({ items, ...parts }: SwarmParts, now: number): SwarmState {
  const groups = groupsOf(items)
  const state: SwarmState = {
    createdAt: now,
    parts: { ...parts, maxParallel: Math.max(1, parts.maxParallel) },
    items: items.map((item) => freshItem(item, groups)),
    agents: new Map(),
    hosts: new Map(),
    leases: new Map(),
    returned: new Map(),
    resting: new Map(),
    fresh: new Map(),
    absent: new Map(),
    lacking: new Map(),
    leaseCount: 0,
    workedMs: 0,
    completed: 0,
    failed: 0,
    skipped: 0,
    status: 'running'
  }
  for (const [index, item] of state.items.entries()) if (item.status === 'waiting') offerItem(state, index, now)
  return state
}

/** Lets an item that has never been leased be given out. */
export function offerItem(state: SwarmState, index: number, now: number): void {
  const item = state.items[index]
  if (item === undefined) return
  if (item.pinnedTo !== null) agentOf(state, item.pinnedTo).pinned.add(index)
  // Which agents may have it depends on its siblings: it is looked at each time.
  else if (item.siblings !== null) state.returned.set(index, now)
  else {
    const queue = state.fresh.get(item.need) ?? { items: [], next: 0 }
    state.fresh.set(item.need, queue)
    queue.items.push(index)
  }
}

function groupsOf(items: SwarmParts['items']): Map<number, number[]> {
  const groups = new Map<number, number[]>()
  for (const [index, { group }] of items.entries()) {
    if (group !== undefined) groups.set(group, [...(groups.get(group) ?? []), index])
  }
  return groups
}

function freshItem(
  { name, pinnedTo, need = 0, isBlocked, group }: ItemSpec,
  groups: ReadonlyMap<number, readonly number[]>
): ItemState {
  const none = {
    attempt: 0,
    failures: 0,
    agent: '',
    leasedAt: 0,
    givenAt: null,
    isRepeatable: true,
    tried: [],
    barred: [],
    takeovers: 0
  }
  const siblings = group === undefined ? null : (groups.get(group) ?? null)
  return {
    name,
    pinnedTo: pinnedTo ?? null,
    need,
    siblings,
    status: isBlocked === true ? 'blocked' : 'waiting',
    ...none
  }
}

/** A participant by its address; an unknown one is added as absent. */
export function agentOf(state: SwarmState, address: string): SwarmAgentState {
  const known = state.agents.get(address)
  if (known !== undefined) return known
  const none = { isPresent: false, slots: 0, inUse: 0, lastLease: 0, backoffUntil: 0, refusals: 0 }
  const agent = {
    address,
    host: hostOf(state, address),
    ...none,
    needs: new Map<number, boolean>(),
    pinned: new Set<number>()
  }
  state.agents.set(address, agent)
  return agent
}

function hostOf(state: SwarmState, address: string): HostState {
  const name = address.slice(address.lastIndexOf('@') + 1)
  const host = state.hosts.get(name) ?? { allowed: FIRST_LEASES, inUse: 0, isProven: false, silentUntil: 0 }
  state.hosts.set(name, host)
  return host
}
