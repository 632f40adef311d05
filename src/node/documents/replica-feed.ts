import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentStreams } from '../../ports/documents.js'

/** Blocks per read. */
const READ_BLOCKS = 256
const NOTHING = new Uint8Array()

/** Dependencies of {@link ReplicaFeed}. */
export interface ReplicaFeedDeps {
  readonly streams: Pick<DocumentStreams, 'read' | 'size'>
  /** Unpacks a block of a stream; null for bytes that are no block. */
  open(bytes: Uint8Array): Uint8Array | null
  /** The number of blocks to take of a stream. */
  limitOf(stream: StreamKey): number
  onStops(stops: readonly StreamStop[]): void
  /** A stream begins behind the blocks that were taken of it. */
  onLater(): void
  /** True when the replica is no longer needed. */
  isOver(): boolean
}

/** A replica, and the next block of each stream. After a read error it continues from there. */
export class ReplicaFeed {
  readonly replica: Replica
  /** Blocks taken since the beginning or the last cached snapshot. */
  unkept = 0
  readonly #deps: ReplicaFeedDeps
  /** The next block of each stream, and the streams that may have one. */
  readonly #next: Map<StreamKey, number>
  readonly #due = new Set<StreamKey>()

  constructor(replica: Replica, deps: ReplicaFeedDeps) {
    this.replica = replica
    this.#deps = deps
    this.#next = new Map(Object.entries(replica.vectorClock()))
  }

  /** The number of taken blocks of a stream. */
  lengthOf(stream: StreamKey): number {
    return this.#next.get(stream) ?? 0
  }

  /** True when both replicas took equally many blocks of each stream. */
  isAsFarAs(other: ReplicaFeed): boolean {
    return [...this.#next.keys(), ...other.#next.keys()].every(
      (stream) => this.lengthOf(stream) === other.lengthOf(stream)
    )
  }

  /** True when this replica took as many blocks of each stream as another one, or more. */
  isAtLeastAsFarAs(other: ReplicaFeed): boolean {
    return [...other.#next.keys()].every((stream) => this.lengthOf(stream) >= other.lengthOf(stream))
  }

  /** Marks a stream that may have more blocks. */
  offer(stream: StreamKey): void {
    this.#due.add(stream)
  }

  /**
   * Marks those streams of which more counted blocks are stored than were taken; false: none. A stream may hold blocks
   * that are not announced yet.
   */
  offerStored(streams: Iterable<StreamKey>): boolean {
    const { streams: stored, limitOf } = this.#deps
    const unread = [...streams].filter(
      (stream) => Math.min(stored.size(stream).blocks, limitOf(stream)) > this.lengthOf(stream)
    )
    for (const stream of unread) this.#due.add(stream)
    return unread.length > 0
  }

  /** Counts the replica's own edits, now in their stream as `blocks` blocks. */
  appended(own: StreamKey, blocks: number): void {
    this.#next.set(own, this.lengthOf(own) + blocks)
    this.unkept += blocks
  }

  /** Takes all available blocks of the streams that may have more. Rejects when they cannot be read. */
  async feed(): Promise<void> {
    let isMoving = true
    while (isMoving) {
      isMoving = false
      for (const stream of [...this.#due]) {
        if (await this.#feedFrom(stream)) isMoving = true
        if (this.#deps.isOver()) return
      }
    }
  }

  /** True when a block was taken. A stream that was read to its end is due no more. */
  async #feedFrom(stream: StreamKey): Promise<boolean> {
    let isTaken = false
    for (;;) {
      const from = this.lengthOf(stream)
      const blocks = await this.#read(stream, from)
      if (blocks.length === 0) return isTaken
      for (const [place, bytes] of blocks.entries()) {
        if (!this.#take(stream, from + place, bytes)) return isTaken
        isTaken = true
        if (this.#deps.isOver()) return true
      }
    }
  }

  /** Blocks that arrive during the read make the stream due again. */
  async #read(stream: StreamKey, from: number): Promise<readonly Uint8Array[]> {
    this.#due.delete(stream)
    let isAtEnd = false
    try {
      const blocks = await this.#deps.streams.read(
        stream,
        from,
        Math.min(READ_BLOCKS, this.#deps.limitOf(stream) - from)
      )
      isAtEnd = blocks.length === 0
      if (isAtEnd && this.#deps.streams.size(stream).from > from) this.#deps.onLater()
      return blocks
    } finally {
      if (!isAtEnd) this.#due.add(stream)
    }
  }

  /** False: offer the stream again. */
  #take(stream: StreamKey, index: number, bytes: Uint8Array): boolean {
    const { outcome, stops } = this.replica.receive({ stream, index, bytes: this.#deps.open(bytes) ?? NOTHING })
    this.#deps.onStops(stops)
    if (outcome === 'later') return false
    if (outcome === 'taken') this.unkept++
    this.#next.set(stream, index + 1)
    return true
  }
}

/** The events for holders of a document. */
export type DocumentChange =
  /** `by`: the session that wrote it; null for this node and for other members. */
  | { readonly type: 'update'; readonly update: Uint8Array; readonly by: string | null }
  /** Blocks were taken back: begin anew. `isMoved`: with another own stream, so sessions need other clientIDs. */
  | { readonly type: 'reset'; readonly isMoved: boolean }

/**
 * Why a replica is rebuilt, the weakest reason first: this node's edit was refused, streams begin behind their taken
 * blocks, taken blocks no longer count, the own stream changed.
 */
const REASONS = ['refused', 'begun', 'void', 'moved'] as const
type Reason = (typeof REASONS)[number]

/** A pending rebuild of a replica, and the event for its holders after it. */
export class ReplicaRebuild {
  /** True when the current replica must be rebuilt. */
  isDue = false
  /** The reason of the rebuild, and the replica that holders know; null once they are notified. */
  #untold: { readonly why: Reason; readonly known: ReplicaFeed } | null = null

  /** True while holders are not notified. */
  get isUntold(): boolean {
    return this.#untold !== null
  }

  /** Requests a rebuild of the replica. */
  need(why: Reason, now: ReplicaFeed): void {
    this.isDue = true
    const before = this.#untold
    if (before === null) this.#untold = { why, known: now }
    else if (REASONS.indexOf(before.why) < REASONS.indexOf(why)) this.#untold = { ...before, why }
  }

  /** The event for holders after a rebuild, returned once; null for none. Holders never saw a refused edit. */
  change(now: ReplicaFeed): DocumentChange | null {
    if (this.#untold === null) return null
    const { why, known } = this.#untold
    this.#untold = null
    const isMore = why === 'refused' || (why === 'begun' && now.isAtLeastAsFarAs(known))
    if (!isMore) return { type: 'reset', isMoved: why === 'moved' }
    return now.isAsFarAs(known) ? null : { type: 'update', update: now.replica.state(), by: null }
  }
}
