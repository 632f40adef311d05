import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { shown } from '../../kit/text.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { SwarmEvent, SwarmInfo } from '../../ports/swarm-api.js'
import type { SwarmView } from '../swarms/finished-swarm.js'
import type { NodeCore } from '../node.js'

/** Rows of `swarm ls`. A sandboxed caller sees those that were launched from its sandbox. @throws NodeError STORE_DAMAGED */
export async function listSwarms({ swarms }: NodeCore, by: CertifiedPower): Promise<SwarmInfo[]> {
  const all = await swarms.listAll()
  if ((by.sandboxId ?? null) === null) return all
  const views = await Promise.all(all.map(({ id }) => swarms.find(id)))
  return all.filter((_, at) => isSeen(views[at], by))
}

/** A swarm that the caller sees. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED */
export async function findSwarm({ swarms }: NodeCore, id: string, by: CertifiedPower): Promise<SwarmView> {
  const view = await swarms.find(id)
  if (!isSeen(view, by)) throw new NodeError('SWARM_NOT_FOUND', `no swarm "${shown(id)}" on this node`)
  return view
}

function isSeen(view: SwarmView | undefined, { sandboxId = null }: CertifiedPower): boolean {
  return sandboxId === null || view?.head.onBehalfOf?.sandboxId === sandboxId
}

/** Tells of a swarm from its first event to its `done`. */
export function watchSwarm(
  view: SwarmView,
  { push, end }: { readonly push: (event: SwarmEvent) => void; readonly end: () => void }
): Unsubscribe {
  const pass = (event: SwarmEvent): void => {
    push(event)
    if (event.type === 'done') end()
  }
  const { past, stop } = view.follow(pass)
  for (const event of past) pass(event)
  return stop
}
