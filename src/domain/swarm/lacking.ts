import { failure, finishItem } from './finish.js'
import { isAnyThere } from './schedule.js'
import type { SwarmEffect, SwarmState } from './types.js'

/** An item without a capable agent fails after this many lease spans. */
const LACKING_LEASES = 12

/** Waiting items without a capable agent: by their unmet need, or alone when the capable agents are barred. */
function lackingNow(state: SwarmState): Map<string, number[]> {
  const met = new Set<number>()
  for (const agent of state.agents.values())
    if (agent.isPresent && agent.slots > 0) for (const need of agent.needs.keys()) met.add(need)
  const lacking = new Map<string, number[]>()
  const add = (key: string, index: number): void => {
    const known = lacking.get(key)
    if (known === undefined) lacking.set(key, [index])
    else known.push(index)
  }
  for (const [need, { items, next }] of state.fresh) {
    if (met.has(need)) continue
    for (let at = next; at < items.length; at++) {
      const index = items[at]
      if (index !== undefined && state.items[index]?.status === 'waiting') add(`need ${need}`, index)
    }
  }
  for (const index of state.returned.keys()) {
    const item = state.items[index]
    if (item === undefined) continue
    if (!met.has(item.need)) add(`need ${item.need}`, index)
    else if (!isAnyThere(state, item, item.barred)) add(`item ${index}`, index)
  }
  return lacking
}

/** Notes items without a capable agent now, and fails those without one for long: the agents are away or barred. */
export function giveUpLacking(state: SwarmState, { now, effects }: { now: number; effects: SwarmEffect[] }): void {
  const lacking = lackingNow(state)
  for (const key of state.lacking.keys()) if (!lacking.has(key)) state.lacking.delete(key)
  for (const [key, indexes] of lacking) {
    const since = state.lacking.get(key)
    if (since === undefined) state.lacking.set(key, now)
    if (now < (since ?? now) + LACKING_LEASES * state.parts.leaseMs) continue
    state.lacking.delete(key)
    const outcome = failure('NO_CAPABLE_AGENT', 'no agent is left that could do it, and none came')
    for (const index of indexes) finishItem(state, index, { outcome, now, effects })
  }
}

/** When the next is given up; Infinity when there is none. */
export function nextGivenUp({ lacking, parts }: SwarmState): number {
  let at = Number.POSITIVE_INFINITY
  for (const since of lacking.values()) at = Math.min(at, since + LACKING_LEASES * parts.leaseMs)
  return at
}
