import { NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { StreamStop } from '../../domain/document/stream.js'
import { NOT_ALLOWED } from './access.js'
import { type KeptDocument, replicaOfKept } from './local-cache.js'
import { type DocumentChange, ReplicaFeed, type ReplicaFeedDeps, ReplicaRebuild } from './replica-feed.js'

/** Dependencies of {@link DocumentReplica}. */
export interface DocumentReplicaDeps extends Pick<ReplicaFeedDeps, 'streams' | 'open'> {
  /** Makes an empty replica. */
  make(own: StreamKey | null): Replica
  /** Key of this node's own stream at first; null when it may not write. */
  readonly own: StreamKey | null
  /** The snapshot behind which the streams begin here; null when their first blocks are here. */
  base(): Promise<Uint8Array | null>
  /** The cached snapshot of the document. */
  readonly kept: KeptDocument
  /** Called when a stream ends at a block, with the reason. */
  onStop(stop: StreamStop): void
  /** Called when a listener failed. */
  onError(error: unknown): void
}

/** A snapshot of a document, and the number of blocks of each stream in it. */
export interface WrittenSnapshot {
  readonly lengths: Readonly<Record<StreamKey, number>>
  readonly bytes: Uint8Array
}

/** A replica before its first block, and the number of blocks of each stream that the current one took. */
export interface FormerReplica {
  readonly replica: Replica
  readonly ends: ReadonlyMap<StreamKey, number>
}

type Stop = Pick<StreamStop, 'at' | 'reason'>

/**
 * The replica of one document. It takes every block of the counted streams, and is rebuilt when it has blocks that no
 * longer count. Callers run its asynchronous methods one after the other.
 */
export class DocumentReplica {
  readonly #deps: DocumentReplicaDeps
  readonly #changes: Emitter<DocumentChange>
  #fed: ReplicaFeed
  /** The number of counted blocks of each stream. */
  #counted: ReadonlyMap<StreamKey, number> = new Map()
  readonly #stops = new Map<StreamKey, Stop>()
  #own: StreamKey | null
  #hasBegun = false
  readonly #rebuild = new ReplicaRebuild()
  /** True while stored blocks are unread: reading goes on, or failed. */
  #isBehind = false
  /** The updates of a running edit. */
  #edits: Uint8Array[] | null = null
  #isClosed = false

  constructor(deps: DocumentReplicaDeps) {
    this.#deps = deps
    this.#own = deps.own
    this.#changes = new Emitter(deps.onError)
    this.#fed = this.#fedOne(deps.make(deps.own))
  }

  /** The current replica; a rebuild replaces it. */
  get current(): Replica {
    return this.#fed.replica
  }

  /** Key of this node's own stream; null when it may not write. */
  get own(): StreamKey | null {
    return this.#own
  }

  /** The ended streams, with block and reason. */
  get stops(): ReadonlyMap<StreamKey, Stop> {
    return this.#stops
  }

  /** Calls back for each change. */
  onChange(listener: (change: DocumentChange) => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** The number of taken blocks of a stream. */
  lengthOf(stream: StreamKey): number {
    return this.#fed.lengthOf(stream)
  }

  /** True while the access list limits the blocks that count of a stream. */
  isLimited(stream: StreamKey): boolean {
    return Number.isFinite(this.#counted.get(stream))
  }

  /** Sets the counted blocks of each stream, and takes all of them that are stored here. */
  async follow(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    if (!this.#hasBegun) await this.#begin(counted)
    this.#hasBegun = true
    const before = this.#counted
    this.#counted = counted
    for (const [stream, at] of counted) {
      const was = before.get(stream) ?? Number.POSITIVE_INFINITY
      if (at < was) this.#limit(stream, at)
      // Refused blocks count after all.
      else if (at > was) this.#rebuild.need('void', this.#fed)
      this.#fed.offer(stream)
    }
    await this.feed()
  }

  /** Marks a stream that may have more blocks, for {@link feed}. */
  offer(stream: StreamKey): void {
    this.#fed.offer(stream)
  }

  /** Takes all available blocks of the streams that may have more. After a read error the next caller goes on. */
  async feed(): Promise<void> {
    this.#isBehind = true
    do {
      if (this.#rebuild.isDue) await this.#beginAnew()
      await this.#fed.feed()
    } while (this.#rebuild.isDue && !this.#isClosed)
    this.#isBehind = false
    const change = this.#isClosed ? null : this.#rebuild.change(this.#fed)
    if (change !== null) this.#changes.emit(change)
  }

  /**
   * The streams begin later here: takes missing blocks from the snapshot, or all blocks anew when this replica is wrong
   * (`isOther`).
   */
  async beginLater(isOther: boolean): Promise<void> {
    if (isOther) this.#rebuild.need('void', this.#fed)
    for (const stream of this.#counted.keys()) this.#fed.offer(stream)
    await this.feed()
  }

  /** No block of a stream counts. */
  async exclude(stream: StreamKey, reason: string): Promise<void> {
    this.#noteStops(this.current.stop(stream, 0, reason))
    await this.feed()
  }

  /** Reading and editing wait until the replica has no invalid and no unread blocks, announced or not. */
  async beWhole(): Promise<void> {
    if (this.#fed.offerStored(this.#counted.keys()) || !this.#isWhole) await this.feed()
  }

  /** Later blocks of this node go into another own stream. */
  async goOn(own: StreamKey): Promise<void> {
    this.#own = own
    this.#rebuild.need('moved', this.#fed)
    await this.feed()
  }

  /**
   * Runs an edit of this node or a session, and reports its updates once `publish` is done. A refused edit is undone.
   */
  async edit<T>(by: string | null, edit: () => T, publish: () => Promise<void>): Promise<T> {
    const updates: Uint8Array[] = []
    this.#edits = updates
    try {
      const result = edit()
      await publish()
      for (const update of updates) this.#changes.emit({ type: 'update', update, by })
      return result
    } catch (error) {
      if (updates.length > 0) this.undo()
      throw error
    } finally {
      this.#edits = null
    }
  }

  /** Requests a rebuild without an edit that did not get into the own stream. */
  undo(): void {
    this.#rebuild.need('refused', this.#fed)
  }

  /** Counts the replica's own edits, now in their stream as `blocks` blocks. */
  appended(own: StreamKey, blocks: number): void {
    this.#fed.appended(own, blocks)
  }

  /** Caches the document, if the cached snapshot lacks at least `blocks` blocks. */
  async keep(blocks: number): Promise<void> {
    if (this.#fed.unkept < blocks || !this.#isWhole) return
    await this.#deps.kept.write(this.current.snapshot())
    this.#fed.unkept = 0
  }

  /**
   * A snapshot of the document for others. null while it is rebuilt, when it has gaps, and when `isWorth` is false for
   * its lengths.
   */
  snapshot(isWorth: (stored: Pick<WrittenSnapshot, 'lengths'>) => boolean): WrittenSnapshot | null {
    const lengths = this.current.vectorClock()
    const mayWrite = this.#isWhole && this.current.isWritable
    return mayWrite && isWorth({ lengths }) ? { lengths, bytes: this.current.snapshot() } : null
  }

  /** A replica to take all blocks of the current one again, for the history. */
  async former(): Promise<FormerReplica> {
    const replica = stopped(await this.#made(), this.#stops, this.#counted)
    return { replica, ends: new Map([...this.#counted.keys()].map((stream) => [stream, this.lengthOf(stream)])) }
  }

  /** Ends a running {@link feed} before its next block, and frees the memory after `pending` work. */
  async close(pending: Promise<unknown>): Promise<void> {
    this.#isClosed = true
    await pending
    this.current.doc.destroy()
  }

  get #isWhole(): boolean {
    return !this.#rebuild.isDue && !this.#isBehind
  }

  #fedOne(replica: Replica): ReplicaFeed {
    return new ReplicaFeed(this.#observed(replica), {
      ...this.#deps,
      limitOf: (stream) =>
        Math.min(this.#counted.get(stream) ?? 0, this.#stops.get(stream)?.at ?? Number.POSITIVE_INFINITY),
      onStops: (stops) => this.#noteStops(stops),
      onLater: () => this.#rebuild.need('begun', this.#fed),
      isOver: () => this.#rebuild.isDue || this.#isClosed
    })
  }

  /**
   * Reports each update of the replica: an edit of this node once it is durable, a rebuilt replica once it is complete.
   */
  #observed(replica: Replica): Replica {
    replica.doc.on('update', (update: Uint8Array) => {
      if (this.#edits !== null) this.#edits.push(update)
      else if (!this.#rebuild.isUntold) this.#changes.emit({ type: 'update', update, by: null })
    })
    return replica
  }

  /** Starts from the cached snapshot if that still counts; else builds the replica from the streams. */
  async #begin(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    const { kept, streams, make } = this.#deps
    const replica =
      (await replicaOfKept(kept, { counted, streams, make: () => make(this.#own) })) ?? (await this.#made())
    this.current.doc.destroy()
    this.#fed = this.#fedOne(replica)
    // Earlier stops count for this replica, too.
    for (const [stream, { at, reason }] of this.#stops) this.#noteStops(replica.stop(stream, at, reason))
    for (const [stream, end] of replica.ends())
      if (end.reason !== NOT_ALLOWED && !this.#stops.has(stream)) this.#stops.set(stream, end)
  }

  /** Limits a stream by the access list. A later list may lift the limit, so it is no final stop. */
  #limit(stream: StreamKey, at: number): void {
    const stops = this.current.stop(stream, at, NOT_ALLOWED)
    if (stops.some(({ needsRebuild }) => needsRebuild)) this.#rebuild.need('void', this.#fed)
    this.#noteStops(stops.filter((stop) => stop.stream !== stream))
  }

  #noteStops(stops: readonly StreamStop[]): void {
    for (const stop of stops) {
      if (stop.needsRebuild) this.#rebuild.need('void', this.#fed)
      const known = this.#stops.get(stop.stream)
      if (known !== undefined && known.at <= stop.at) continue
      this.#stops.set(stop.stream, stop)
      this.#deps.onStop(stop)
    }
  }

  /** Makes a new replica with the known stops, to be fed with all streams. */
  async #beginAnew(): Promise<void> {
    const replica = stopped(await this.#made(), this.#stops, this.#counted)
    this.#rebuild.isDue = false
    this.current.doc.destroy()
    this.#fed = this.#fedOne(replica)
    for (const stream of this.#counted.keys()) this.#fed.offer(stream)
  }

  /** A replica with nothing but the snapshot behind which the streams begin. */
  async #made(): Promise<Replica> {
    const base = await this.#deps.base()
    const replica = this.#deps.make(this.#own)
    const fault = base === null ? null : replica.load(base, true)
    if (fault !== null) throw new NodeError('STORE_DAMAGED', `a snapshot of the document cannot be read: ${fault}`)
    return replica
  }
}

/** A new replica with the known ends of streams. */
function stopped(
  replica: Replica,
  stops: ReadonlyMap<StreamKey, Stop>,
  counted: ReadonlyMap<StreamKey, number>
): Replica {
  for (const [stream, { at, reason }] of stops) replica.stop(stream, at, reason)
  for (const [stream, at] of counted) if (Number.isFinite(at)) replica.stop(stream, at, NOT_ALLOWED)
  return replica
}
