import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf, NodeError, STOP_AND_REPAIR } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { Ledger } from '../../ports/ledger.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { AbandonedDocuments, leftProblems } from './left-documents.js'
import { ArrivedDocuments } from './initial-sync.js'
import { type Forks, FORKED } from './forks.js'
import { openBlock, LocalStreams } from './local-streams.js'
import { DocumentShares } from './shares.js'
import { DocumentSnapshots } from './snapshots/snapshots.js'
import { DocumentHistory } from './history.js'
import { FetchShare } from './fetch-share.js'
import { ReplicationSet } from './replication-set.js'
import { type IndexedDocument, DocumentIndex } from './document-index.js'
import { DocumentMarks } from './marks.js'
import type { OpenDocument } from './open-document.js'
import { OpenDocuments } from './open-documents.js'
import type { PeerTable } from '../peers/peer-table.js'

/** Interval between the checks whether an open document is due for a snapshot, in milliseconds. */
const SNAPSHOT_MS = 60_000

/** Dependencies of {@link Documents}. */
export interface DocumentsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly ledger: Pick<Ledger, 'get' | 'commit'>
  readonly log: MemberLog
  readonly membership: Membership
  readonly documents: DocumentStreams
  readonly self: NodeId
  readonly peers: Pick<PeerTable, 'isAlone'>
  readonly forks: Forks
}

/** The documents of the mesh, and the open ones of this node. */
export class Documents {
  /** The documents that the log names, and the rights on them. */
  readonly known: DocumentIndex
  /** How many blocks of each document were stored here once. */
  readonly marks: DocumentMarks
  /** The documents that were complete here once. */
  readonly arrived: ArrivedDocuments
  readonly #deps: DocumentsDeps
  readonly #changes: Emitter<void>
  readonly #open: OpenDocuments
  readonly #own: LocalStreams
  /** Which documents are followed. */
  readonly followed: ReplicationSet
  /** How many bytes each member makes this node keep. */
  readonly shares: DocumentShares
  readonly #removal: DocumentRemoval
  readonly #abandoned: AbandonedDocuments
  /** Their snapshots. */
  readonly snapshots: DocumentSnapshots
  /** Their former states. */
  readonly history: DocumentHistory
  #timer: Timer | null = null
  #stopLog: Unsubscribe = () => {}
  #isClosed = false

  constructor(deps: DocumentsDeps) {
    this.#deps = deps
    const onError = (error: unknown): void => this.#failed(error)
    const onChange = (): void => this.#changes.emit()
    const common = { ...deps, onError, onChange, isForked: (stream: StreamKey) => deps.forks.has(stream) }
    this.#changes = new Emitter(onError)
    this.known = new DocumentIndex(deps)
    this.#own = new LocalStreams({ ...common, known: this.known, onLost: (...lost) => this.marks.expect(...lost) })
    this.snapshots = this.#newSnapshots()
    this.history = new DocumentHistory({ ...deps, known: this.known, own: this.#own })
    this.arrived = new ArrivedDocuments({
      ...common,
      used: this.snapshots.used,
      hasUnheard: (name) => this.#own.hasUnheard(name)
    })
    this.marks = new DocumentMarks({ ...common, own: this.#own })
    this.shares = new DocumentShares(common)
    this.followed = new ReplicationSet({
      ...common,
      shares: this.shares,
      fetching: new FetchShare({ ...deps, isAlone: (peer) => deps.peers.isAlone(peer) }),
      isOpen: (name) => this.#open.find(name) !== undefined,
      hasArrived: (name) => this.arrived.has(name),
      ownOf: (name) => this.#own.streamsOf(name),
      snapshotsOf: (record) => this.snapshots.used.coresOf(record)
    })
    this.#open = this.#newOpenDocuments(onError)
    this.#removal = this.#newRemoval()
    this.#abandoned = new AbandonedDocuments({
      ...common,
      shares: this.shares,
      followed: this.followed,
      marks: this.marks,
      isInUse: (name) => this.#open.isInUse(name),
      remove: (record) => this.#removal.remove(record)
    })
  }

  #newSnapshots(): DocumentSnapshots {
    return new DocumentSnapshots({
      ...this.#deps,
      idOf: (name) => this.known.idOf(name),
      isFollowed: (name) => this.isFollowed(name),
      open: (name, bytes) => openBlock(bytes, this.known.idOf(name)),
      onBegun: (name, isOther) => this.#onBegun(name, isOther)
    })
  }

  #newOpenDocuments(onError: (error: unknown) => void): OpenDocuments {
    return new OpenDocuments({
      ...this.#deps,
      known: this.known,
      followed: this.followed,
      own: this.#own,
      snapshots: this.snapshots,
      onReview: () => this.#review(),
      onStop: (name, stop) => this.#onStop(name, stop),
      onError
    })
  }

  #newRemoval(): DocumentRemoval {
    return new DocumentRemoval({
      ...{ known: this.known, arrived: this.arrived, marks: this.marks, shares: this.shares },
      ...{ documents: this.#deps.documents, own: this.#own, open: this.#open, snapshots: this.snapshots },
      onUnfollowed: () => this.#review(),
      onRemoved: () => this.#followAgain()
    })
  }

  /** Starts to follow the documents that this node may see. */
  async start(): Promise<void> {
    const { documents, log } = this.#deps
    const stored = [this.shares, this.followed, this.arrived, this.marks, this.#own, this.snapshots.used]
    for (const one of stored) await one.start()
    documents.start({
      onBlocks: (stream) => this.#onBlocks(stream),
      onFetched: (stream) => this.#leaveOwn(stream, 'others have more of the former one than was here'),
      onForked: (stream) => this.#onForked(stream)
    })
    this.#stopLog = log.onChange(() => this.#review())
    this.#review()
    this.#timer = this.#deps.clock.every(SNAPSHOT_MS, () => {
      this.snapshots.review()
      this.#open.offerSnapshots()
    })
  }

  /** Closes all documents after pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#own.quieten()
    this.#stopLog()
    this.#deps.clock.clear(this.#timer)
    const parts = [this.#abandoned, this.snapshots, this.#open, this.marks, this.arrived, this.shares, this.followed]
    for (const one of parts) await one.close()
  }

  /** Calls back when the list of documents, or the stored part of one, may have changed. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** True when this node keeps the blocks of a document. */
  isFollowed(name: string): boolean {
    return this.followed.has(name)
  }

  /** Stored bytes of the snapshot behind which the document's streams begin here. */
  snapshotBytes(name: string): number {
    return this.snapshots.used.bytesOf(name)
  }

  /** How a stream ended; null while it goes on, and when the document is not open. */
  stopOf(name: string, stream: StreamKey): string | null {
    return this.#deps.forks.has(stream) ? FORKED : (this.#open.find(name)?.document.stops.get(stream)?.reason ?? null)
  }

  /** The problems of documents, for `status`. */
  problems(): Problem[] {
    const { forks, log } = this.#deps
    const stored = this.damage().length > 0 ? this.damage() : this.marks.problems()
    // A damaged store takes in no blocks of members.
    return [
      ...stored,
      ...this.#own.problems(),
      ...forks.problems(),
      ...this.snapshots.problems(),
      ...leftProblems(this, log.view())
    ]
  }

  /** The damage of the document store, once noticed. Until a repair the stored part of a document is unknown. */
  damage(): Problem[] {
    return damageOf(this.#deps.documents)
  }

  /**
   * Runs `use` on an open document, which stays open for a while after.
   * @throws NodeError as `use`, or as opening does
   */
  async with<T>(name: string, use: (document: OpenDocument) => Promise<T>): Promise<T> {
    const { document, release } = await this.hold(name)
    try {
      return await use(document)
    } finally {
      release()
    }
  }

  /** Opens a document until `release`. A document that is not followed is followed again. */
  hold(name: string): ReturnType<OpenDocuments['hold']> {
    return this.#open.hold(name)
  }

  /**
   * Stops following a document and removes its blocks here. Returns the number of removed bytes.
   * @throws NodeError CONFLICT while it is in use
   */
  async forget({ record }: IndexedDocument): Promise<number> {
    // No await comes before the document is no longer followed: a later opener waits until the blocks are removed.
    if (this.#open.isInUse(record.name)) throw new NodeError('CONFLICT', 'the document is in use here')
    const sizes = this.#removal.streamsOf(record).map((stream) => this.#deps.documents.size(stream).bytes)
    const bytes = sizes.reduce((sum, size) => sum + size, this.snapshotBytes(record.name))
    await this.followed.forget(record.name, () => this.#removal.remove(record))
    return bytes
  }

  /** The view changed: updates the followed documents and their counted blocks. */
  #review(): void {
    if (this.#isClosed) return
    this.snapshots.note()
    this.#own.announceAll()
    this.#followAll()
    this.#open.review()
    this.snapshots.review()
    this.#changes.emit()
  }

  #followAgain(): void {
    if (this.#isClosed) return
    this.#followAll()
    this.#changes.emit()
  }

  #followAll(): void {
    const streams = this.followed.streams(this.#deps.log.view())
    this.#deps.documents.follow(streams)
    this.marks.follow(streams)
    this.#abandoned.review()
  }

  #onBegun(name: string, isOther: boolean): void {
    this.#open.find(name)?.document.onBegun(isOther)
    this.#followAgain()
  }

  #onBlocks(stream: StreamKey): void {
    this.#open.onBlocks(stream)
    this.snapshots.onBlocks(stream)
    this.marks.due()
    this.#changes.emit()
  }

  #onForked(stream: StreamKey): void {
    this.#deps.forks.add(stream)
    this.#leaveOwn(stream, 'this node signed two different blocks at one place')
    this.#open.onForked(stream)
    this.#changes.emit()
  }

  #onStop(name: string, stop: StreamStop): void {
    this.#deps.forks.reportStop(name, stop)
    this.#leaveOwn(stop.stream, stop.reason)
  }

  #leaveOwn(stream: StreamKey, reason: string): void {
    const parts = { own: this.#own, marks: this.marks, open: this.#open, telemetry: this.#deps.telemetry }
    leaveOwn(parts, stream, reason)?.catch((error: unknown) => this.#failed(error))
  }

  #failed(error: unknown): void {
    if (!this.#isClosed) this.#deps.telemetry.log('error', 'a document', { reason: messageOf(error) })
  }
}

interface LeavingDeps extends Pick<Documents, 'marks'> {
  readonly own: LocalStreams
  readonly open: OpenDocuments
  readonly telemetry: Telemetry
}

/**
 * Leaves an own stream whose new blocks would not count: this home runs twice, its store was put back, or others end
 * the stream. Resolves when the document goes on with another one; null: it is no stream of this node.
 */
function leaveOwn(
  { own, marks, open, telemetry }: LeavingDeps,
  stream: StreamKey,
  reason: string
): Promise<void> | null {
  const name = own.nameOf(stream)
  if (name === null) return null
  marks.left(name, stream)
  telemetry.log('warn', 'this node goes on with another stream of a document', { document: shown(name), reason })
  return own.leave(name).then(() => open.goOn(name))
}

interface RemovalDeps extends Pick<Documents, 'known' | 'arrived' | 'marks' | 'shares'> {
  readonly documents: DocumentStreams
  readonly own: LocalStreams
  readonly open: OpenDocuments
  readonly snapshots: DocumentSnapshots
  /** The streams of a document are given up, and about to be removed. */
  onUnfollowed(): void
  /** There may be room for other documents now. */
  onRemoved(): void
}

/** Removes the stored parts of documents that are no longer followed. */
class DocumentRemoval {
  readonly #deps: RemovalDeps

  constructor(deps: RemovalDeps) {
    this.#deps = deps
  }

  /** The streams of a document, those of this node that the log does not name included. */
  streamsOf({ name, streams }: DocumentRecord): StreamKey[] {
    return [...new Set([...streams.map(({ coreKey }) => coreKey), ...this.#deps.own.streamsOf(name)])]
  }

  async remove(record: DocumentRecord): Promise<void> {
    const { name } = record
    const { known, arrived, marks, shares, documents, own, open, snapshots } = this.#deps
    const streams = this.streamsOf(record)
    arrived.forget(name)
    await open.letGo(name)
    // Peers may then hold more blocks of this stream than this node.
    await own.forget(name)
    const cores = snapshots.used.coresOf(record)
    this.#deps.onUnfollowed()
    await marks.forget(name)
    await snapshots.forget(name)
    await documents.remove(streams)
    await documents.keep(known.idOf(name), null)
    shares.release([...streams, ...cores])
    this.#deps.onRemoved()
  }
}

function damageOf({ fault }: Pick<DocumentStreams, 'fault'>): Problem[] {
  const effect = 'shared documents that cannot be read are refused, and a repair takes over all others'
  return fault === null ? [] : [{ code: fault.code, message: `${fault.message}; ${effect}`, next: STOP_AND_REPAIR }]
}
