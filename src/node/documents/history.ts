import { NodeError, passingConflict } from '../../kit/errors.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { HistoryChange, HistoryReplay } from '../../domain/document/history/replay.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { FormerReplica } from './document-replica.js'
import { openTimedBlock } from './local-streams.js'
import type { OpenDocument } from './open-document.js'

/** Bounds of one replay of a document. */
export const HISTORY_LIMITS = {
  /** Blocks of all its streams behind the snapshot. */
  maxBlocks: 16_384,
  /** Their bytes. */
  maxBytes: 67_108_864,
  /** Blocks in memory: the next ones of all streams. */
  maxRead: 64,
  /** Replays that wait for the running one. */
  maxWaiting: 4
} as const

const NOTHING = new Uint8Array()

/** Dependencies of {@link DocumentHistory}. */
export interface DocumentHistoryDeps {
  readonly documents: Pick<DocumentStreams, 'read' | 'size'>
  idOf(name: string): string
}

/** A document to replay. */
export interface ReplayedDocument {
  readonly name: string
  readonly open: Pick<OpenDocument, 'former'>
}

/** The next blocks of one stream. */
interface StreamReading {
  readonly stream: StreamKey
  readonly end: number
  next: number
  blocks: Uint8Array[]
  /** Time of the last block, for one without a time. */
  at: number
}

/**
 * Replays documents from their streams, one at a time. Each read of a stream gives other work of the node a turn, so at
 * most {@link HISTORY_LIMITS.maxRead} blocks are applied in one.
 */
export class DocumentHistory {
  readonly #deps: DocumentHistoryDeps
  #tail: Promise<unknown> = Promise.resolve()
  #waiting = 0

  constructor(deps: DocumentHistoryDeps) {
    this.#deps = deps
  }

  /**
   * Calls `see` after each change, oldest first, until it returns true or the document is as it is now. Then gives the
   * document to `use`, whose result is returned.
   * @throws NodeError OVERLOADED with too many replays or blocks; CONFLICT when its blocks changed meanwhile; the
   * errors of `see` and `use`
   */
  replay<T>(
    document: ReplayedDocument,
    see: (change: HistoryChange) => boolean,
    use: (doc: HistoryReplay['doc']) => T
  ): Promise<T> {
    if (this.#waiting > HISTORY_LIMITS.maxWaiting)
      return Promise.reject(new NodeError('OVERLOADED', 'other histories of documents are being read', { next: [] }))
    this.#waiting++
    const done = this.#tail.then(() => this.#replay(document, see, use)).finally(() => this.#waiting--)
    this.#tail = done.catch(() => {})
    return done
  }

  async #replay<T>(
    { name, open }: ReplayedDocument,
    see: (change: HistoryChange) => boolean,
    use: (doc: HistoryReplay['doc']) => T
  ): Promise<T> {
    const { HistoryReplay } = await import('../../domain/document/history/replay.js')
    const { replica, ends } = await open.former()
    try {
      this.#mustFit(ends, replica.vectorClock())
      const replay = new HistoryReplay(replica)
      await this.#run(replay, { id: this.#deps.idOf(name), readings: readingsOf(ends, replica.vectorClock()), see })
      return use(replay.doc)
    } finally {
      replica.doc.destroy()
    }
  }

  #mustFit(ends: FormerReplica['ends'], begun: Readonly<Record<StreamKey, number>>): void {
    const lengths = [...ends].map(([stream, end]) => end - (begun[stream] ?? 0))
    const blocks = lengths.reduce((sum, length) => sum + length, 0)
    const bytes = [...ends.keys()].reduce((sum, stream) => sum + this.#deps.documents.size(stream).bytes, 0)
    if (blocks <= HISTORY_LIMITS.maxBlocks && bytes <= HISTORY_LIMITS.maxBytes) return
    const most = `${HISTORY_LIMITS.maxBlocks} blocks and ${HISTORY_LIMITS.maxBytes / 1_048_576} MiB`
    throw new NodeError(
      'OVERLOADED',
      `the history has ${blocks} blocks and ${Math.ceil(bytes / 1_048_576)} MiB: at most ${most} are read, and the next snapshot shortens it`,
      { retryable: false, next: ['a2a-node doc export --help'] }
    )
  }

  async #run(
    replay: HistoryReplay,
    { id, readings, see }: { id: string; readings: readonly StreamReading[]; see: (change: HistoryChange) => boolean }
  ): Promise<void> {
    const limit = Math.max(1, Math.floor(HISTORY_LIMITS.maxRead / Math.max(1, readings.length)))
    for (;;) {
      for (const reading of readings) {
        if (!replay.lacks(reading.stream) || reading.next >= reading.end) continue
        if (reading.blocks.length === 0) reading.blocks = await this.#read(reading, limit)
        const opened = openTimedBlock(reading.blocks.shift() ?? NOTHING, id)
        reading.at = opened?.at ?? reading.at
        const { stream, next: index, at } = reading
        replay.give({ stream, index, at, bytes: opened?.block ?? NOTHING })
        reading.next++
      }
      const change = replay.step()
      if (replay.isVoid) throw changed()
      if (change === null || (change !== 'nothing' && see(change))) return
    }
  }

  /** Blocks that are merged in a snapshot meanwhile are not here any more. */
  async #read({ stream, next, end }: StreamReading, limit: number): Promise<Uint8Array[]> {
    const blocks = await this.#deps.documents.read(stream, next, Math.min(limit, end - next))
    if (blocks.length === 0) throw changed()
    return [...blocks]
  }
}

function readingsOf(ends: FormerReplica['ends'], begun: Readonly<Record<StreamKey, number>>): StreamReading[] {
  return [...ends].map(([stream, end]) => ({ stream, end, next: begun[stream] ?? 0, blocks: [], at: 0 }))
}

function changed(): NodeError {
  return passingConflict('the blocks of the document changed while its history was read')
}
