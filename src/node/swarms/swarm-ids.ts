import type { IdKind } from '../../kit/resolve-id.js'
import type { ItemRun } from './lease-requests.js'

/** Ids of swarms as people type them. */
export const SWARM_IDS: IdKind = {
  one: 'swarm on this node',
  several: 'swarms',
  prefix: 'swarm_',
  code: 'SWARM_NOT_FOUND',
  list: 'a2a-node swarm ls'
}

/** Runs of items of swarms, as heartbeats name them, by swarm. */
export function runsOf(keys: readonly string[]): Map<string, ItemRun[]> {
  const all = new Map<string, ItemRun[]>()
  for (const key of keys) {
    const [, id, index, attempt] = /^(swarm_[^.#]{1,40})\.(\d{1,9})#(\d{1,9})$/.exec(key) ?? []
    if (id === undefined) continue
    const runs = all.get(id) ?? []
    all.set(id, runs)
    runs.push({ index: Number(index), attempt: Number(attempt) })
  }
  return all
}
