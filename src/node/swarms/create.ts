import type { Clock } from '../../kit/clock.js'
import type { IdSource } from '../../kit/ids.js'
import type { StageWants } from '../../domain/swarm/expand.js'
import type { LeftOut } from '../../ports/swarm-api.js'
import type { Directory } from '../cards/directory.js'
import type { SwarmHead, SwarmItem } from './store.js'
import type { SwarmPast } from './restore.js'
import type { Leadership } from './consensus/leadership.js'
import type { Prepared } from './prepare.js'

/** Dependencies of a new head. */
export interface HeadDeps {
  readonly ids: IdSource
  readonly clock: Clock
  readonly directory: Directory
  readonly limits: { readonly deadlineMs: number; readonly defaultTtlMs: number }
}

/** The launch of a swarm. */
export type Launching = Pick<SwarmHead, 'request' | 'capabilities' | 'onBehalfOf' | 'key'>

/** The data of a new or resumed swarm. */
export interface SwarmLaunch {
  readonly head: SwarmHead
  /** `pinnedTo`: address of the only agent that may do the item; its name is then the same. */
  readonly items: readonly SwarmItem[]
  /** Addresses of eligible agents, by need. */
  readonly allowed: readonly (readonly string[])[]
  /** null for a new swarm. */
  readonly past: SwarmPast | null
  /** In a swarm with several participants: the term of this node as coordinator. */
  readonly term?: Leadership
}

/** The head of a swarm that is about to begin, for the ledger. */
export function newHead(
  { ids, clock, directory, limits }: HeadDeps,
  { request, capabilities, onBehalfOf, key }: Launching,
  { stages, items, wants, found, output }: Prepared
): SwarmHead {
  const { items: _items, input: _input, plan: _plan, idempotencyKey: _key, ...rest } = request
  const namer = directory.namer()
  const createdAt = clock.now()
  const deadline = createdAt + (request.deadlineMs ?? limits.deadlineMs)
  const named = (left: LeftOut, { capability }: StageWants): LeftOut => {
    const one = { ...left, agent: namer(left.agent) }
    return wants.length === 1 ? one : { ...one, capability }
  }
  return {
    id: ids.next('swarm'),
    taskId: ids.next('task'),
    request: rest,
    capabilities,
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    stages,
    ...(output === undefined ? {} : { output }),
    agents: [...new Set(found.flatMap(({ allowed }) => allowed))].map((one) => namer(one)),
    leftOut: wants.flatMap((one, need) => (found[need]?.leftOut ?? []).map((left) => named(left, one))),
    itemCount: items.length,
    createdAt,
    deadline,
    expiresAt: deadline + limits.defaultTtlMs,
    key,
    end: null
  }
}
