import { type GatewayTask, RESTING_STATES } from './task.js'

type Counted = Pick<GatewayTask, 'owner' | 'state' | 'updatedAt' | 'id'>

/**
 * Chooses resting tasks to drop for `count` new ones: each time the oldest of the owner with most tasks. An owner with
 * fewer than `newcomer` loses none. So a heavy owner makes space by its own tasks, and the result may be shorter.
 */
export function letGo<T extends Counted>(tasks: Iterable<T>, count: number, newcomer: string | null): T[] {
  if (count <= 0) return []
  const shares = sharesOf(tasks)
  const gone: T[] = []
  while (gone.length < count) {
    const least = newcomer === null ? 0 : (shares.get(newcomer)?.size ?? 0)
    let largest: Share<T> | null = null
    for (const share of shares.values())
      if (share.resting.length > 0 && share.size >= least && share.size > (largest?.size ?? 0)) largest = share
    const task = largest?.resting.pop()
    if (largest === null || task === undefined) return gone
    largest.size--
    gone.push(task)
  }
  return gone
}

interface Share<T> {
  size: number
  /** The newest first. */
  readonly resting: T[]
}

function sharesOf<T extends Counted>(tasks: Iterable<T>): Map<string, Share<T>> {
  const shares = new Map<string, Share<T>>()
  for (const task of tasks) {
    const share: Share<T> = shares.get(task.owner) ?? { size: 0, resting: [] }
    shares.set(task.owner, share)
    share.size++
    if (RESTING_STATES.has(task.state)) share.resting.push(task)
  }
  for (const { resting } of shares.values()) resting.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1))
  return shares
}
