import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentStreams } from '../../ports/documents.js'

/** Blocks that are read at once. */
const READ_BLOCKS = 256
const NOTHING = new Uint8Array()

/** What a {@link ReplicaFeed} needs. */
export interface ReplicaFeedDeps {
  readonly streams: Pick<DocumentStreams, 'read' | 'size'>
  /** A block as its stream holds it; null for what is none. */
  open(bytes: Uint8Array): Uint8Array | null
  /** How many blocks of a stream are taken. */
  limitOf(stream: StreamKey): number
  onStops(stops: readonly StreamStop[]): void
  /** A stream begins behind what was taken of it. */
  onLater(): void
  /** Is it worth nothing any more? */
  isOver(): boolean
}

/** A replica, and how far it was fed with each stream. When reading fails it is fed on from there. */
export class ReplicaFeed {
  readonly replica: Replica
  /** Blocks that were taken since it was begun or kept. */
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

  /** How many blocks of a stream were taken. */
  lengthOf(stream: StreamKey): number {
    return this.#next.get(stream) ?? 0
  }

  /** Was it given as many blocks of each stream as another one? */
  isAsFarAs(other: ReplicaFeed): boolean {
    return [...this.#next.keys(), ...other.#next.keys()].every((stream) => this.lengthOf(stream) === other.lengthOf(stream))
  }

  /** Was it given as many blocks of each stream as another one, or more? */
  isAtLeastAsFarAs(other: ReplicaFeed): boolean {
    return [...other.#next.keys()].every((stream) => this.lengthOf(stream) >= other.lengthOf(stream))
  }

  /** A stream may have more. */
  offer(stream: StreamKey): void {
    this.#due.add(stream)
  }

  /** Its own edits are in their stream now, as so many blocks. */
  appended(own: StreamKey, blocks: number): void {
    this.#next.set(own, this.lengthOf(own) + blocks)
    this.unkept += blocks
  }

  /** Takes all that can be taken of the streams that may have more. Rejects when they cannot be read. */
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

  /** True: something was taken. A stream that was read to its end is due no more. */
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

  /** What comes while it reads makes the stream due again. */
  async #read(stream: StreamKey, from: number): Promise<readonly Uint8Array[]> {
    this.#due.delete(stream)
    let isAtEnd = false
    try {
      const blocks = await this.#deps.streams.read(stream, from, Math.min(READ_BLOCKS, this.#deps.limitOf(stream) - from))
      isAtEnd = blocks.length === 0
      if (isAtEnd && this.#deps.streams.size(stream).from > from) this.#deps.onLater()
      return blocks
    } finally {
      if (!isAtEnd) this.#due.add(stream)
    }
  }

  /** False: it is to be offered again. */
  #take(stream: StreamKey, index: number, bytes: Uint8Array): boolean {
    const { outcome, stops } = this.replica.receive({ stream, index, bytes: this.#deps.open(bytes) ?? NOTHING })
    this.#deps.onStops(stops)
    if (outcome === 'later') return false
    if (outcome === 'taken') this.unkept++
    this.#next.set(stream, index + 1)
    return true
  }
}

/** What those who hold a document are told. */
export type DocumentChange =
  /** `by`: the session that wrote it; null for this node and for others. */
  | { readonly type: 'update'; readonly update: Uint8Array; readonly by: string | null }
  /** Something was taken back: begin anew. `isMoved`: with another own stream, so sessions need other clientIDs. */
  | { readonly type: 'reset'; readonly isMoved: boolean }

/**
 * Why a replica is made anew, the weakest reason first: an edit of this node was refused, streams begin behind what it took of them,
 * part of it counts no longer, this node has another own stream.
 */
const REASONS = ['refused', 'begun', 'void', 'moved'] as const
type Reason = (typeof REASONS)[number]

/** That a replica is to be made anew, and what those who hold it are told when it was. */
export class ReplicaRebuild {
  /** Is the replica of now worth nothing? */
  isDue = false
  /** Why it is, or is being, made anew, and the one that those who hold it know; null once they were told. */
  #untold: { readonly why: Reason; readonly known: ReplicaFeed } | null = null

  /** Is there something that nobody was told yet? */
  get isUntold(): boolean {
    return this.#untold !== null
  }

  /** The replica is to be made anew. */
  need(why: Reason, now: ReplicaFeed): void {
    this.isDue = true
    const before = this.#untold
    if (before === null) this.#untold = { why, known: now }
    else if (REASONS.indexOf(before.why) < REASONS.indexOf(why)) this.#untold = { ...before, why }
  }

  /** What those who hold it are told of the new one, once; null: nothing. Of an edit that was refused they have not heard. */
  change(now: ReplicaFeed): DocumentChange | null {
    if (this.#untold === null) return null
    const { why, known } = this.#untold
    this.#untold = null
    const isMore = why === 'refused' || (why === 'begun' && now.isAtLeastAsFarAs(known))
    if (!isMore) return { type: 'reset', isMoved: why === 'moved' }
    return now.isAsFarAs(known) ? null : { type: 'update', update: now.replica.state(), by: null }
  }
}
