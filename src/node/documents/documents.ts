import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf, NodeError, STOP_AND_REPAIR } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { Audit } from '../../ports/audit.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { Ledger } from '../../ports/ledger.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { AbandonedDocuments, shareProblems, DocumentUses } from './left-documents.js'
import { ArrivedDocuments } from './initial-sync.js'
import { countedStreams, memberAccess } from './access.js'
import { Forks, FORKED, tellStop } from './forks.js'
import { openBlock, sealBlock, LocalStreams } from './local-streams.js'
import { DocumentShares } from './shares.js'
import { DocumentSnapshots } from './snapshots/snapshots.js'
import type { NodeEvents } from '../observe/events.js'
import { FetchShare } from './fetch-share.js'
import { ReplicationSet } from './replication-set.js'
import { keptDocument } from './local-cache.js'
import { type IndexedDocument, DocumentIndex } from './document-index.js'
import { DocumentMarks } from './marks.js'
import { OpenDocument } from './open-document.js'
import type { PeerTable } from '../peers/peer-table.js'

/** How long an unused document stays in memory, in milliseconds. */
const IDLE_MS = 30_000
/** Interval between the checks whether an open document is due for a snapshot, in milliseconds. */
const SNAPSHOT_MS = 60_000

/** Dependencies of {@link Documents}. */
export interface DocumentsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly store: NodeStore
  readonly ledger: Pick<Ledger, 'get' | 'commit'>
  readonly log: MemberLog
  readonly membership: Membership
  readonly documents: DocumentStreams
  readonly audit: Audit
  readonly self: NodeId
  readonly peers: Pick<PeerTable, 'isAlone'>
}

interface OpenedDocument {
  readonly document: OpenDocument
  own: StreamKey | null
  holders: number
  idle: Timer | null
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
  readonly #opened = new Map<string, Promise<OpenedDocument>>()
  /** The entries of {@link #opened} whose opening is done. */
  readonly #open = new Map<string, OpenedDocument>()
  readonly #uses = new DocumentUses<OpenedDocument>({ open: (name) => this.#openFor(name), letGo: (...one) => this.#released(...one) })
  readonly #changes: Emitter<void>
  readonly #forks: Forks
  readonly #own: LocalStreams
  /** Which documents are followed. */
  readonly followed: ReplicationSet
  /** How many bytes each member makes this node keep. */
  readonly shares: DocumentShares
  readonly #abandoned: AbandonedDocuments
  readonly #snapshots: DocumentSnapshots
  #timer: Timer | null = null
  #stopLog: Unsubscribe = () => {}
  #isClosed = false

  constructor(deps: DocumentsDeps) {
    this.#deps = deps
    const onError = (error: unknown): void => this.#failed(error)
    const onChange = (): void => this.#changes.emit()
    const common = { ...deps, onError, onChange, isForked: (stream: StreamKey) => this.#forks.has(stream) }
    this.#changes = new Emitter(onError)
    this.known = new DocumentIndex(deps)
    this.#forks = new Forks(deps)
    this.#own = new LocalStreams({ ...common, onLost: (...lost) => this.marks.expect(...lost) })
    this.#snapshots = new DocumentSnapshots({
      ...deps,
      idOf: (name) => this.known.idOf(name),
      isFollowed: (name) => this.isFollowed(name),
      open: (name, bytes) => openBlock(bytes, this.known.idOf(name)),
      onBegun: (name, isOther) => this.#onBegun(name, isOther)
    })
    this.arrived = new ArrivedDocuments({ ...common, used: this.#snapshots.used, hasUnheard: (name) => this.#own.hasUnheard(name) })
    this.marks = new DocumentMarks({ ...common, own: this.#own })
    this.shares = new DocumentShares(common)
    this.followed = new ReplicationSet({
      ...common,
      shares: this.shares,
      fetching: new FetchShare({ ...deps, isAlone: (peer) => deps.peers.isAlone(peer) }),
      isOpen: (name) => this.#open.has(name),
      hasArrived: (name) => this.arrived.has(name),
      ownOf: (name) => this.#own.streamsOf(name),
      snapshotsOf: (record) => this.#snapshots.used.coresOf(record)
    })
    this.#abandoned = new AbandonedDocuments({
      ...common,
      shares: this.shares,
      followed: this.followed,
      marks: this.marks,
      isInUse: (name) => this.#uses.has(name),
      remove: (name, streams) => this.#removeBlocks(name, streams)
    })
  }

  /** Starts to follow the documents that this node may see. */
  async start(): Promise<void> {
    const { documents, log } = this.#deps
    await this.shares.start()
    await this.followed.start()
    await this.arrived.start()
    await this.marks.start()
    await this.#own.start()
    await this.#snapshots.used.start()
    documents.start({
      onBlocks: (stream) => this.#onBlocks(stream),
      onFetched: (stream) => this.#onFetched(stream),
      onForked: (stream) => this.#onForked(stream)
    })
    this.#stopLog = log.onChange(() => this.#review())
    this.#review()
    this.#timer = this.#deps.clock.every(SNAPSHOT_MS, () => this.#snapshot())
  }

  /** Closes all documents after pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#own.quieten()
    this.#stopLog()
    this.#deps.clock.clear(this.#timer)
    await this.#abandoned.close()
    await this.#snapshots.close()
    const opened = await Promise.allSettled(this.#opened.values())
    for (const one of opened) {
      if (one.status !== 'fulfilled') continue
      this.#deps.clock.clear(one.value.idle)
      await this.#keepAndClose(one.value)
    }
    await this.marks.close()
    await this.arrived.close()
    await this.shares.close()
    await this.followed.close()
  }

  /** Calls back when the list of documents, or the stored part of one, may have changed. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** True when this node keeps the blocks of a document. */
  isFollowed(name: string): boolean {
    return this.followed.has(name)
  }

  /** Core of a snapshot in force whose content does not match the log; undefined when there is none. */
  wrongSnapshot(record: DocumentRecord): Promise<StreamKey | undefined> {
    return this.#snapshots.wrongOf(record)
  }

  /** Stored bytes of the snapshot behind which the document's streams begin here. */
  snapshotBytes(name: string): number {
    const used = this.#snapshots.used.of(name)
    return used === null ? 0 : this.#deps.documents.size(used.coreKey).bytes
  }

  /** How a stream ended; null while it goes on, and when the document is not open. */
  stopOf(name: string, stream: StreamKey): string | null {
    if (this.#forks.has(stream)) return FORKED
    return this.#open.get(name)?.document.stops().get(stream)?.reason ?? null
  }

  /** The problems of documents, for `status`. */
  problems(): Problem[] {
    const damage = this.damage()
    // A damaged store takes in no blocks of members.
    const shares = shareProblems(this, this.#deps.log.view())
    return [...(damage.length > 0 ? damage : this.marks.problems()), ...this.#forks.problems(), ...this.#snapshots.problems(), ...shares]
  }

  /** The damage of the document store, once noticed. Until a repair the stored part of a document is unknown. */
  damage(): Problem[] {
    const { fault } = this.#deps.documents
    if (fault === null) return []
    return [
      {
        code: fault.code,
        message: `${fault.message}; shared documents that cannot be read are refused, and a repair takes over all others`,
        next: STOP_AND_REPAIR
      }
    ]
  }

  /** Runs `use` on an open document, which stays open for a while after. @throws NodeError as `use`, or as opening does */
  async with<T>(name: string, use: (document: OpenDocument) => Promise<T>): Promise<T> {
    const { document, release } = await this.hold(name)
    try {
      return await use(document)
    } finally {
      release()
    }
  }

  /** Opens a document until `release`. A document that is not followed is followed again. */
  async hold(name: string): Promise<{ readonly document: OpenDocument; release(): void }> {
    const { opened, release } = await this.#uses.hold(name)
    return { document: opened.document, release }
  }

  async #openFor(name: string): Promise<OpenedDocument> {
    if (!this.isFollowed(name)) {
      await this.followed.add(name)
      this.#review()
    }
    this.followed.use(name)
    await this.#renew(name)
    const opening = this.#opened.get(name) ?? this.#openNow(name)
    this.#opened.set(name, opening)
    const opened = await opening
    // It may have been closed while it was opened.
    if (this.#open.get(name) !== opened) return await this.#openFor(name)
    opened.holders++
    this.#deps.clock.clear(opened.idle)
    return opened
  }

  #released(name: string, opened: OpenedDocument): void {
    const rest = (): Promise<void> => this.#snapshots.offer(name, opened.document).then(() => this.#let(name, opened))
    if (--opened.holders === 0 && !this.#isClosed) opened.idle = this.#deps.clock.after(IDLE_MS, () => void rest())
  }

  /** Stops following a document and removes its blocks here. Returns the number of removed bytes. @throws NodeError CONFLICT while it is in use */
  async forget({ record: { name, streams } }: IndexedDocument): Promise<number> {
    const { documents } = this.#deps
    // No await comes before the document is no longer followed: a later opener waits until the blocks are removed.
    if (this.#uses.has(name)) throw new NodeError('CONFLICT', 'the document is in use here')
    const opened = this.#open.get(name)
    const keys = new Set([
      ...streams.map(({ coreKey }) => coreKey),
      ...(opened === undefined || opened.own === null ? [] : [opened.own]),
      ...this.#own.unheardOf(name)
    ])
    const bytes = [...keys].reduce((sum, stream) => sum + documents.size(stream).bytes, this.snapshotBytes(name))
    this.arrived.forget(name)
    await this.followed.forget(name, async () => {
      if (opened !== undefined) await this.#let(name, opened)
      // Peers may then hold more blocks of this stream than this node.
      await this.#own.forget(name)
      await this.#removeBlocks(name, [...keys])
    })
    return bytes
  }

  /** Removes the local blocks of a document that is no longer followed. */
  async #removeBlocks(name: string, streams: readonly StreamKey[]): Promise<void> {
    const { documents, log } = this.#deps
    const record = log.view().documents.get(name)
    const snapshots = record === undefined ? [] : this.#snapshots.used.coresOf(record)
    this.#review()
    await this.marks.forget(name)
    await this.#snapshots.forget(name)
    await documents.remove(streams)
    await documents.keep(this.known.idOf(name), null)
    this.shares.release([...streams, ...snapshots])
    if (this.#isClosed) return
    // Documents that had no room before may have room now.
    this.#followAll()
    this.#changes.emit()
  }

  /** Reopens a document that was opened without the right to write, once this node may write it. */
  async #renew(name: string): Promise<void> {
    const { log, self } = this.#deps
    const record = log.view().documents.get(name)
    const opened = this.#open.get(name)
    if (opened?.own === null && record !== undefined && memberAccess(log.view(), record, self).mayWrite) await this.#let(name, opened)
  }

  #openNow(name: string): Promise<OpenedDocument> {
    return this.#opening(name).catch((error: unknown) => {
      this.#opened.delete(name)
      throw error
    })
  }

  async #opening(name: string): Promise<OpenedDocument> {
    const { documents, log, self, hash } = this.#deps
    const record = log.view().documents.get(name)
    if (record === undefined) throw new NodeError('DOCUMENT_NOT_FOUND', `no document "${shown(name)}"`)
    // Only nodes that use documents load Yjs.
    const { Replica } = await import('../../domain/document/replica.js')
    const id = this.known.idOf(name)
    const mayWrite = memberAccess(log.view(), record, self).mayWrite
    const own = mayWrite ? await this.#own.open(name, id) : null
    const document = new OpenDocument({
      make: (stream) => new Replica({ guid: id, hash, own: stream }),
      streams: {
        read: (stream, from, limit) => documents.read(stream, from, limit),
        size: (stream) => documents.size(stream),
        append: (stream, blocks) => this.#append(name, stream, blocks)
      },
      own,
      written: (stream) => this.#own.blocksOf(stream),
      mustHavePlace: (stream) => this.#own.mustHavePlace(name, stream),
      base: () => this.#snapshots.used.base(log.view().documents.get(name) ?? record),
      kept: keptDocument(id, { hash, documents, onError: (error) => this.#failed(error) }),
      seal: (block) => this.#seal(id, block),
      open: (bytes) => openBlock(bytes, id),
      onStop: (stop) => this.#onStop(name, stop),
      onWritten: (stream) => this.#own.announce(name, stream),
      onError: (error) => this.#failed(error)
    })
    const opened: OpenedDocument = { document, own, holders: 0, idle: null }
    this.#open.set(name, opened)
    try {
      await this.#moveOn(name)
      this.#review()
      // Opens the cores of these streams: an unopened one has length 0. `mustBeHere` opens the streams of other members.
      await Promise.all(this.#own.unheardOf(name).map((stream) => documents.length(stream)))
      await this.#follow(name, opened)
    } catch (error) {
      // A document that failed to open is unusable.
      this.#open.delete(name)
      await document.close()
      throw error
    }
    return opened
  }

  #seal(document: string, block: Uint8Array): Uint8Array {
    const { clock, ids, membership, self } = this.#deps
    return sealBlock(block, { document, self, ids, tier: membership.certificate().body.maxTier, at: clock.now() })
  }

  async #let(name: string, opened: OpenedDocument): Promise<void> {
    if (opened.holders > 0 || this.#open.get(name) !== opened) return
    this.#open.delete(name)
    this.#opened.delete(name)
    this.#deps.clock.clear(opened.idle)
    await this.#keepAndClose(opened)
  }

  /** Closes a document. A document that cannot be cached is rebuilt from its streams. */
  async #keepAndClose({ document }: OpenedDocument): Promise<void> {
    await document.keep().catch((error: unknown) => this.#failed(error))
    await document.close()
  }

  /** The view changed: updates the followed documents and their counted blocks. */
  #review(): void {
    if (this.#isClosed) return
    this.#snapshots.note()
    this.#own.announceAll()
    this.#followAll()
    for (const [name, opened] of this.#open) this.#follow(name, opened).catch((error: unknown) => this.#failed(error))
    this.#snapshots.review()
    this.#changes.emit()
  }

  #followAll(): void {
    const streams = this.followed.streams(this.#deps.log.view())
    this.#deps.documents.follow(streams)
    this.marks.follow(streams)
    this.#abandoned.review()
  }

  /** Takes and makes the snapshots that are due. */
  #snapshot(): void {
    this.#snapshots.review()
    for (const [name, { document }] of this.#open) void this.#snapshots.offer(name, document)
  }

  #onBegun(name: string, isOther: boolean): void {
    this.#open.get(name)?.document.onBegun(isOther)
    if (this.#isClosed) return
    this.#followAll()
    this.#changes.emit()
  }

  async #follow(name: string, { document, own }: OpenedDocument): Promise<void> {
    const view = this.#deps.log.view()
    const record = view.documents.get(name)
    if (record === undefined) return
    const counted = countedStreams(view, record)
    for (const stream of counted.keys()) if (this.#forks.has(stream)) document.onForked(stream, FORKED)
    // Others ignore a stream that the log does not name yet, too, once the right to write is lost.
    const { mayWrite } = memberAccess(view, record, this.#deps.self)
    const unheard = own === null ? [] : [own, ...this.#own.unheardOf(name)]
    for (const stream of unheard) if (!counted.has(stream)) counted.set(stream, mayWrite ? Number.POSITIVE_INFINITY : 0)
    await document.follow(counted)
  }

  #onBlocks(stream: StreamKey): void {
    for (const [name, { document, own }] of this.#open) {
      const streams = this.#deps.log.view().documents.get(name)?.streams ?? []
      if (stream === own || streams.some(({ coreKey }) => coreKey === stream)) document.onBlocks(stream)
    }
    this.#snapshots.onBlocks(stream)
    this.marks.due()
    this.#changes.emit()
  }

  #onFetched(stream: StreamKey): void {
    this.#leaveOwn(stream, 'others have more of the former one than was here')
  }

  #onForked(stream: StreamKey): void {
    this.#forks.add(stream)
    this.#leaveOwn(stream, 'this node signed two different blocks at one place')
    for (const [name, { document }] of this.#open) {
      const streams = this.#deps.log.view().documents.get(name)?.streams ?? []
      if (streams.some(({ coreKey }) => coreKey === stream)) document.onForked(stream, FORKED)
    }
    this.#changes.emit()
  }

  #onStop(name: string, stop: StreamStop): void {
    tellStop(this.#deps, name, stop)
    this.#leaveOwn(stop.stream, stop.reason)
  }

  /** Leaves an own stream whose new blocks would not count: this home runs twice, its store was put back, or others end the stream. */
  #leaveOwn(stream: StreamKey, reason: string): void {
    const name = this.#own.nameOf(stream)
    if (name === null) return
    this.marks.left(name, stream)
    this.#deps.telemetry.log('warn', 'this node goes on with another stream of a document', { document: shown(name), reason })
    this.#own
      .leave(name)
      .then(() => this.#moveOn(name))
      .catch((error: unknown) => this.#failed(error))
  }

  /** Moves an open document to the stream that is written now. */
  async #moveOn(name: string): Promise<void> {
    const opened = this.#open.get(name)
    if (opened === undefined || opened.own === null || this.#own.nameOf(opened.own) === name) return
    const own = await this.#own.open(name, this.known.idOf(name))
    opened.own = own
    // Follow the new stream even when the rebuild fails now: the next use rebuilds the document.
    await opened.document.goOn(own).finally(() => this.#review())
  }

  async #append(name: string, stream: StreamKey, blocks: readonly Uint8Array[]): Promise<void> {
    if (this.#own.nameOf(stream) !== name)
      throw new NodeError('CONFLICT', 'this node goes on with another stream of the document: try again')
    await this.#own.wrote(name, stream, await this.#deps.documents.append(stream, blocks))
  }

  #failed(error: unknown): void {
    if (!this.#isClosed) this.#deps.telemetry.log('error', 'a document', { reason: messageOf(error) })
  }
}
