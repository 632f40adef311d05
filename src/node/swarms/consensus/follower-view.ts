import type { Clock } from '../../../kit/clock.js'
import type { Directory } from '../../cards/directory.js'
import type { SwarmEnd, SwarmHead, SwarmItem } from '../store.js'
import type { SwarmEventLog } from '../event-log.js'
import { restoreState } from '../restore.js'
import { sessionOf } from '../session.js'
import type { SwarmSession } from '../session.js'
import { SwarmStages } from '../stages.js'

/** What is known of a swarm that this node does not coordinate. */
export interface FollowerView {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
}

/** What looking at it needs. */
export interface FollowerViewDeps {
  readonly clock: Clock
  readonly directory: Pick<Directory, 'namer'>
  readonly limits: { readonly leaseMs: number }
}

/** Where its sub-tasks stand, by the outcomes that are known. */
export function stagesOf({ head, eventLog }: Pick<FollowerView, 'head' | 'eventLog'>): SwarmStages {
  const stages = new SwarmStages(head)
  stages.begin([...eventLog.rows.values()])
  return stages
}

/** Tells where the sub-tasks of a swarm stand while another node coordinates it, by the outcomes that are known here. */
export class FollowedStages {
  #known = -1

  /** Looks whether more outcomes are known. */
  tell({ head, eventLog }: Pick<FollowerView, 'head' | 'eventLog'>): void {
    const { rows } = eventLog
    if (rows.size === this.#known) return
    this.#known = rows.size
    const stages = new SwarmStages(head)
    if (stages.isPlain) return
    stages.begin([...rows.values()])
    for (const { id, status, reason } of stages.info())
      if (status !== 'waiting') eventLog.tell({ type: 'stage', stage: id, status, reason })
  }
}

/** Where it stands, by the outcomes that are known. */
export function standingOf({ clock, directory }: FollowerViewDeps, view: FollowerView): Omit<SwarmEnd, 'status' | 'error'> {
  const namer = directory.namer()
  return {
    counts: view.eventLog.counts(view.head.itemCount),
    durationMs: Math.max(0, Math.round(clock.now() - view.head.createdAt)),
    participants: holdersOf(view).map((one) => namer(one)),
    leftOut: view.head.leftOut,
    stages: stagesOf(view).info()
  }
}

/** The same in the words of the specification. */
export function followedSession({ clock, limits }: FollowerViewDeps, view: FollowerView, end: SwarmEnd | null): SwarmSession {
  const { head, items, eventLog } = view
  const { id, request, capabilities, createdAt } = head
  const { rows } = eventLog
  return sessionOf({
    id,
    goal: request.goal,
    capabilities,
    names: items.map(({ name }) => name),
    state: restoreState({ head, items, past: { rows: [...rows.values()], leases: [] } }, clock, limits.leaseMs),
    end: end?.status ?? null,
    isRecruiting: rows.size === 0,
    participants: new Set(holdersOf(view)),
    rows,
    createdAt
  })
}

function holdersOf({ eventLog }: Pick<FollowerView, 'eventLog'>): string[] {
  return [...new Set([...eventLog.rows.values()].flatMap(({ holder }) => (holder === '' ? [] : [holder])))]
}
