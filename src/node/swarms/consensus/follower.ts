import type { Clock } from '../../../kit/clock.js'
import type { Directory } from '../../cards/directory.js'
import type { SwarmEnd, SwarmHead, SwarmItem } from '../store.js'
import type { SwarmEventLog } from '../event-log.js'
import { restoreState } from '../restore.js'
import { sessionOf, type SwarmSession } from '../session.js'
import { SwarmStages } from '../stages.js'
import type { NodeId } from '../../../kit/ids.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { CommittedResults } from './committed-results.js'
import type { CancelRequest } from './cancel-request.js'
import type { ContentName } from './content-transfer.js'
import type { ParticipantDeps } from './participant.js'
import type { SwarmInfo, SwarmResults, SwarmStatus } from '../../../ports/swarm-api.js'
import { infoOf } from '../finished-swarm.js'

/** The state of a swarm that another node coordinates. */
interface FollowerView {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
}

/** Dependencies of the reports at a follower. */
interface FollowerDeps {
  readonly clock: Clock
  readonly directory: Pick<Directory, 'namer' | 'ref'>
  readonly limits: { readonly leaseMs: number }
}

/** Reports the state of a swarm that another node coordinates, by the outcomes known here. */
export class FollowerReport {
  readonly #deps: FollowerDeps
  readonly #view: FollowerView
  /** Count of outcomes at the last report of the sub-tasks. */
  #known = -1

  constructor(deps: FollowerDeps, view: FollowerView) {
    this.#deps = deps
    this.#view = view
  }

  /** The full state; `end` is null before the swarm has ended. */
  info(status: SwarmStatus, end: SwarmEnd | null): SwarmInfo {
    return infoOf(this.#view.head, end ?? { ...this.standing(), status, error: null }, this.#deps.directory)
  }

  /** The accepted results so far; once it has ended, also the combined ones. */
  results(status: SwarmStatus, isOver: boolean): SwarmResults {
    const together = isOver ? this.#stages().together() : {}
    return { id: this.#view.head.id, status, ...together, results: this.#view.eventLog.results() }
  }

  /** The state without its status. */
  standing(): Omit<SwarmEnd, 'status' | 'error'> {
    const { clock, directory } = this.#deps
    const { head, eventLog } = this.#view
    const namer = directory.namer()
    return {
      counts: eventLog.counts(head.itemCount),
      durationMs: Math.max(0, Math.round(clock.now() - head.createdAt)),
      participants: this.#holders().map((one) => namer(one)),
      leftOut: head.leftOut,
      stages: this.#stages().info()
    }
  }

  /** The state in the terms of the specification. */
  session(end: SwarmEnd | null): SwarmSession {
    const { clock, limits } = this.#deps
    const { head, items, eventLog } = this.#view
    const { rows } = eventLog
    return sessionOf({
      head,
      names: items.map(({ name }) => name),
      state: restoreState({ head, items, past: { rows: [...rows.values()], leases: [] } }, clock, limits.leaseMs),
      end: end?.status ?? null,
      isRecruiting: rows.size === 0,
      participants: new Set(this.#holders()),
      rows
    })
  }

  /** Reports the sub-tasks once more outcomes are known. */
  tell(): void {
    const { eventLog } = this.#view
    if (eventLog.rows.size === this.#known) return
    this.#known = eventLog.rows.size
    const stages = this.#stages()
    if (stages.isPlain) return
    for (const { id, status, reason } of stages.info())
      if (status !== 'waiting') eventLog.tell({ type: 'stage', stage: id, status, reason })
  }

  /** Reports the end. */
  tellEnd({ status, counts, durationMs, error }: SwarmEnd): void {
    const { head, eventLog } = this.#view
    this.tell()
    eventLog.tell({ type: 'done', id: head.id, status, counts, durationMs, error, ...this.#stages().together() })
  }

  #stages(): SwarmStages {
    const stages = new SwarmStages(this.#view.head)
    stages.begin([...this.#view.eventLog.rows.values()])
    return stages
  }

  #holders(): string[] {
    return [...new Set([...this.#view.eventLog.rows.values()].flatMap(({ holder }) => (holder === '' ? [] : [holder])))]
  }
}

/** Milliseconds between a follower's questions for accepted records. */
const FOLLOW_MS = 1000

/** The followed swarm. */
interface Followed {
  readonly swarm: string
  readonly voters: readonly NodeId[]
  readonly accepted: CommittedResults
  readonly cancelRequest: Pick<CancelRequest, 'isOpen'>
}

/** Exchanges accepted records and cancel requests between the participants of one swarm. */
export class FollowerSync {
  readonly #deps: Pick<ParticipantDeps, 'clock' | 'self' | 'tell'>
  readonly #followed: Followed
  readonly #others: readonly NodeId[]
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(deps: Pick<ParticipantDeps, 'clock' | 'self' | 'tell'>, followed: Followed) {
    this.#deps = deps
    this.#followed = followed
    this.#others = followed.voters.filter((node) => node !== deps.self)
  }

  /** Time passed, and this node does not coordinate: it asks the coordinator, or all participants. */
  tick(coordinator: NodeId | null): void {
    if (this.#deps.clock.monotonic() - this.#askedAt >= FOLLOW_MS) this.ask(coordinator)
  }

  /** Asks at once. */
  ask(coordinator: NodeId | null): void {
    const { clock, self, tell } = this.#deps
    const { swarm, accepted, cancelRequest } = this.#followed
    this.#askedAt = clock.monotonic()
    const { isWhole, size } = accepted.records
    // With the end, outcomes are missing here: a node with as many records may have others.
    const have = isWhole && !accepted.hasEnd ? size : 0
    for (const node of coordinator === null || coordinator === self ? this.#others : [coordinator]) {
      tell(node, { name: 'swarm', body: { kind: 'follow', swarm, have, from: 0 } })
      if (cancelRequest.isOpen) tell(node, { name: 'swarm', body: { kind: 'cancel', swarm } })
    }
    accepted.take([], self)
  }

  /** Answers a follower. A follower that knows all records only learns that there is a coordinator, and its epoch. */
  answer(from: NodeId, { have, from: index }: ParticipantMessageOf<'follow'>): void {
    const { swarm, accepted } = this.#followed
    const { records } = accepted
    const page = records.page(swarm, index)
    this.#deps.tell(from, { name: 'swarm', body: have < records.size ? page : { ...page, items: [], next: null } })
  }

  /** A participant reports accepted records. */
  onMessage(from: NodeId, { epoch, total, items, next }: ParticipantMessageOf<'accepted'>): void {
    const { swarm, accepted: known } = this.#followed
    known.take(known.learn(items, { total, epoch }), from)
    if (next !== null)
      this.#deps.tell(from, { name: 'swarm', body: { kind: 'follow', swarm, have: known.records.size, from: next } })
  }

  /** Reports newly accepted records to all others. */
  announce(epoch: number, accepted: readonly ContentName[]): void {
    const { swarm, accepted: known } = this.#followed
    const items = known.learn(accepted, { total: 0, epoch })
    if (items.length === 0) return
    const body = { kind: 'accepted', swarm, epoch, total: known.records.size, items, next: null } as const
    for (const node of this.#others) this.#deps.tell(node, { name: 'swarm', body })
  }
}

/** Milliseconds without a coordinator after which a swarm is reported as stalled. */
const STALLED_AFTER_MS = 3000

/** Why a swarm with several participants is stalled. */
export const NO_MAJORITY = 'nobody coordinates it: it goes on when a majority of its participants can reach each other'

/** The same at a node with a majority that could not get the records accepted before. */
export const NO_CONTENTS = `${NO_MAJORITY}, and give each other all that they accepted before`

/** The swarm, and the callback for its status. */
interface LeaderStatusSwarm {
  readonly eventLog: SwarmEventLog
  /** It stalls, or goes on. */
  onStatus(status: 'running' | 'stalled'): void
}

/** The coordinator of one swarm, as known here: reports each change, and the lack of one. */
export class LeaderStatus {
  readonly #deps: FollowerDeps
  readonly #of: LeaderStatusSwarm
  #coordinatedAt: number
  #coordinator: string | null = null
  #isHere = false
  #epoch = 0
  #status: 'running' | 'stalled' = 'running'
  /** The lack as last reported. */
  #lack = ''

  constructor(deps: FollowerDeps, of: LeaderStatusSwarm) {
    this.#deps = deps
    this.#of = of
    this.#coordinatedAt = deps.clock.monotonic()
  }

  /** `stalled`: it has had no coordinator for a while. */
  get status(): 'running' | 'stalled' {
    return this.#status
  }

  /** Name of the coordinator (null when there is none), and the highest epoch. */
  get coordinator(): Pick<NonNullable<SwarmInfo['coordination']>, 'coordinator' | 'epoch'> {
    return { coordinator: this.#coordinator, epoch: this.#epoch }
  }

  /**
   * Updates the status. `lack`: the reason when there is no coordinator. `isHere`: this node coordinates and reports
   * the work itself.
   */
  look(
    { node, epoch, lack }: { readonly node: NodeId | null; readonly epoch: number; readonly lack: string },
    isHere: boolean
  ): void {
    const { clock, directory } = this.#deps
    const { eventLog, onStatus } = this.#of
    const coordinator = node === null ? null : directory.ref(node).name
    if (node !== null) this.#coordinatedAt = clock.monotonic()
    const isOther = epoch !== this.#epoch || (isHere && !this.#isHere)
    if (coordinator !== this.#coordinator || (coordinator !== null && isOther))
      eventLog.tell({ type: 'coordinator', coordinator, epoch, ...(isHere && coordinator !== null ? { isHere } : {}) })
    this.#coordinator = coordinator
    this.#isHere = isHere
    this.#epoch = epoch
    const status = !isHere && clock.monotonic() - this.#coordinatedAt >= STALLED_AFTER_MS ? 'stalled' : 'running'
    if (status === this.#status && (status === 'running' || lack === this.#lack)) return
    const isChange = status !== this.#status
    this.#status = status
    this.#lack = lack
    eventLog.tell({ type: 'status', status, ...(status === 'stalled' ? { reason: lack } : {}) })
    if (isChange) onStatus(status)
  }
}
