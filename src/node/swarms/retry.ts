import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { SwarmRetry } from '../../ports/swarm-api.js'
import type { Directory } from '../cards/directory.js'
import type { SwarmPlan } from './launcher.js'
import type { SwarmHead, SwarmRow, SwarmStore } from './store.js'

/** Dependencies of {@link retryRequest}. */
export interface RetryDeps {
  readonly swarmStore: Pick<SwarmStore, 'get' | 'results' | 'input'>
  readonly directory: Pick<Directory, 'ref'>
}

/** Indexes of items with inputs that stay after the end: failed and unknown ones of a map, at its launcher. */
export function retryable(
  { request, taskId }: Pick<SwarmHead, 'request' | 'taskId'>,
  rows: Iterable<SwarmRow>
): ReadonlySet<number> {
  if (request.strategy !== 'map' || taskId === '') return new Set()
  return new Set(
    [...rows].filter(({ row }) => row.status === 'failed' || row.status === 'unknown').map((one) => one.index)
  )
}

/**
 * The request that tries items of an ended swarm again, with their inputs. Default: the failed ones.
 * @throws NodeError CONFLICT while it runs, without such an item, or at another node than its launcher; USAGE for
 * another strategy than `map`; STORE_DAMAGED
 */
export async function retryRequest(
  { swarmStore: store, directory }: RetryDeps,
  id: string,
  { failed, unknown = false }: Omit<SwarmRetry, 'id'>
): Promise<SwarmPlan> {
  const head = await store.get(id)
  if (head === null || head.end === null)
    throw new NodeError('CONFLICT', `swarm ${id} has not ended`, { next: [`a2a-node swarm watch ${id}`] })
  const { strategy } = head.request
  if (strategy !== 'map')
    throw new NodeError('USAGE', `only items of the strategy map are tried again; swarm ${id} has ${strategy}`, {
      next: [`a2a-node swarm results ${id}`]
    })
  const rows = await store.results(head)
  const wanted = { failed: failed ?? !unknown, unknown }
  const chosen = rows.filter(({ row: { status } }) => (status === 'failed' || status === 'unknown') && wanted[status])
  if (chosen.length === 0) throw noItem(head, rows, wanted)
  const items = await Promise.all(
    chosen.map(async ({ index, row }) => ({ item: row.item, input: await store.input(id, index) }))
  )
  if (items.some(({ input }) => input === undefined)) throw notHere(head, directory)
  const { round: _round, ...request } = head.request
  const [, ...furtherCapabilities] = head.capabilities
  return { ...request, furtherCapabilities, items }
}

/** The error at a node that has the results of a swarm, but not its inputs. */
function notHere({ id, voters }: SwarmHead, directory: RetryDeps['directory']): NodeError {
  const [launcher] = voters ?? []
  const name = launcher === undefined ? null : shown(directory.ref(launcher).name, 64)
  const next = name === null ? `a2a-node swarm results ${id}` : `a2a-node swarm retry ${id}   # on ${name}`
  const keeper = name === null ? 'its launcher' : `its launcher ${name}`
  return new NodeError('CONFLICT', `the inputs of swarm ${id} are not here: only ${keeper} keeps them`, {
    next: [next]
  })
}

function noItem(
  { id, itemCount }: SwarmHead,
  rows: readonly SwarmRow[],
  wanted: { failed: boolean; unknown: boolean }
): NodeError {
  const others = rows.filter(({ row }) => row.status === (wanted.failed ? 'unknown' : 'failed')).length
  const isOther = others > 0 && wanted.failed !== wanted.unknown
  const names = wanted.failed ? (wanted.unknown ? 'failed or is unknown' : 'failed') : 'is unknown'
  const more = isOther ? `; ${others} ${wanted.failed ? 'unknown' : 'failed'}` : ''
  const open = itemCount - rows.length
  const canceled = open === 0 ? '' : `; ${open} had no outcome when it was canceled: launch them anew`
  return new NodeError('CONFLICT', `no item of swarm ${id} ${names}${more}${canceled}`, {
    next: [
      ...(isOther ? [`a2a-node swarm retry ${id} --${wanted.failed ? 'unknown' : 'failed'}`] : []),
      `a2a-node swarm results ${id}`
    ]
  })
}
