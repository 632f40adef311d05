import type { Clock, Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Hash } from '../../kit/sign.js'
import { shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import { countedStreams } from './access.js'
import type { DocumentIndex } from './document-index.js'
import { DocumentReplica } from './document-replica.js'
import { FORKED, type Forks } from './forks.js'
import { keptDocument } from './local-cache.js'
import { type LocalStreams, openBlock } from './local-streams.js'
import { OpenDocument } from './open-document.js'
import type { ReplicationSet } from './replication-set.js'
import type { DocumentSnapshots } from './snapshots/snapshots.js'

/** How long an unused document stays in memory, in milliseconds. */
const IDLE_MS = 30_000

/** Dependencies of {@link OpenDocuments}. */
export interface OpenDocumentsDeps {
  readonly clock: Clock
  readonly hash: Hash
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'read' | 'size' | 'length' | 'kept' | 'keep'>
  readonly known: Pick<DocumentIndex, 'idOf'>
  readonly own: Pick<
    LocalStreams,
    'announce' | 'append' | 'blocksOf' | 'mayWrite' | 'mustHavePlace' | 'nameOf' | 'open' | 'unheardOf'
  >
  readonly followed: Pick<ReplicationSet, 'has' | 'add' | 'use'>
  readonly forks: Pick<Forks, 'has'>
  readonly snapshots: Pick<DocumentSnapshots, 'offer'> & { readonly used: Pick<DocumentSnapshots['used'], 'base'> }
  /** Called when the followed documents, or their streams, may have changed. */
  onReview(): void
  /** Called when a stream of a document ends at a block, with the reason. */
  onStop(name: string, stop: StreamStop): void
  /** Called when background work of a document failed. */
  onError(error: unknown): void
}

interface OpenedDocument {
  readonly document: OpenDocument
  /** The own stream that is written now; null when this node may not write. */
  own: StreamKey | null
  holders: number
  idle: Timer | null
}

/** The documents in memory. A document is opened for its first use, and closed a while after the last one. */
export class OpenDocuments {
  readonly #deps: OpenDocumentsDeps
  /**
   * The number of uses of each document. A use begins when a caller asks for the document, not when it is open: a
   * document removed in between would be open without its blocks.
   */
  readonly #uses = new Map<string, number>()
  readonly #opened = new Map<string, Promise<OpenedDocument>>()
  /** The entries of {@link #opened} whose opening is done. */
  readonly #open = new Map<string, OpenedDocument>()
  #isClosed = false

  constructor(deps: OpenDocumentsDeps) {
    this.#deps = deps
  }

  /** True while a caller uses a document, or waits until it is open. */
  isInUse(name: string): boolean {
    return this.#uses.has(name)
  }

  /** A document in memory, and the own stream that is written now; undefined for any other. */
  find(name: string): Readonly<Pick<OpenedDocument, 'document' | 'own'>> | undefined {
    return this.#open.get(name)
  }

  /** More of a stream is here. */
  onBlocks(stream: StreamKey): void {
    for (const [name, { document, own }] of this.#open)
      if (stream === own || this.#isNamed(name, stream)) document.onBlocks(stream)
  }

  /** Two branches of a stream were found. */
  onForked(stream: StreamKey): void {
    for (const [name, { document }] of this.#open) if (this.#isNamed(name, stream)) document.onForked(stream, FORKED)
  }

  /** Opens a document until `release`. A document that is not followed is followed again. Rejects as opening does. */
  async hold(name: string): Promise<{ readonly document: OpenDocument; release(): void }> {
    this.#use(name, 1)
    try {
      const opened = await this.#openFor(name)
      let isInUse = true
      const release = (): void => {
        if (!isInUse) return
        isInUse = false
        this.#use(name, -1)
        this.#released(name, opened)
      }
      return { document: opened.document, release }
    } catch (error) {
      this.#use(name, -1)
      throw error
    }
  }

  /** Updates the counted blocks of all documents in memory. */
  review(): void {
    for (const [name, opened] of this.#open) this.#follow(name, opened).catch(this.#deps.onError)
  }

  /** Makes the snapshots that are due. */
  offerSnapshots(): void {
    for (const [name, { document }] of this.#open) void this.#deps.snapshots.offer(name, document)
  }

  /** Moves a document in memory to the stream that is written now, when its former one was left. */
  async goOn(name: string): Promise<void> {
    const { onReview, own: streams } = this.#deps
    const opened = this.#open.get(name)
    if (opened === undefined || opened.own === null || streams.nameOf(opened.own) === name) return
    const own = await streams.open(name)
    opened.own = own
    // Follow the new stream even when the rebuild fails now: the next use rebuilds the document.
    await opened.document.goOn(own).finally(onReview)
  }

  /** Closes a document unless it is held. */
  async letGo(name: string): Promise<void> {
    const opened = this.#open.get(name)
    if (opened !== undefined) await this.#let(name, opened)
  }

  /** Closes all documents after pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    const opened = await Promise.allSettled(this.#opened.values())
    for (const one of opened) {
      if (one.status !== 'fulfilled') continue
      this.#deps.clock.clear(one.value.idle)
      await this.#keepAndClose(one.value)
    }
  }

  #use(name: string, change: 1 | -1): void {
    const uses = (this.#uses.get(name) ?? 0) + change
    if (uses > 0) this.#uses.set(name, uses)
    else this.#uses.delete(name)
  }

  async #openFor(name: string): Promise<OpenedDocument> {
    const { clock, followed, onReview, own } = this.#deps
    if (!followed.has(name)) {
      await followed.add(name)
      onReview()
    }
    followed.use(name)
    // A document that was opened without the right to write is opened again once this node may write it.
    if (this.#open.get(name)?.own === null && own.mayWrite(name)) await this.letGo(name)
    const opening = this.#opened.get(name) ?? this.#openNow(name)
    this.#opened.set(name, opening)
    const opened = await opening
    // It may have been closed while it was opened.
    if (this.#open.get(name) !== opened) return await this.#openFor(name)
    opened.holders++
    clock.clear(opened.idle)
    return opened
  }

  #openNow(name: string): Promise<OpenedDocument> {
    return this.#opening(name).catch((error: unknown) => {
      this.#opened.delete(name)
      throw error
    })
  }

  async #opening(name: string): Promise<OpenedDocument> {
    const { documents, onReview, own } = this.#deps
    const opened = await this.#made(name)
    this.#open.set(name, opened)
    try {
      await this.goOn(name)
      onReview()
      // Opens the cores of these streams: an unopened one has length 0. `mustBeHere` opens the streams of other
      // members.
      await Promise.all(own.unheardOf(name).map((stream) => documents.length(stream)))
      await this.#follow(name, opened)
    } catch (error) {
      // A document that failed to open is unusable.
      this.#open.delete(name)
      await opened.document.close()
      throw error
    }
    return opened
  }

  async #made(name: string): Promise<OpenedDocument> {
    const { documents, hash, known, log, onError, onStop, own: streams, snapshots } = this.#deps
    const record = log.view().documents.get(name)
    if (record === undefined) throw new NodeError('DOCUMENT_NOT_FOUND', `no document "${shown(name)}"`)
    // Only nodes that use documents load Yjs.
    const { Replica } = await import('../../domain/document/replica.js')
    const id = known.idOf(name)
    const own = streams.mayWrite(name) ? await streams.open(name) : null
    const replica = new DocumentReplica({
      make: (stream) => new Replica({ guid: id, hash, own: stream }),
      streams: documents,
      own,
      open: (bytes) => openBlock(bytes, id),
      base: () => snapshots.used.base(log.view().documents.get(name) ?? record),
      kept: keptDocument(id, { hash, documents, onError }),
      onStop: (stop) => onStop(name, stop),
      onError
    })
    const document = new OpenDocument({
      replica,
      append: (stream, blocks) => streams.append(name, stream, blocks),
      written: (stream) => streams.blocksOf(stream),
      mustHavePlace: (stream) => streams.mustHavePlace(name, stream),
      onWritten: (stream) => streams.announce(name, stream),
      onError
    })
    return { document, own, holders: 0, idle: null }
  }

  async #follow(name: string, { document, own }: OpenedDocument): Promise<void> {
    const { forks, log, own: streams } = this.#deps
    const view = log.view()
    const record = view.documents.get(name)
    if (record === undefined) return
    const counted = countedStreams(view, record)
    for (const stream of counted.keys()) if (forks.has(stream)) document.onForked(stream, FORKED)
    // Others ignore a stream that the log does not name yet, too, once the right to write is lost.
    const blocks = streams.mayWrite(name) ? Number.POSITIVE_INFINITY : 0
    const unheard = own === null ? [] : [own, ...streams.unheardOf(name)]
    for (const stream of unheard) if (!counted.has(stream)) counted.set(stream, blocks)
    await document.follow(counted)
  }

  #isNamed(name: string, stream: StreamKey): boolean {
    const { documents } = this.#deps.log.view()
    return documents.get(name)?.streams.some(({ coreKey }) => coreKey === stream) === true
  }

  #released(name: string, opened: OpenedDocument): void {
    const { clock, snapshots } = this.#deps
    const rest = (): Promise<void> => snapshots.offer(name, opened.document).then(() => this.#let(name, opened))
    if (--opened.holders === 0 && !this.#isClosed) opened.idle = clock.after(IDLE_MS, () => void rest())
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
    await document.keep().catch(this.#deps.onError)
    await document.close()
  }
}
