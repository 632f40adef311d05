import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { encodePayload } from '../../../domain/envelope/codec.js'
import { leaseInEpoch } from '../../../domain/swarm/coordination.js'
import type { LeaseMark } from '../../../domain/swarm/handover.js'
import { RECORDS } from '../../../domain/swarm/record-index.js'
import {
  CommitQueue,
  type CommitQueueDeps,
  type Notification,
  type NotificationQueue
} from '../../ledger/commit-queue.js'
import type { Coordinator } from '../coordinator.js'
import type { SwarmLaunch } from '../create.js'
import type { Guests } from '../../policy/guests.js'
import type { Eligibility } from '../eligibility.js'
import type { SwarmObserver } from '../finished-swarm.js'
import { leasesBefore, type SwarmPast } from '../restore.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmItem, SwarmLease, SwarmStore } from '../store.js'
import type { CancelRequest } from './cancel-request.js'
import type { CommittedResults } from './committed-results.js'
import type { ContentName } from './content-transfer.js'
import type { SwarmEventLog } from '../event-log.js'
import type { Participant } from './participant.js'

/** Dependencies of a leadership. */
export interface LeadershipDeps extends CommitQueueDeps {
  readonly self: NodeId
  readonly participant: Pick<Participant, 'isCoordinating' | 'propose' | 'hasStored'>
  readonly eventLog: SwarmEventLog
  readonly epoch: number
  /** Item count of the swarm. */
  readonly items: number
  /** Indexes of the records accepted before. */
  readonly accepted: ReadonlySet<number>
}

/**
 * One term of this node as coordinator of a swarm with several participants: reports outcomes once a majority accepted
 * them.
 */
export class Leadership implements NotificationQueue {
  readonly epoch: number
  readonly eventLog: SwarmEventLog
  readonly #deps: LeadershipDeps
  readonly #accepted: Set<number>
  readonly #waiting = new Map<number, (isAccepted: boolean) => void>()
  readonly #durable: CommitQueue
  /** Changes of reported outcomes, by index, that were not durable here when a majority had accepted them. */
  readonly #unstored = new Map<number, readonly LedgerChange[]>()
  #flushed: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(deps: LeadershipDeps) {
    this.#deps = deps
    this.epoch = deps.epoch
    this.eventLog = deps.eventLog
    this.#accepted = new Set(deps.accepted)
    this.#durable = new CommitQueue(deps)
  }

  /** May items be leased, and outcomes accepted, now? */
  get isOn(): boolean {
    return !this.#isOver && this.#deps.participant.isCoordinating
  }

  /**
   * The attempt number of a lease that people see: it counts this coordinator's leases, since earlier ones are unknown
   * here.
   */
  attemptOf(lease: number): number {
    return leaseInEpoch(lease)
  }

  /**
   * Proposes the mark of an unrepeatable item before its lease. True: a majority has recorded it; false: the term is
   * over.
   */
  async mark({ index, agent, attempt, failures }: SwarmLease): Promise<boolean> {
    const { self: node, items } = this.#deps
    const mark: LeaseMark = { node, agent, attempt, failures }
    return await this.#accept(RECORDS.mark(items, index), encodePayload(mark))
  }

  /** Records are accepted. */
  onAccepted(names: readonly ContentName[]): void {
    for (const { index } of names) {
      this.#accepted.add(index)
      this.#waiting.get(index)?.(true)
      this.#waiting.delete(index)
    }
  }

  add({ changes, record, notify }: Notification): void {
    const accepted = record === undefined ? Promise.resolve(true) : this.#accept(record.index, record.content)
    this.#flushed = this.#flushed.then(async () => {
      if (!(await accepted) || this.#isOver) return
      if (record !== undefined) this.#unstored.set(record.index, changes)
      this.#dropStored()
      notify()
    })
  }

  addLast(make: () => Notification): void {
    this.#flushed = this.#flushed.then(async () => {
      if (this.#isOver) return
      const notification = make()
      const { record } = notification
      if (record !== undefined && !(await this.#accept(record.index, record.content))) return
      // The participant ends with the swarm, with the votes that it has not stored yet.
      this.#dropStored()
      const changes = [...[...this.#unstored.values()].flat(), ...notification.changes]
      this.#durable.add({ ...notification, changes })
      await this.#durable.flushed()
    })
  }

  /** Votes are stored in the order of the proposals, so nothing is sought behind the first that is not. */
  #dropStored(): void {
    for (const index of this.#unstored.keys()) {
      if (!this.#deps.participant.hasStored(index)) return
      this.#unstored.delete(index)
    }
  }

  flushed(): Promise<void> {
    return this.#flushed
  }

  async stop(): Promise<void> {
    this.#isOver = true
    for (const end of this.#waiting.values()) end(false)
    this.#waiting.clear()
    await this.#durable.stop()
    await this.#flushed
  }

  #accept(index: number, content: Uint8Array): Promise<boolean> {
    if (this.#accepted.has(index)) return Promise.resolve(true)
    if (!this.isOn) return Promise.resolve(false)
    return new Promise((resolve) => {
      const before = this.#waiting.get(index)
      this.#waiting.set(index, (isAccepted) => {
        before?.(isAccepted)
        resolve(isAccepted)
      })
      if (before === undefined) this.#deps.participant.propose(index, content)
    })
  }
}

/** Dependencies of the coordinator role. */
export interface CoordinatorRoleDeps extends CommitQueueDeps {
  readonly self: NodeId
  readonly swarmStore: Pick<SwarmStore, 'unfinished'>
  readonly eligibility: Pick<Eligibility, 'of'>
  readonly guests: Pick<Guests, 'has'>
  /** Starts to coordinate a swarm. */
  createCoordinator(launch: SwarmLaunch, observer: SwarmObserver<Coordinator>): Coordinator
}

/** The swarm that this node may coordinate, and its callbacks. */
export interface CoordinatorRoleOf {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  readonly accepted: CommittedResults
  readonly cancelRequest: Pick<CancelRequest, 'open'>
  /** Has the swarm ended? */
  isOver(): boolean
  /** This node starts or stops coordinating. */
  onChange(): void
  onStatus(status: 'running' | 'stalled'): void
  onEnd(end: SwarmEnd | null): void
}

/** This node as the coordinator of one swarm with several participants, as long as a majority lets it. */
export class CoordinatorRole {
  readonly #deps: CoordinatorRoleDeps
  readonly #swarm: CoordinatorRoleOf
  #run: Coordinator | null = null
  #term: Leadership | null = null
  /** Counts terms: work of one term ends with it. */
  #generation = 0

  constructor(deps: CoordinatorRoleDeps, swarm: CoordinatorRoleOf) {
    this.#deps = deps
    this.#swarm = swarm
  }

  /** null while this node does not coordinate. */
  get run(): Coordinator | null {
    return this.#run
  }

  /** Does this node coordinate it? */
  get isOn(): boolean {
    return this.#term?.isOn === true
  }

  /** This node coordinates: it continues from the accepted records. */
  async begin(participant: Participant, epoch: number, names: readonly ContentName[]): Promise<void> {
    const { swarmStore, telemetry, self } = this.#deps
    const { head, accepted } = this.#swarm
    const generation = ++this.#generation
    const isOver = (): boolean => generation !== this.#generation || this.#swarm.isOver()
    accepted.learn(names, { total: 0, epoch })
    try {
      const { rows, marks } = await accepted.read(names)
      if (isOver()) return
      if (accepted.hasEnd) return accepted.take(names, self)
      const { items, leases } = await swarmStore.unfinished(head.id)
      if (isOver()) return
      for (const row of rows) this.#swarm.eventLog.settled(row)
      const known = new Set(names.map(({ index }) => index))
      const { eventLog } = this.#swarm
      this.#term = new Leadership({
        ...this.#deps,
        participant,
        eventLog,
        epoch,
        items: head.itemCount,
        accepted: known
      })
      telemetry.log('info', 'this node coordinates a swarm', { swarm: head.id, epoch, accepted: rows.length })
      this.#swarm.onChange()
      const past = { rows, leases: leasesBefore(leases, marks, self) }
      this.#run = this.#coordinator(items, past, this.#term)
      const request = this.#swarm.cancelRequest.open
      if (request !== null) void this.cancel(request)
    } catch (error) {
      telemetry.log('error', 'a swarm could not be read', { swarm: head.id, reason: messageOf(error) })
      if (!isOver()) participant.retreat()
    }
  }

  #coordinator(items: readonly SwarmItem[], past: SwarmPast, term: Leadership): Coordinator {
    const { head, onStatus, onEnd } = this.#swarm
    const observer: SwarmObserver<Coordinator> = {
      onEnd: (run) => onEnd(run.end),
      onStatus: (_run, status) => onStatus(status)
    }
    const isNew = past.rows.length + past.leases.length === 0
    const allowed = this.#deps.eligibility.of(head).map((one) => one.allowed)
    return this.#deps.createCoordinator({ head, items, allowed, past: isNew ? null : past, term }, observer)
  }

  /** Records are accepted. */
  onAccepted(names: readonly ContentName[]): void {
    this.#term?.onAccepted(names)
  }

  /**
   * May a node, by default this one, cancel the swarm? A guest of its launcher may not. The log says so, as the
   * launcher may be gone.
   */
  mayCancel(node?: NodeId): boolean {
    const [launcher] = this.#swarm.head.voters ?? []
    return !this.#deps.guests.has(node, launcher)
  }

  /** Cancels the swarm, if this node coordinates it. Resolves when that is durable. */
  async cancel(by: Cancellation): Promise<void> {
    if (this.isOn) await this.#run?.cancel(by)
  }

  /** Stops coordinating: the next coordinator continues from the accepted records. */
  leave(): void {
    this.#generation++
    const [run, term] = [this.#run, this.#term]
    this.#run = null
    this.#term = null
    void run?.stop()
    void (term?.stop() ?? Promise.resolve()).then(() => {
      if (!this.#swarm.isOver()) this.#swarm.accepted.takeUntold(this.#deps.self)
    })
    if (run !== null)
      this.#deps.telemetry.log('info', 'this node coordinates a swarm no more', { swarm: this.#swarm.head.id })
    this.#swarm.onChange()
  }

  /** This node stops. */
  async stop(): Promise<void> {
    this.#generation++
    await this.#run?.stop()
  }
}
