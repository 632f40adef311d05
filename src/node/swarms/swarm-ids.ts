import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { isShortId } from '../../domain/routing/names.js'
import type { ItemRun } from './lease-requests.js'

/** The one id that is meant. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
export function resolveSwarmId(id: string, ids: readonly string[]): string {
  if (ids.includes(id)) return id
  const hits = ids.filter((one) => id.length >= 4 && one.startsWith(id))
  const [hit] = hits
  if (hits.length > 1)
    throw new NodeError('AMBIGUOUS_NAME', `"${shown(id)}" may mean several swarms`, {
      data: { candidates: hits },
      next: ['a2a-node swarm ls']
    })
  if (hit === undefined || isShortId(id, 'swarm')) throw new NodeError('SWARM_NOT_FOUND', `no swarm "${shown(id)}" on this node`)
  return hit
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
