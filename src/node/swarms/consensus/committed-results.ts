import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Clock } from '../../../kit/clock.js'
import { decodeEnd, decodeMark, decodeOutcome, type LeaseMark } from '../../../domain/swarm/handover.js'
import { isMark, RECORDS, recordKind } from '../../../domain/swarm/record-index.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { SwarmStore, SwarmEnd, SwarmHead, SwarmRow } from '../store.js'
import type { ContentName } from './content-transfer.js'
import type { SwarmEventLog } from '../event-log.js'
import type { ContentStore } from './content-store.js'
import type { VoteStore } from './vote-store.js'
import { MAX_RECORDS } from '../../../domain/swarm/coordination-message.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'

/** What following a swarm needs. */
export interface CommittedResultsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly swarmStore: SwarmStore
  readonly swarmVotes: VoteStore
  readonly limits: { readonly defaultTtlMs: number }
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** What is followed. */
export interface FollowedSwarm {
  readonly head: SwarmHead
  readonly eventLog: SwarmEventLog
  readonly contentStore: Pick<ContentStore, 'content' | 'contents' | 'obtain'>
  /** All of it is accepted, the end too, and durable here. */
  onOver(end: SwarmEnd): void
}

/** What was accepted in a swarm with several participants, as far as this node knows: tells it, and ends with it. */
export class CommittedResults {
  /** By index and digest. */
  readonly records: CommittedRecords
  readonly #deps: CommittedResultsDeps
  readonly #swarm: FollowedSwarm
  /** Accepted, but the contents are not here yet. */
  readonly #lacking = new Map<number, ContentName>()
  /** Contents are taken one after the other. */
  #taking: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(deps: CommittedResultsDeps, swarm: FollowedSwarm) {
    this.#deps = deps
    this.#swarm = swarm
    this.records = new CommittedRecords(swarm.head.itemCount)
  }

  /** Has the end been accepted? */
  get hasEnd(): boolean {
    return this.records.get(RECORDS.end(this.#swarm.head.itemCount)) !== undefined
  }

  /** Notes what is accepted, and gives what was not known. What else was proposed in its place is let go. */
  learn(names: readonly ContentName[], stated: { readonly total: number; readonly epoch: number }): ContentName[] {
    const fresh = this.records.add(names, stated)
    if (fresh.length > 0) this.#swarm.contentStore.contents.keep((name) => !this.records.isVoid(name))
    return fresh
  }

  /** It has ended: what was not accepted by now never is. */
  close(): void {
    this.#swarm.contentStore.contents.keep(({ index, digest }) => this.records.get(index) === digest)
  }

  /** Takes what is accepted, and what was lacking, as far as the contents are here; the others are fetched. */
  take(names: readonly ContentName[], from: NodeId): void {
    for (const name of names) if (!isMark(this.#swarm.head.itemCount, name.index)) this.#lacking.set(name.index, name)
    if (this.#lacking.size === 0 && !this.hasEnd) return
    this.#taking = this.#taking
      .then(() => this.#takeAll(from))
      .catch((error: unknown) => this.#deps.telemetry.log('warn', 'what was accepted could not be kept', { reason: messageOf(error) }))
  }

  /** Takes what is known to be accepted but was not told: whoever coordinated here had no time for it. */
  takeUntold(self: NodeId): void {
    const { head, eventLog } = this.#swarm
    this.take(
      this.records.names.filter(({ index }) => index < head.itemCount && !eventLog.rows.has(index)),
      self
    )
  }

  /** Resolves when nothing more is taken. Nothing is told after it. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#taking
  }

  /** The outcomes that were accepted, and what may not be repeated but was leased, by item. @throws NodeError STORE_DAMAGED */
  async read(accepted: readonly ContentName[]): Promise<{ readonly rows: SwarmRow[]; readonly marks: Map<number, LeaseMark> }> {
    const rows: SwarmRow[] = []
    const marks = new Map<number, LeaseMark>()
    for (const name of accepted) {
      const kind = recordKind(this.#swarm.head.itemCount, name.index)
      if (kind.type === 'end') continue
      const content = await this.#swarm.contentStore.content(name)
      const row = content === null || kind.type === 'mark' ? null : decodeOutcome(content)
      const mark = content === null || kind.type === 'outcome' ? null : decodeMark(content)
      // Without it an item that has its outcome would be done once more.
      if (mark === null && row?.index !== name.index) throw new NodeError('STORE_DAMAGED', 'an outcome that was accepted is not there')
      if (row !== null) rows.push(row)
      if (mark !== null) marks.set(kind.item, mark)
    }
    return { rows, marks }
  }

  /** What an ended swarm has accepted is what its ledger has. @throws NodeError STORE_DAMAGED */
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
    // What is told is durable here.
    if (changes.length > 0) await this.#deps.commit(changes)
    for (const { name, content } of taken) {
      if (this.#isOver) return
      this.#lacking.delete(name.index)
      // It is durable here.
      this.#swarm.contentStore.contents.drop(name)
      const row = name.index >= this.#swarm.head.itemCount ? null : decodeOutcome(content)
      if (row?.index === name.index) this.#swarm.eventLog.settled(row)
    }
    if (this.#lacking.size > 0) this.#swarm.contentStore.obtain([...this.#lacking.values()], from)
    else await this.#finishIfOver()
  }

  /** The change with which the ledger has a content; none when it has it. Another outcome of the item is never accepted any more. */
  async #missing({ index, digest }: ContentName, content: Uint8Array): Promise<LedgerChange[]> {
    const { swarmVotes } = this.#deps
    const { id, itemCount: items } = this.#swarm.head
    const kept = await swarmVotes.content(id, index, items)
    return kept !== null && swarmVotes.digest(kept) === digest ? [] : [swarmVotes.contentChange(id, { index, items }, content)]
  }

  async #finishIfOver(): Promise<void> {
    const { head, contentStore, onOver } = this.#swarm
    const index = RECORDS.end(head.itemCount)
    const digest = this.records.get(index)
    if (digest === undefined || !this.records.isWhole || this.#isOver) return
    const bytes = await contentStore.content({ index, digest })
    const end = bytes === null ? null : decodeEnd(bytes)
    if (end === null) return
    const { swarmStore, commit, clock, limits } = this.#deps
    const settling = await this.#settling()
    if (settling === null) return
    await commit([...settling, ...swarmStore.ended(head, { end, expiresAt: clock.now() + limits.defaultTtlMs })])
    if (this.#isOver) return
    this.#isOver = true
    onOver(end)
  }

  /** The changes with which the ledger has no outcomes but those that were accepted; null when one has to be taken again. */
  async #settling(): Promise<LedgerChange[] | null> {
    const { swarmVotes } = this.#deps
    const { id, itemCount: items } = this.#swarm.head
    const changes: LedgerChange[] = []
    for (const [index, content] of await swarmVotes.outcomes(id)) {
      const digest = this.records.get(index)
      if (digest === undefined) changes.push(swarmVotes.contentChange(id, { index, items }, null))
      // A vote of before may have become durable after it.
      else if (swarmVotes.digest(content) !== digest) this.#lacking.set(index, { index, digest })
    }
    return this.#lacking.size > 0 ? null : changes
  }
}

/**
 * What this node knows to be accepted in one swarm: final, whoever coordinates. That items were leased is left out: it concerns
 * coordinators alone, who read it from the others' votes, and it goes with the end.
 */
export class CommittedRecords {
  readonly #items: number
  readonly #digests = new Map<number, string>()
  /** How many there are, by the highest word of it. */
  #total = 0
  #epoch = 0

  /** `items`: of the swarm. */
  constructor(items: number) {
    this.#items = items
  }

  /** How many are known. */
  get size(): number {
    return this.#digests.size
  }

  /** The highest epoch in which something was said to be accepted. */
  get epoch(): number {
    return this.#epoch
  }

  /** Is all known that anybody spoke of? */
  get isWhole(): boolean {
    return this.#digests.size >= this.#total
  }

  /** What an index is accepted with; undefined while it is not. */
  get(index: number): string | undefined {
    return this.#digests.get(index)
  }

  /** Is something else accepted under its index? Then it never is. */
  isVoid({ index, digest }: ContentName): boolean {
    return (this.#digests.get(index) ?? digest) !== digest
  }

  /** All that are known. */
  get names(): ContentName[] {
    return [...this.#digests].map(([index, digest]) => ({ index, digest }))
  }

  /** Notes what is accepted, and gives what was not known. */
  add(names: readonly ContentName[], { total, epoch }: { readonly total: number; readonly epoch: number }): ContentName[] {
    const fresh = names.filter(({ index }) => !isMark(this.#items, index) && !this.#digests.has(index))
    for (const { index, digest } of fresh) this.#digests.set(index, digest)
    this.#total = Math.max(this.#total, total, this.#digests.size)
    this.#epoch = Math.max(this.#epoch, epoch)
    return fresh
  }

  /** A page of them for another, in rising order from an index on. */
  page(swarm: string, from: number): ParticipantMessageOf<'accepted'> {
    const indexes = [...this.#digests.keys()].filter((index) => index >= from).sort((a, b) => a - b)
    const items = indexes.slice(0, MAX_RECORDS).map((index) => ({ index, digest: this.#digests.get(index) ?? '' }))
    return { kind: 'accepted', swarm, epoch: this.#epoch, total: this.size, items, next: indexes[MAX_RECORDS] ?? null }
  }
}
