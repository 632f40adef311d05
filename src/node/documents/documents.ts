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

/** How long a document that nobody uses stays in memory, in milliseconds. */
const IDLE_MS = 30_000
/** How often is looked whether a document that is open should have a snapshot, in milliseconds. */
const SNAPSHOT_MS = 60_000

/** What the documents of a node need. */
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

/** The documents of the mesh, and those that are open here. */
export class Documents {
  /** Which there are, and who may what. */
  readonly known: DocumentIndex
  /** How much of them was here once. */
  readonly marks: DocumentMarks
  /** Which of them were whole here once. */
  readonly arrived: ArrivedDocuments
  readonly #deps: DocumentsDeps
  readonly #opened = new Map<string, Promise<OpenedDocument>>()
  /** Those of {@link #opened} that are open. */
  readonly #open = new Map<string, OpenedDocument>()
  readonly #uses = new DocumentUses<OpenedDocument>({ open: (name) => this.#openFor(name), letGo: (...one) => this.#released(...one) })
  readonly #changes: Emitter<void>
  readonly #forks: Forks
  readonly #own: LocalStreams
  /** Which of them are followed, and which are not. */
  readonly followed: ReplicationSet
  /** How much members make this node keep. */
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

  /** Begins to follow what this node may see. */
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

  /** Lets all go, once what was begun is done. */
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

  /** Told when the list of documents, or how much of them is here, may have changed. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** Is what is written kept here? */
  isFollowed(name: string): boolean {
    return this.followed.has(name)
  }

  /** Core of a snapshot in force that does not hold what it says; undefined: none. */
  wrongSnapshot(record: DocumentRecord): Promise<StreamKey | undefined> {
    return this.#snapshots.wrongOf(record)
  }

  /** Of the snapshot behind which its streams begin here. */
  snapshotBytes(name: string): number {
    const used = this.#snapshots.used.of(name)
    return used === null ? 0 : this.#deps.documents.size(used.coreKey).bytes
  }

  /** How a stream ended; null while it goes on, and where the document is not open. */
  stopOf(name: string, stream: StreamKey): string | null {
    if (this.#forks.has(stream)) return FORKED
    return this.#open.get(name)?.document.stops().get(stream)?.reason ?? null
  }

  /** What is told in `status`. */
  problems(): Problem[] {
    const damage = this.damage()
    // What members give cannot be taken into a damaged store.
    const shares = shareProblems(this, this.#deps.log.view())
    return [...(damage.length > 0 ? damage : this.marks.problems()), ...this.#forks.problems(), ...this.#snapshots.problems(), ...shares]
  }

  /** That their store is damaged, once that was noticed: how much is here of a document cannot be told then. */
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

  /**
   * Runs something on an open document; it stays open for a while after. @throws NodeError as `use`, or as opening does
   */
  async with<T>(name: string, use: (document: OpenDocument) => Promise<T>): Promise<T> {
    const { document, release } = await this.hold(name)
    try {
      return await use(document)
    } finally {
      release()
    }
  }

  /** An open document, until it is given back. Opening one that is not followed follows it again. */
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
    // It may have been let go in this very moment.
    if (this.#open.get(name) !== opened) return await this.#openFor(name)
    opened.holders++
    this.#deps.clock.clear(opened.idle)
    return opened
  }

  #released(name: string, opened: OpenedDocument): void {
    const rest = (): Promise<void> => this.#snapshots.offer(name, opened.document).then(() => this.#let(name, opened))
    if (--opened.holders === 0 && !this.#isClosed) opened.idle = this.#deps.clock.after(IDLE_MS, () => void rest())
  }

  /** Follows a document no longer, and removes what is here of it. Returns how many bytes that were. @throws NodeError CONFLICT while it is in use */
  async forget({ record: { name, streams } }: IndexedDocument): Promise<number> {
    const { documents } = this.#deps
    // Nothing is waited for before it is followed no longer: who wants it from then on waits until it is gone.
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
      // Of this stream others may have more than is here then.
      await this.#own.forget(name)
      await this.#removeBlocks(name, [...keys])
    })
    return bytes
  }

  /** Removes what is here of a document that is followed no longer. */
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
    // What had no room may have it now.
    this.#followAll()
    this.#changes.emit()
  }

  /** One that was opened by a node that might only read is opened anew once it may write. */
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
    // Yjs is loaded by nodes that use documents, and by no others.
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
      // Opens the cores of these streams: an unopened one has length 0. `mustBeHere` does it for the streams of others.
      await Promise.all(this.#own.unheardOf(name).map((stream) => documents.length(stream)))
      await this.#follow(name, opened)
    } catch (error) {
      // Half of it serves nobody.
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

  /** What cannot be kept is made of the streams again. */
  async #keepAndClose({ document }: OpenedDocument): Promise<void> {
    await document.keep().catch((error: unknown) => this.#failed(error))
    await document.close()
  }

  /** The view changed: what is followed, and how much of it counts. */
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

  /** What is due of snapshots. */
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
    // Of a stream that the log does not name yet others will see nothing either once the right to write is lost.
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

  /** What would be written to it counts nowhere: this node's home runs twice, its store was put back, or others end the stream. */
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

  /** An open document goes on with the stream that is to be written now. */
  async #moveOn(name: string): Promise<void> {
    const opened = this.#open.get(name)
    if (opened === undefined || opened.own === null || this.#own.nameOf(opened.own) === name) return
    const own = await this.#own.open(name, this.known.idOf(name))
    opened.own = own
    // It is followed also when the document cannot be made anew now: its next use does that.
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
