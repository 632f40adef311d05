import type { Clock, Timer } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import { canonicalJson } from '../kit/json.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import { type CountedStream, countedStreams, formerOf, streamsToHave } from '../domain/document/counted.js'
import { isContinued } from '../domain/membership/fold-document.js'
import type { DocumentRecord, DocumentStreamRecord } from '../domain/membership/types.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { MemberLog } from '../ports/mesh.js'
import { memberAccess } from './document-access.js'
import { writerOfBlock } from './document-road.js'
import type { OwnStreams } from './own-streams.js'

/** How long after a stream was left for good what is here of it is removed, in milliseconds; and how often it is tried. */
const TIDY_MS = 60_000

/** What {@link ContinuedStreams} needs. */
export interface ContinuedStreamsParts {
  readonly clock: Clock
  readonly log: Pick<MemberLog, 'view' | 'isStreamSigned'>
  readonly documents: Pick<DocumentStreams, 'hashOf' | 'read' | 'remove'>
  readonly own: Pick<OwnStreams, 'pending'>
  readonly self: NodeId
  /** Is what is written into a document kept here? */
  isFollowed(document: DocumentRecord): boolean
  /** One has begun that had not before. */
  onBegun(): void
  onError(error: unknown): void
}

/**
 * Streams that continue others: which of them have begun here, so that the others are needed no more; and the removal of
 * these, once the log cannot take back any more that they are continued.
 */
export class ContinuedStreams {
  readonly #parts: ContinuedStreamsParts
  /** What was said of each stream that has begun, as JSON: the log may come to say something else of the same core. */
  readonly #begun = new Map<string, StreamKey>()
  /** Named by the log and not here yet. */
  readonly #awaited = new Set<StreamKey>()
  readonly #removed = new Set<StreamKey>()
  #timer: Timer | null = null
  #isClosed = false

  constructor(parts: ContinuedStreamsParts) {
    this.#parts = parts
  }

  /** Is all here that a stream begins with? */
  readonly hasBegun = (stream: DocumentStreamRecord): boolean => this.#begun.has(canonicalJson(stream))

  /** The streams of a document that count here, and how far; `own`: the one that this node writes, if the document is open. */
  counted(document: DocumentRecord, own: StreamKey | null): Map<StreamKey, CountedStream> {
    const { log, self } = this.#parts
    const known = this.#withPending(document)
    const counted = countedStreams(log.view(), known, this.hasBegun)
    if (own === null || counted.has(own)) return counted
    // One whose place was taken is that of a home that was put back: it is left. And one that continues another begins or does not.
    const isBeginning = known.streams.some(({ coreKey, continues }) => coreKey === own && continues !== undefined)
    if (isBeginning || isContinued(document.streams, own)) return counted
    // Of a stream that the log does not name yet others will see nothing either once the right to write is lost.
    const { mayWrite } = memberAccess(log.view(), document, self)
    return counted.set(own, { blocks: mayWrite ? Number.POSITIVE_INFINITY : 0, beginning: null })
  }

  /** More of a stream is here. */
  onBlocks(stream: StreamKey): void {
    if (this.#awaited.has(stream)) this.lookAll()
  }

  /** Looks at the streams of all documents that are followed. Resolves when each that has begun is known. */
  async start(): Promise<void> {
    for (const record of this.#untold()) await this.look(record)
  }

  /** The same, in its own time. */
  lookAll(): void {
    for (const record of this.#untold()) this.look(record).then((isNew) => isNew && this.#parts.onBegun(), this.#parts.onError)
  }

  /** What was here of these streams is gone. */
  forget(streams: ReadonlySet<StreamKey>): void {
    for (const [said, stream] of this.#begun) if (streams.has(stream)) this.#begun.delete(said)
    for (const stream of streams) this.#removed.delete(stream)
  }

  /** Looks at streams of a document that have not begun. Resolves to whether one of them has now. */
  async look(document: DocumentRecord): Promise<boolean> {
    let isNew = false
    for (const stream of this.#withPending(document).streams) {
      if (stream.continues === undefined || this.hasBegun(stream)) continue
      // What comes while it looks is looked at again.
      this.#awaited.add(stream.coreKey)
      if (!(await this.#isBegun(stream.coreKey, stream))) continue
      this.#begun.set(canonicalJson(stream), stream.coreKey)
      this.#awaited.delete(stream.coreKey)
      isNew = true
    }
    if (isNew) this.#tidyLater()
    return isNew
  }

  /** All that it begins with is here, and is what the log says; and who says so wrote it, since anybody may name any core. */
  async #isBegun(key: StreamKey, { nodeKey, continues }: DocumentStreamRecord): Promise<boolean> {
    const { documents } = this.#parts
    if (continues === undefined || (await documents.hashOf(key, continues.blocks)) !== continues.hash) return false
    const [first] = await documents.read(key, 0, 1)
    return first !== undefined && writerOfBlock(first) === nodeKey
  }

  /** Removes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#parts.clock.clear(this.#timer)
  }

  /** Documents that are followed, with streams that may begin. */
  #untold(): DocumentRecord[] {
    const { log, isFollowed } = this.#parts
    return [...log.view().documents.values()].filter((record) => {
      const known = this.#withPending(record)
      if (known.streams.every((stream) => stream.continues === undefined || this.hasBegun(stream)) || !isFollowed(record)) return false
      const needed = new Set(streamsToHave(known, this.hasBegun))
      return known.streams.some((stream) => needed.has(stream.coreKey) && stream.continues !== undefined && !this.hasBegun(stream))
    })
  }

  #tidyLater(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#parts.clock.after(TIDY_MS, () => void this.#tidy().catch(this.#parts.onError))
  }

  async #tidy(): Promise<void> {
    let isLeft = false
    try {
      for (const record of this.#parts.log.view().documents.values()) if (await this.#isUntidy(record)) isLeft = true
    } finally {
      this.#timer = null
    }
    if (isLeft) this.#tidyLater()
  }

  /** A document with the stream that this node writes, if that continues one and the log does not have it yet. */
  #withPending(document: DocumentRecord): DocumentRecord {
    const { log, own, self } = this.#parts
    const pending = own.pending(document.name)
    if (pending === null || !memberAccess(log.view(), document, self).mayWrite) return document
    return { ...document, streams: [...document.streams, pending] }
  }

  /** Removes the streams that are needed no more. True: not all of them yet. */
  async #isUntidy(document: DocumentRecord): Promise<boolean> {
    let isLeft = false
    for (const stream of document.streams) {
      if (stream.continues === undefined || !this.hasBegun(stream) || this.#isClosed) continue
      const former = formerOf(document, stream, this.hasBegun).filter((key) => !this.#removed.has(key))
      if (former.length === 0) continue
      if (!(await this.#parts.log.isStreamSigned(stream.coreKey))) isLeft = true
      else {
        await this.#parts.documents.remove(former)
        for (const key of former) this.#removed.add(key)
      }
    }
    return isLeft
  }
}
