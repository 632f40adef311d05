import type { Clock, Timer } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import { type CountedStream, countedStreams, streamsByKey } from '../domain/document/counted.js'
import type { DocumentRecord, DocumentStreamRecord } from '../domain/membership/types.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { MemberLog } from '../ports/mesh.js'
import { memberAccess } from './document-access.js'
import type { OwnStreams } from './own-streams.js'

/** How long after a stream was left for good what is here of it is removed, in milliseconds; and how often it is tried. */
const TIDY_MS = 60_000

/** What {@link ContinuedStreams} needs. */
export interface ContinuedStreamsParts {
  readonly clock: Clock
  readonly log: Pick<MemberLog, 'view' | 'isStreamSigned'>
  readonly documents: Pick<DocumentStreams, 'hashOf' | 'remove'>
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
  readonly #begun = new Set<StreamKey>()
  /** Named by the log and not here yet. */
  readonly #awaited = new Set<StreamKey>()
  readonly #removed = new Set<StreamKey>()
  #timer: Timer | null = null
  #isClosed = false

  constructor(parts: ContinuedStreamsParts) {
    this.#parts = parts
  }

  /** Is all here that a stream begins with? */
  readonly hasBegun = (stream: StreamKey): boolean => this.#begun.has(stream)

  /** The streams of a document that count here, and how far; `own`: the one that this node writes, if the document is open. */
  counted(document: DocumentRecord, own: StreamKey | null): Map<StreamKey, CountedStream> {
    const { log, self } = this.#parts
    const counted = countedStreams(log.view(), this.#withPending(document), this.hasBegun)
    if (own === null || counted.has(own)) return counted
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
  forget(streams: Iterable<StreamKey>): void {
    for (const stream of streams) {
      this.#begun.delete(stream)
      this.#removed.delete(stream)
    }
  }

  /** Looks at streams of a document that have not begun. Resolves to whether one of them has now. */
  async look(document: DocumentRecord): Promise<boolean> {
    let isNew = false
    for (const [coreKey, { continues }] of streamsByKey(this.#withPending(document))) {
      if (continues === undefined || this.#begun.has(coreKey)) continue
      // What comes while it looks is looked at again.
      this.#awaited.add(coreKey)
      const hash = await this.#parts.documents.hashOf(coreKey, continues.blocks)
      if (hash !== continues.hash) continue
      this.#begun.add(coreKey)
      this.#awaited.delete(coreKey)
      isNew = true
    }
    if (isNew) this.#tidyLater()
    return isNew
  }

  /** Removes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#parts.clock.clear(this.#timer)
  }

  /** Documents that are followed, with streams that may begin. */
  #untold(): DocumentRecord[] {
    const { log, isFollowed } = this.#parts
    const mayBegin = ({ coreKey, continues }: DocumentStreamRecord): boolean => continues !== undefined && !this.#begun.has(coreKey)
    return [...log.view().documents.values()].filter((record) => this.#withPending(record).streams.some(mayBegin) && isFollowed(record))
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
    const streams = streamsByKey(document)
    let isLeft = false
    for (const stream of streams.keys()) {
      if (!this.#begun.has(stream) || this.#isClosed) continue
      const former = formerOf(stream, streams).filter((key) => !this.#removed.has(key))
      if (former.length === 0) continue
      if (!(await this.#parts.log.isStreamSigned(stream))) isLeft = true
      else {
        await this.#parts.documents.remove(former)
        for (const key of former) this.#removed.add(key)
      }
    }
    return isLeft
  }
}

/** The streams in whose place one goes on. */
function formerOf(stream: StreamKey, streams: ReadonlyMap<StreamKey, DocumentStreamRecord>): StreamKey[] {
  const from = streams.get(stream)?.continues?.from
  return from === undefined ? [] : [from, ...formerOf(from, streams)]
}
