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
/** The longest delay between a block and its stored mark, in milliseconds. */
const MARK_MS = 2000

/** The number of blocks of each stream that were here once, by name of the document. */
export type StoredMarks = Readonly<Record<string, Readonly<Record<StreamKey, number>>>>

/**
 * Own streams left for being shorter than their marks, by document name. They are lost even when the log does not name
 * them.
 */
export type StoredLosses = Readonly<Record<string, readonly StreamKey[]>>

/** Dependencies of {@link DocumentMarks}. */
export interface DocumentMarksDeps {
  readonly clock: Clock
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'size' | 'read' | 'flush'>
  /** The own streams that are written now. Their lengths are recorded at once; the log may not name them yet. */
  readonly own: Pick<LocalStreams, 'names' | 'streamOf' | 'blocksOf'>
  /** True when a stream is forked: none of its blocks counts. */
  isForked(stream: StreamKey): boolean
  /** Called when lost blocks are here again, or a loss is found. */
  onChange(): void
  onError(error: unknown): void
}

/**
 * The number of durable blocks of each stream of a document, stored outside of the document store. The engine of that
 * store drops the end of a damaged log without an error, and an old copy of it may be put back. A document with fewer
 * blocks than its marks is neither read nor edited until members gave them again.
 */
export class DocumentMarks {
  readonly #deps: DocumentMarksDeps
  /** By name of the document. */
  #marks = new Map<string, Readonly<Record<StreamKey, number>>>()
  /** See {@link StoredLosses}. */
  #losses = new Map<string, readonly StreamKey[]>()
  #followed: ReadonlySet<StreamKey> = new Set()
  /** Followed streams that were opened. An unopened one has no length. */
  readonly #opened = new Set<StreamKey>()
  #isClosed = false
  #timer: Timer | null = null
  /** The stored text, as {@link #json} returns it. */
  #stored = ''
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: DocumentMarksDeps) {
    this.#deps = deps
  }

  /** Reads the stored marks. */
  async start(): Promise<void> {
    this.#marks = new Map(Object.entries((await this.#deps.store.read<StoredMarks>(DOCUMENT_MARKS)) ?? {}))
    this.#losses = new Map(Object.entries((await this.#deps.store.read<StoredLosses>(DOCUMENT_LOSSES)) ?? {}))
    this.#stored = this.#json()
  }

  /** Replaces the set of followed streams. */
  follow(streams: readonly FollowedStream[]): void {
    this.#followed = new Set(streams.map(({ stream }) => stream))
    for (const stream of this.#opened) if (!this.#followed.has(stream)) this.#opened.delete(stream)
    void this.#open()
    this.due()
  }

  /** More of a stream is here: stores the marks soon. */
  due(): void {
    if (!this.#isClosed)
      this.#timer ??= this.#deps.clock.after(MARK_MS, () => void this.#store().catch(this.#deps.onError))
  }

  /** True when some block of a document was here. */
  has(name: string): boolean {
    return this.#marks.has(name)
  }

  /**
   * The number of blocks of a document that were here and are not, in its followed streams. The document must be open.
   */
  lost(name: string): number {
    return this.#lostOf(this.#streams(name))
  }

  /** The error STORE_DAMAGED of a document that lost blocks; null for any other. */
  fault(name: string): NodeError | null {
    const lost = this.lost(name)
    if (lost === 0) return null
    return new NodeError('STORE_DAMAGED', this.#message(name, lost), { next: ['a2a-node peers', ...REPAIR_STEPS] })
  }

  /** The problems for `status`: one for each document that lost blocks. */
  problems(): Problem[] {
    return this.#names().flatMap((name) => {
      const lost = this.#lostOf(
        this.#streams(name).filter(([stream]) => this.#opened.has(stream) || !this.#followed.has(stream))
      )
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

  /** Forgets a document that is no longer kept here. Resolves when that is stored: only then may its blocks go. */
  async forget(name: string): Promise<void> {
    this.#marks.delete(name)
    this.#losses.delete(name)
    await this.#store()
  }

  /**
   * This node writes another stream from now on, and all blocks of this one are here. A stream that the log names keeps
   * its mark.
   */
  left(name: string, stream: StreamKey): void {
    const { [stream]: _, ...others } = this.#marks.get(name) ?? {}
    if (this.#isNamed(name, stream)) return
    this.#marks.set(name, others)
    this.due()
  }

  /** Stores pending marks. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#store().catch(this.#deps.onError)
  }

  /** Opens the followed streams with a mark, so that `status` reports a loss before a caller asks for the document. */
  async #open(): Promise<void> {
    const { documents, onChange } = this.#deps
    const marked = this.#names().flatMap((name) => this.#streams(name).map(([stream]) => stream))
    const closed = marked.filter((stream) => this.#followed.has(stream) && !this.#opened.has(stream))
    if (closed.length === 0) return
    // A stream that cannot be opened has lost all blocks.
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
   * The comparable marks of a document. A stream that is not followed has no length, so only own streams known to be
   * short count. Another one that the log does not name was left for a new one, or the log adds it later.
   */
  #streams(name: string): [StreamKey, number][] {
    const losses = this.#losses.get(name) ?? []
    const isShort = (stream: StreamKey): boolean => losses.includes(stream) && !this.#isNamed(name, stream)
    const marks = Object.entries(this.#withOwn(name))
    return marks.filter(([stream]) => !this.#deps.isForked(stream) && (this.#followed.has(stream) || isShort(stream)))
  }

  /** The length of an own stream is recorded before its mark. */
  #withOwn(name: string): Readonly<Record<StreamKey, number>> {
    const { own } = this.#deps
    const marks = this.#marks.get(name) ?? {}
    const stream = own.streamOf(name)
    return stream === null ? marks : { ...marks, [stream]: Math.max(marks[stream] ?? 0, own.blocksOf(stream)) }
  }

  #isNamed(name: string, stream: StreamKey): boolean {
    const { documents } = this.#deps.log.view()
    return documents.get(name)?.streams.some(({ coreKey }) => coreKey === stream) === true
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
      // Compare with the stored text, not with memory: a write may have failed.
      const json = this.#json()
      if (json === this.#stored) return
      const [losses, marks] = [Object.fromEntries(this.#losses), Object.fromEntries(this.#marks)]
      // Blocks must be durable before their mark, even through a power failure.
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

  /** Updates the marks to the current lengths. */
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
    // Blocks inside a snapshot are not here any more; blocks behind it must be.
    else if (marked <= from) delete marks[stream]
  }
}
