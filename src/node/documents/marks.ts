import type { Clock, Timer } from '../../kit/clock.js'
import { NodeError, REPAIR_STEPS, STOP_AND_REPAIR } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { DocumentStreams, FollowedStream } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { LocalStreams } from './local-streams.js'

/** Name of the stored document of the marks. */
export const DOCUMENT_MARKS = 'document-marks'
/** Name of the stored document of {@link StoredLosses}. */
export const DOCUMENT_LOSSES = 'document-losses'
/** How much later than a block its mark is stored at most, in milliseconds. */
const MARK_MS = 2000

/** How many blocks of each stream were here once, by name of the document. */
export type StoredMarks = Readonly<Record<string, Readonly<Record<StreamKey, number>>>>

/** Own streams that were left as they were shorter than their marks, by name of the document: they are lost also where the log does not name them. */
export type StoredLosses = Readonly<Record<string, readonly StreamKey[]>>

/** What {@link DocumentMarks} needs. */
export interface DocumentMarksDeps {
  readonly clock: Clock
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'size' | 'read' | 'flush'>
  /** The own streams that are written now, whose lengths are on record at once; the log may not name them yet. */
  readonly own: Pick<LocalStreams, 'names' | 'streamOf' | 'blocksOf'>
  /** Is a stream forked? Then nothing of it counts. */
  isForked(stream: StreamKey): boolean
  /** What was lost is here again, or is found to be lost. */
  onChange(): void
  onError(error: unknown): void
}

/**
 * How many blocks of each stream of a document were durable here, kept outside of the store of documents. The engine of that
 * store drops the end of a damaged log without a word, and a copy of it may be put back: a document of which less is here than was
 * once is neither read nor edited until members gave it again.
 */
export class DocumentMarks {
  readonly #deps: DocumentMarksDeps
  /** By name of the document. */
  #marks = new Map<string, Readonly<Record<StreamKey, number>>>()
  /** See {@link StoredLosses}. */
  #losses = new Map<string, readonly StreamKey[]>()
  #followed: ReadonlySet<StreamKey> = new Set()
  /** Followed streams that were opened: before, none of them has a length. */
  readonly #opened = new Set<StreamKey>()
  #isClosed = false
  #timer: Timer | null = null
  /** What is stored, as {@link #json} gives it. */
  #stored = ''
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: DocumentMarksDeps) {
    this.#deps = deps
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    this.#marks = new Map(Object.entries((await this.#deps.store.read<StoredMarks>(DOCUMENT_MARKS)) ?? {}))
    this.#losses = new Map(Object.entries((await this.#deps.store.read<StoredLosses>(DOCUMENT_LOSSES)) ?? {}))
    this.#stored = this.#json()
  }

  /** These streams are followed from now on. */
  follow(streams: readonly FollowedStream[]): void {
    this.#followed = new Set(streams.map(({ stream }) => stream))
    for (const stream of this.#opened) if (!this.#followed.has(stream)) this.#opened.delete(stream)
    void this.#open()
    this.due()
  }

  /** More of a stream is here: soon that is stored. */
  due(): void {
    if (!this.#isClosed) this.#timer ??= this.#deps.clock.after(MARK_MS, () => void this.#store().catch(this.#deps.onError))
  }

  /** Was something of a document here? */
  has(name: string): boolean {
    return this.#marks.has(name)
  }

  /** Blocks of a document that were here and are not, as far as its streams are followed. Ask it of a document that is open. */
  lost(name: string): number {
    return this.#lostOf(this.#streams(name))
  }

  /** The error of a document that lost blocks, STORE_DAMAGED; null: it lost none. */
  fault(name: string): NodeError | null {
    const lost = this.lost(name)
    if (lost === 0) return null
    return new NodeError('STORE_DAMAGED', this.#message(name, lost), { next: ['a2a-node peers', ...REPAIR_STEPS] })
  }

  /** What is told in `status`: one problem for each document that lost blocks. */
  problems(): Problem[] {
    return this.#names().flatMap((name) => {
      const lost = this.#lostOf(this.#streams(name).filter(([stream]) => this.#opened.has(stream) || !this.#followed.has(stream)))
      return lost === 0 ? [] : [{ code: 'STORE_DAMAGED', message: this.#message(name, lost), next: STOP_AND_REPAIR }]
    })
  }

  /** Records that a former own stream had `blocks` blocks, by its own mark: the missing ones count as lost. */
  expect(name: string, stream: StreamKey, blocks: number): void {
    const marks = this.#marks.get(name)
    this.#marks.set(name, { ...marks, [stream]: Math.max(blocks, marks?.[stream] ?? 0) })
    this.#losses.set(name, [...new Set([...(this.#losses.get(name) ?? []), stream])])
    void this.#store().catch(this.#deps.onError)
  }

  /** A document is kept here no longer. Resolves when that is stored: its blocks may go then. */
  async forget(name: string): Promise<void> {
    this.#marks.delete(name)
    this.#losses.delete(name)
    await this.#store()
  }

  /** This node writes another stream from now on, and all of this one is here. What others know of it counts still. */
  left(name: string, stream: StreamKey): void {
    const { [stream]: _, ...others } = this.#marks.get(name) ?? {}
    if (this.#isNamed(name, stream)) return
    this.#marks.set(name, others)
    this.due()
  }

  /** Stores what is not stored yet. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#store().catch(this.#deps.onError)
  }

  /** Opens the followed streams that have a mark, so that `status` tells of a loss before anybody asks for the document. */
  async #open(): Promise<void> {
    const { documents, onChange } = this.#deps
    const marked = this.#names().flatMap((name) => this.#streams(name).map(([stream]) => stream))
    const closed = marked.filter((stream) => this.#followed.has(stream) && !this.#opened.has(stream))
    if (closed.length === 0) return
    // One that cannot be opened has lost all.
    await Promise.all(closed.map((stream) => documents.read(stream, 0, 0).catch(() => {})))
    for (const stream of closed) if (this.#followed.has(stream)) this.#opened.add(stream)
    onChange()
  }

  #names(): string[] {
    return [...new Set([...this.#marks.keys(), ...this.#deps.own.names()])]
  }

  #lostOf(streams: readonly (readonly [StreamKey, number])[]): number {
    return streams.reduce((sum, [stream, marked]) => sum + Math.max(0, marked - this.#length(stream)), 0)
  }

  #message(name: string, lost: number): string {
    const blocks = lost === 1 ? '1 block' : `${lost} blocks`
    return `the document ${shown(name)} lost ${blocks} on this disk; it is read and edited again once a member has given them`
  }

  /**
   * Marks of a document that can be compared. A stream that is not followed has no length: of those only own ones count that are
   * known to be short. Another one that the log does not name was left for a new one, or is put in order later.
   */
  #streams(name: string): [StreamKey, number][] {
    const losses = this.#losses.get(name) ?? []
    const isShort = (stream: StreamKey): boolean => losses.includes(stream) && !this.#isNamed(name, stream)
    const marks = Object.entries(this.#withOwn(name))
    return marks.filter(([stream]) => !this.#deps.isForked(stream) && (this.#followed.has(stream) || isShort(stream)))
  }

  /** The length of an own stream is on record before its mark is. */
  #withOwn(name: string): Readonly<Record<StreamKey, number>> {
    const { own } = this.#deps
    const marks = this.#marks.get(name) ?? {}
    const stream = own.streamOf(name)
    return stream === null ? marks : { ...marks, [stream]: Math.max(marks[stream] ?? 0, own.blocksOf(stream)) }
  }

  #isNamed(name: string, stream: StreamKey): boolean {
    return (
      this.#deps.log
        .view()
        .documents.get(name)
        ?.streams.some(({ coreKey }) => coreKey === stream) === true
    )
  }

  #length(stream: StreamKey): number {
    const { blocks, from } = this.#deps.documents.size(stream)
    return Math.max(blocks, from)
  }

  async #store(): Promise<void> {
    const { clock, store, documents } = this.#deps
    clock.clear(this.#timer)
    this.#timer = null
    const done = this.#writing.then(async () => {
      this.#raise()
      // Not what memory had before: a write may have failed since.
      const json = this.#json()
      if (json === this.#stored) return
      const [losses, marks] = [Object.fromEntries(this.#losses), Object.fromEntries(this.#marks)]
      // What a mark tells of has to be there, also when the power fails.
      await documents.flush()
      await store.write(DOCUMENT_LOSSES, losses)
      await store.write(DOCUMENT_MARKS, marks)
      this.#stored = json
    })
    this.#writing = done.catch(() => {})
    await done
  }

  #json(): string {
    return JSON.stringify([Object.fromEntries(this.#losses), Object.fromEntries(this.#marks)])
  }

  /** Takes over how long streams are now. */
  #raise(): void {
    const { log, own: written, isForked } = this.#deps
    for (const { name, streams } of log.view().documents.values()) {
      const own = written.streamOf(name)
      const keys = [...streams.map(({ coreKey }) => coreKey), ...(own === null ? [] : [own])]
      const marks = { ...this.#marks.get(name) }
      for (const stream of keys.filter((one) => this.#followed.has(one))) this.#raiseOne(marks, stream)
      for (const stream of Object.keys(marks)) if (isForked(stream)) delete marks[stream]
      if (Object.keys(marks).length > 0) this.#marks.set(name, marks)
      else this.#marks.delete(name)
    }
  }

  #raiseOne(marks: Record<StreamKey, number>, stream: StreamKey): void {
    const { blocks, from } = this.#deps.documents.size(stream)
    const marked = marks[stream] ?? 0
    if (blocks > Math.max(from, marked)) marks[stream] = blocks
    // What a snapshot holds is not here any more; what was behind it has to be.
    else if (marked <= from) delete marks[stream]
  }
}
