import type { NodeId } from '../../../kit/ids.js'
import { encodePayload } from '../../../domain/envelope/codec.js'
import { leaseInEpoch } from '../../../domain/swarm/coordination.js'
import type { LeaseMark } from '../../../domain/swarm/handover.js'
import { RECORDS } from '../../../domain/swarm/record-index.js'
import { CommitQueue } from '../../ledger/commit-queue.js'
import type { CommitQueueDeps, Notification, NotificationQueue } from '../../ledger/commit-queue.js'
import type { SwarmLease } from '../store.js'
import type { ContentName } from './content-transfer.js'
import type { SwarmEventLog } from '../event-log.js'
import type { Participant } from './participant.js'

/** What a term needs. */
export interface LeadershipDeps extends CommitQueueDeps {
  readonly self: NodeId
  readonly participant: Pick<Participant, 'isCoordinating' | 'propose'>
  readonly eventLog: SwarmEventLog
  readonly epoch: number
  /** Items of the swarm. */
  readonly items: number
  /** By index: what was accepted before. */
  readonly accepted: ReadonlySet<number>
}

/** The time in which this node coordinates a swarm of several participants: outcomes are told once a majority has accepted them. */
export class Leadership implements NotificationQueue {
  readonly epoch: number
  readonly eventLog: SwarmEventLog
  readonly #deps: LeadershipDeps
  readonly #accepted: Set<number>
  readonly #waiting = new Map<number, (isAccepted: boolean) => void>()
  readonly #durable: CommitQueue
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

  /** Which attempt people are told that a lease is: one of this coordinator. How often others leased the item nobody here knows. */
  attemptOf(lease: number): number {
    return leaseInEpoch(lease)
  }

  /** Makes it known to a majority that an item which may not be repeated is about to be leased. False: the term is over. */
  async mark({ index, agent, attempt, failures }: SwarmLease): Promise<boolean> {
    const { self: node, items } = this.#deps
    const mark: LeaseMark = { node, agent, attempt, failures }
    return await this.#accept(RECORDS.mark(items, index), encodePayload(mark))
  }

  /** These are accepted. */
  onAccepted(names: readonly ContentName[]): void {
    for (const { index } of names) {
      this.#accepted.add(index)
      this.#waiting.get(index)?.(true)
      this.#waiting.delete(index)
    }
  }

  add({ record, notify }: Notification): void {
    const accepted = record === undefined ? Promise.resolve(true) : this.#accept(record.index, record.content)
    this.#flushed = this.#flushed.then(async () => {
      if ((await accepted) && !this.#isOver) notify()
    })
  }

  addLast(make: () => Notification): void {
    this.#flushed = this.#flushed.then(async () => {
      if (this.#isOver) return
      const notification = make()
      const { record } = notification
      if (record !== undefined && !(await this.#accept(record.index, record.content))) return
      this.#durable.add(notification)
      await this.#durable.flushed()
    })
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
