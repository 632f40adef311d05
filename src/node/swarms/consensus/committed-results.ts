import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { decodeEnd, decodeMark, type LeaseMark } from '../../../domain/swarm/handover.js'
import { isMark, RECORDS, recordKind } from '../../../domain/swarm/record-index.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { CommitQueueDeps } from '../../ledger/commit-queue.js'
import { retryable } from '../retry.js'
import type { SwarmStore, SwarmEnd, SwarmHead, SwarmRow } from '../store.js'
import type { ContentName } from './content-transfer.js'
import type { SwarmEventLog } from '../event-log.js'
import type { ContentStore } from './content-store.js'
import type { VoteStore } from './vote-store.js'
import { MAX_RECORDS } from '../../../domain/swarm/coordination-message.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'

/** Dependencies of committed results. */
export interface CommittedResultsDeps extends CommitQueueDeps {
  readonly swarmStore: SwarmStore
  readonly swarmVotes: VoteStore
  readonly limits: { readonly defaultTtlMs: number }
}

/** The followed swarm. */
export interface FollowedSwarm {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  readonly contentStore: Pick<ContentStore, 'content' | 'contents' | 'obtain'>
  /** The end with the facts that this node alone knows. */
  completed(end: SwarmEnd): SwarmEnd
  /** All records and the end are accepted, and durable here. */
  onOver(end: SwarmEnd): void
}

/** The accepted records of a swarm with several participants, as known here: reports them, and ends with the swarm. */
export class CommittedResults {
  /** By index and digest. */
  readonly records: CommittedRecords
  readonly #deps: CommittedResultsDeps
  readonly #swarm: FollowedSwarm
  /** Accepted records without their contents here. */
  readonly #lacking = new Map<number, ContentName>()
  /** Runs one step after the other. */
  #taking: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(deps: CommittedResultsDeps, swarm: FollowedSwarm) {
    this.#deps = deps
    this.#swarm = swarm
    this.records = new CommittedRecords(swarm.head.itemCount)
  }

  /** Is the end accepted? */
  get hasEnd(): boolean {
    return this.records.get(RECORDS.end(this.#swarm.head.itemCount)) !== undefined
  }

  /** Adds accepted records and returns the new ones. Contents of other proposals for them are dropped. */
  learn(names: readonly ContentName[], stated: { readonly total: number; readonly epoch: number }): ContentName[] {
    const fresh = this.records.add(names, stated)
    if (fresh.length > 0) this.#swarm.contentStore.contents.keep((name) => !this.records.isVoid(name))
    return fresh
  }

  /** The swarm has ended: no other record will be accepted. */
  close(): void {
    this.#swarm.contentStore.contents.keep(({ index, digest }) => this.records.get(index) === digest)
  }

  /** Commits accepted and missing records whose contents are here; fetches the other contents. */
  take(names: readonly ContentName[], from: NodeId): void {
    for (const name of names) if (!isMark(this.#swarm.head.itemCount, name.index)) this.#lacking.set(name.index, name)
    if (this.#lacking.size === 0 && !this.hasEnd) return
    this.#taking = this.#taking
      .then(() => this.#takeAll(from))
      .catch((error: unknown) =>
        this.#deps.telemetry.log('warn', 'what was accepted could not be kept', { reason: messageOf(error) })
      )
  }

  /** Takes accepted records that were not reported: the coordinator here had no time for it. */
  takeUntold(self: NodeId): void {
    const { head, eventLog } = this.#swarm
    this.take(
      this.records.names.filter(({ index }) => index < head.itemCount && !eventLog.rows.has(index)),
      self
    )
  }

  /** Resolves when nothing more is taken. Nothing is reported after it. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#taking
  }

  /** The accepted outcomes, and the marks of unrepeatable leased items, by item. @throws NodeError STORE_DAMAGED */
  async read(
    accepted: readonly ContentName[]
  ): Promise<{ readonly rows: SwarmRow[]; readonly marks: Map<number, LeaseMark> }> {
    const rows: SwarmRow[] = []
    const marks = new Map<number, LeaseMark>()
    for (const name of accepted) {
      const kind = recordKind(this.#swarm.head.itemCount, name.index)
      if (kind.type === 'end') continue
      const content = await this.#swarm.contentStore.content(name)
      const row = content === null || kind.type === 'mark' ? null : this.#deps.swarmStore.outcome(content)
      const mark = content === null || kind.type === 'outcome' ? null : decodeMark(content)
      // Without it an item with an outcome would run again.
      if (mark === null && row?.index !== name.index)
        throw new NodeError('STORE_DAMAGED', 'an outcome that was accepted is not there')
      if (row !== null) rows.push(row)
      if (mark !== null) marks.set(kind.item, mark)
    }
    return { rows, marks }
  }

  /** Reads the accepted records of an ended swarm from the ledger. @throws NodeError STORE_DAMAGED */
  async recall(): Promise<void> {
    const { swarmVotes } = this.#deps
    const { id, itemCount } = this.#swarm.head
    const kept = await swarmVotes.outcomes(id)
    const end = await swarmVotes.content(id, RECORDS.end(itemCount), itemCount)
    if (end !== null) kept.set(RECORDS.end(itemCount), end)
    const names = [...kept].map(([index, content]) => ({ index, digest: swarmVotes.digest(content) }))
    this.learn(names, { total: names.length, epoch: 0 })
  }

  async #takeAll(from: NodeId): Promise<void> {
    const taken: { readonly name: ContentName; readonly content: Uint8Array }[] = []
    const changes: LedgerChange[] = []
    for (const name of this.#lacking.values()) {
      const content = await this.#swarm.contentStore.content(name)
      if (content === null) continue
      taken.push({ name, content })
      changes.push(...(await this.#missing(name, content)))
    }
    // Only durable outcomes are reported.
    if (changes.length > 0) await this.#deps.commit(changes)
    for (const { name, content } of taken) {
      if (this.#isOver) return
      this.#lacking.delete(name.index)
      // It is durable now.
      this.#swarm.contentStore.contents.drop(name)
      const row = name.index >= this.#swarm.head.itemCount ? null : this.#deps.swarmStore.outcome(content)
      if (row?.index === name.index) this.#swarm.eventLog.settled(row)
    }
    if (this.#lacking.size > 0) this.#swarm.contentStore.obtain([...this.#lacking.values()], from)
    else await this.#finishIfOver()
  }

  /**
   * The change that stores a content; empty when it is stored. Another outcome of the item is never accepted any more.
   */
  async #missing({ index, digest }: ContentName, content: Uint8Array): Promise<LedgerChange[]> {
    const { swarmVotes } = this.#deps
    const { id, itemCount: items } = this.#swarm.head
    const kept = await swarmVotes.content(id, index, items)
    return kept !== null && swarmVotes.digest(kept) === digest
      ? []
      : [swarmVotes.contentChange(id, { index, items }, content)]
  }

  async #finishIfOver(): Promise<void> {
    const { head, contentStore, completed, onOver } = this.#swarm
    const index = RECORDS.end(head.itemCount)
    const digest = this.records.get(index)
    if (digest === undefined || !this.records.isWhole || this.#isOver) return
    const bytes = await contentStore.content({ index, digest })
    const accepted = bytes === null ? null : decodeEnd(bytes)
    // A node that lost outcomes may state fewer than there are; others have the rest.
    if (accepted === null || this.records.outcomes < outcomesOf(accepted)) return
    const end = completed(accepted)
    const { swarmStore, commit, clock, limits } = this.#deps
    const settling = await this.#settling()
    if (settling === null) return
    const kept = retryable(head, this.#swarm.eventLog.rows.values())
    const expiresAt = clock.now() + limits.defaultTtlMs
    await commit([...settling, ...swarmStore.ended(head, { end, expiresAt, kept })])
    if (this.#isOver) return
    this.#isOver = true
    onOver(end)
  }

  /** The changes that leave only accepted outcomes in the ledger; null when one must be taken again. */
  async #settling(): Promise<LedgerChange[] | null> {
    const { swarmVotes } = this.#deps
    const { id, itemCount: items } = this.#swarm.head
    const changes: LedgerChange[] = []
    const kept = await swarmVotes.outcomes(id)
    for (const [index, content] of kept) {
      const digest = this.records.get(index)
      if (digest === undefined) changes.push(swarmVotes.contentChange(id, { index, items }, null))
      // An earlier vote may have become durable after it.
      else if (swarmVotes.digest(content) !== digest) this.#lacking.set(index, { index, digest })
    }
    // A coordinator reports them before they are durable here; it may have stepped back before they were.
    for (const name of this.records.names)
      if (name.index < items && !kept.has(name.index)) this.#lacking.set(name.index, name)
    return this.#lacking.size > 0 ? null : changes
  }
}

/** Number of outcomes that an end counts. */
function outcomesOf({ counts }: SwarmEnd): number {
  return Math.min(counts.total, counts.completed + counts.failed + (counts.skipped ?? 0))
}

/**
 * The records known as accepted in one swarm: final under any coordinator. Marks of leased items are left out: they
 * concern coordinators alone, which read them from the votes, and they go with the end.
 */
export class CommittedRecords {
  readonly #items: number
  readonly #digests = new Map<number, string>()
  /** The number of accepted records, by the highest report. */
  #total = 0
  #epoch = 0

  /** `items`: item count of the swarm. */
  constructor(items: number) {
    this.#items = items
  }

  /** Number of known records. */
  get size(): number {
    return this.#digests.size
  }

  /** Number of known outcomes of items. */
  get outcomes(): number {
    return this.#digests.size - (this.#digests.has(RECORDS.end(this.#items)) ? 1 : 0)
  }

  /** The highest epoch of a reported acceptance. */
  get epoch(): number {
    return this.#epoch
  }

  /** Are all reported records known? */
  get isWhole(): boolean {
    return this.#digests.size >= this.#total
  }

  /** The accepted digest of an index; undefined when there is none. */
  get(index: number): string | undefined {
    return this.#digests.get(index)
  }

  /** Is another content accepted for its index? Then this one never is. */
  isVoid({ index, digest }: ContentName): boolean {
    return (this.#digests.get(index) ?? digest) !== digest
  }

  /** All known records. */
  get names(): ContentName[] {
    return [...this.#digests].map(([index, digest]) => ({ index, digest }))
  }

  /** Adds accepted records and returns the new ones. */
  add(
    names: readonly ContentName[],
    { total, epoch }: { readonly total: number; readonly epoch: number }
  ): ContentName[] {
    const fresh = names.filter(({ index }) => !isMark(this.#items, index) && !this.#digests.has(index))
    for (const { index, digest } of fresh) this.#digests.set(index, digest)
    this.#total = Math.max(this.#total, total, this.#digests.size)
    this.#epoch = Math.max(this.#epoch, epoch)
    return fresh
  }

  /** A page of records for another node, in rising order from an index on. */
  page(swarm: string, from: number): ParticipantMessageOf<'accepted'> {
    const indexes = [...this.#digests.keys()].filter((index) => index >= from).sort((a, b) => a - b)
    const items = indexes.slice(0, MAX_RECORDS).map((index) => ({ index, digest: this.#digests.get(index) ?? '' }))
    return { kind: 'accepted', swarm, epoch: this.#epoch, total: this.size, items, next: indexes[MAX_RECORDS] ?? null }
  }
}
