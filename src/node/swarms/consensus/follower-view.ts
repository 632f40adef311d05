import type { Clock } from '../../../kit/clock.js'
import type { Directory } from '../../cards/directory.js'
import type { SwarmEnd, SwarmHead, SwarmItem } from '../store.js'
import type { SwarmCourse } from '../event-log.js'
import { machineOf } from '../restore.js'
import { sessionOf } from '../session.js'
import type { SwarmSession } from '../session.js'
import { SwarmStages } from '../stages.js'

/** What is known of a swarm that this node does not coordinate. */
export interface FollowedView {
  readonly head: SwarmHead
  readonly course: SwarmCourse
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
}

/** What looking at it needs. */
export interface FollowedViewParts {
  readonly clock: Clock
  readonly directory: Pick<Directory, 'namer'>
  readonly limits: { readonly leaseMs: number }
}

/** Where its sub-tasks stand, by the outcomes that are known. */
export function stagesOf({ head, course }: Pick<FollowedView, 'head' | 'course'>): SwarmStages {
  const stages = new SwarmStages(head)
  stages.begin([...course.rows.values()])
  return stages
}

/** Tells where the sub-tasks of a swarm stand while another node coordinates it, by the outcomes that are known here. */
export class FollowedStages {
  #known = -1

  /** Looks whether more outcomes are known. */
  tell({ head, course }: Pick<FollowedView, 'head' | 'course'>): void {
    const { rows } = course
    if (rows.size === this.#known) return
    this.#known = rows.size
    const stages = new SwarmStages(head)
    if (stages.isPlain) return
    stages.begin([...rows.values()])
    for (const { id, status, reason } of stages.info()) if (status !== 'waiting') course.tell({ type: 'stage', stage: id, status, reason })
  }
}

/** Where it stands, by the outcomes that are known. */
export function standingOf({ clock, directory }: FollowedViewParts, view: FollowedView): Omit<SwarmEnd, 'status' | 'error'> {
  const namer = directory.namer()
  return {
    counts: view.course.counts(view.head.itemCount),
    durationMs: Math.max(0, Math.round(clock.now() - view.head.createdAt)),
    participants: holdersOf(view).map((one) => namer(one)),
    leftOut: view.head.leftOut,
    stages: stagesOf(view).info()
  }
}

/** The same in the words of the specification. */
export function followedSession({ clock, limits }: FollowedViewParts, view: FollowedView, end: SwarmEnd | null): SwarmSession {
  const { head, items, course } = view
  const { id, request, capabilities, createdAt } = head
  const { rows } = course
  return sessionOf({
    id,
    goal: request.goal,
    capabilities,
    names: items.map(({ name }) => name),
    state: machineOf({ head, items, past: { rows: [...rows.values()], leases: [] } }, clock, limits.leaseMs),
    end: end?.status ?? null,
    isRecruiting: rows.size === 0,
    participants: new Set(holdersOf(view)),
    rows,
    createdAt
  })
}

function holdersOf({ course }: Pick<FollowedView, 'course'>): string[] {
  return [...new Set([...course.rows.values()].flatMap(({ holder }) => (holder === '' ? [] : [holder])))]
}
