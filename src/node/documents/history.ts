import { NodeError, passingConflict } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shellWord, shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { HistoryChange, HistoryReplay } from '../../domain/document/history/replay.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { DocumentChangeInfo, DocumentHistoryInfo, DocumentPartInfo } from '../../ports/document-api.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { FormerReplica } from './document-replica.js'
import type { Directory } from '../cards/directory.js'
import type { NodeDeps } from '../dependencies.js'
import type { DocumentIndex } from './document-index.js'
import type { Documents } from './documents.js'
import { type LocalStreams, openTimedBlock } from './local-streams.js'
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
/** Characters of a stream's key in the name of a change. */
const KEY_CHARACTERS = 8
/** Characters of a part's name. */
const NAME_CHARACTERS = 64
/** Largest time of a Date, in milliseconds. */
const MAX_TIME = 8.64e15
const ISO = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}(?:Z|[+-]\d\d:\d\d)$/
const ENTRY = /^([a-z0-9]{8,64})\/([1-9]\d{0,9})$/

/** Dependencies of {@link DocumentHistory}. */
export interface DocumentHistoryDeps {
  readonly documents: Pick<DocumentStreams, 'read' | 'size'>
  readonly known: Pick<DocumentIndex, 'idOf'>
  readonly own: Pick<LocalStreams, 'streamsOf'>
}

/** The node of {@link inPast}. */
interface HistoryNode {
  readonly self: NodeId
  readonly deps: Pick<NodeDeps, 'log'>
  readonly directory: Pick<Directory, 'ref'>
  readonly documents: Pick<Documents, 'history' | 'snapshots'>
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

  /** The streams of a document, those of this node that the log does not name yet included. */
  streamsOf({ name, streams }: Pick<DocumentRecord, 'name' | 'streams'>): StreamKey[] {
    return [...new Set([...streams.map(({ coreKey }) => coreKey), ...this.#deps.own.streamsOf(name)])]
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
      await this.#run(replay, {
        id: this.#deps.known.idOf(name),
        readings: readingsOf(ends, replica.vectorClock()),
        see
      })
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
      `the history has ${blocks} blocks (${Math.ceil(bytes / 1_048_576)} MiB): at most ${most} are read`,
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

/** A former state of an open document. */
export interface PastDocument {
  readonly record: DocumentRecord
  readonly open: OpenDocument
  readonly at: string
}

/** Names one block: a stream, and the place in it from 0 on. */
type ChangePlace = Pick<HistoryChange, 'stream' | 'index'>

/**
 * Gives `use` the document as it was at a change, and the change.
 * @throws NodeError INVALID_INPUT, AMBIGUOUS_NAME for the name of the change; as {@link DocumentHistory.replay}
 */
export async function inPast<T>(
  node: HistoryNode,
  past: PastDocument,
  use: (doc: HistoryReplay['doc'], change: DocumentChangeInfo) => T
): Promise<T> {
  const { name } = past.record
  const place = await placeOf(node, past)
  let change: HistoryChange | null = null
  const see = (one: HistoryChange): boolean => {
    if (one.stream !== place.stream || one.index !== place.index) return false
    change = one
    return true
  }
  return await node.documents.history.replay({ name, open: past.open }, see, (doc) => {
    if (change === null) throw missing(node, past, 'is no change that is here')
    return use(doc, changeInfo(node, name, change))
  })
}

/** The change that `at` names. @throws NodeError INVALID_INPUT, AMBIGUOUS_NAME */
async function placeOf(node: HistoryNode, past: PastDocument): Promise<ChangePlace> {
  const { at, open, record } = past
  const [, key, number] = ENTRY.exec(at) ?? []
  if (key !== undefined) return { stream: streamOf(node, past, key), index: Number(number) - 1 }
  const time = ISO.test(at) ? Date.parse(at) : Number.NaN
  if (Number.isNaN(time)) throw missing(node, past, 'is neither an entry of the history nor a time')
  let last: ChangePlace | null = null
  const see = (change: HistoryChange): boolean => {
    if (change.latest > time) return true
    last = change
    return false
  }
  await node.documents.history.replay({ name: record.name, open }, see, () => null)
  if (last === null) throw missing(node, past, 'is before the first change that is here')
  return last
}

/** The stream whose key begins so. The log may not name a stream of this node yet. */
function streamOf(node: HistoryNode, past: PastDocument, key: string): string {
  const { name } = past.record
  const matching = node.documents.history.streamsOf(past.record).filter((one) => one.startsWith(key))
  const [stream, second] = matching
  if (second !== undefined) {
    const candidates = matching.map((one) => one + past.at.slice(key.length))
    throw new NodeError('AMBIGUOUS_NAME', 'several streams of the document have a key that begins so', {
      data: { candidates },
      next: candidates.map((one) => `a2a-node doc show ${shellWord(name)} --at ${one}`)
    })
  }
  if (stream === undefined) throw missing(node, past, 'is no change that is here')
  return stream
}

function missing(node: HistoryNode, { at, record: { name } }: PastDocument, reason: string): NodeError {
  const merged = mergedOf(node, name) === null ? '' : '; older changes are merged in a snapshot'
  return new NodeError('INVALID_INPUT', `${shown(at)} ${reason}${merged}`, {
    next: [`a2a-node doc history ${shellWord(name)}`]
  })
}

/** The blocks of a document that are merged in a snapshot; null: none. */
export function mergedOf({ documents }: HistoryNode, name: string): DocumentHistoryInfo['merged'] {
  const { used: snapshots } = documents.snapshots
  const used = snapshots.of(name)
  if (used === null) return null
  const since = snapshots.sinceOf(name)
  return {
    blocks: Object.values(used.lengths).reduce((sum, length) => sum + length, 0),
    since: since === null ? null : new Date(since).toISOString()
  }
}

/** A change as the API gives it. */
export function changeInfo(node: HistoryNode, name: string, change: HistoryChange): DocumentChangeInfo {
  const { stream, index, at, added, removed, bytes, parts } = change
  const writer = node.deps.log
    .view()
    .documents.get(name)
    ?.streams.find(({ coreKey }) => coreKey === stream)
  return {
    entry: `${stream.slice(0, KEY_CHARACTERS)}/${index + 1}`,
    stream,
    // The log names every stream of another member before its blocks count.
    by: node.directory.ref(writer?.nodeKey ?? node.self),
    at: timeText(at),
    ...{ added, removed, bytes },
    parts: parts.map(partInfo)
  }
}

/** Peers choose the times: one beyond those of a date is the last one. */
function timeText(at: number): string {
  return new Date(Math.min(at, MAX_TIME)).toISOString()
}

/** A part with a name of bounded length. */
export function partInfo({ root, type }: DocumentPartInfo): DocumentPartInfo {
  return { root: root.slice(0, NAME_CHARACTERS), type }
}
