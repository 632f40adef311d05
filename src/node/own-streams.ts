import type { Clock, Timer } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import { shellWord, shown } from '../kit/text.js'
import type { FormerStream, StreamKey } from '../domain/document/client-ids.js'
import { hasPlaceFor, isContinued, isStreamOf } from '../domain/membership/fold-document.js'
import type { DocumentStreamRecord, StreamContinuation } from '../domain/membership/types.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { MemberLog } from '../ports/mesh.js'
import type { NodeStore } from '../ports/storage.js'
import type { Telemetry } from '../ports/telemetry.js'

/** Name of the stored document of own streams. */
const STORED = 'document-streams'
/** How much later than an append its mark is stored at most, in milliseconds. */
const MARK_MS = 1000
/** How long one try to bring a stream into the log may take, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000

/** What {@link OwnStreams} needs. */
export interface OwnStreamsParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly log: MemberLog
  readonly documents: Pick<DocumentStreams, 'own' | 'append' | 'hashOf'>
  readonly ids: IdSource
  readonly self: NodeId
  onError(error: unknown): void
}

/** This node's own stream of one document. */
interface OwnStream {
  /** Streams of it that were left behind. */
  readonly times: number
  /** The one that is written now; null before it was opened. */
  readonly stream: StreamKey | null
  /** How many blocks it had. */
  readonly blocks: number
  /** Whose place it took; null or absent: nobody's. */
  readonly continues?: StreamContinuation | null
  /** What its core is named by beside the document and `times`, by chance: an older state of this home never comes to the same. */
  readonly mark?: string
}

function coreName(id: string, { times, mark }: Pick<OwnStream, 'times' | 'mark'>): string {
  return mark === undefined ? `${id}/${times}` : `${id}/${times}/${mark}`
}

const NONE: OwnStream = { times: 0, stream: null, blocks: 0 }

/** With what another own stream begins, and whether the document is the same with it. */
interface OwnBeginning {
  readonly blocks: readonly Uint8Array[]
  readonly former: readonly FormerStream[]
  isSound(stream: StreamKey): Promise<boolean>
}

/**
 * Which stream of each document this node writes, and how long it was, kept outside of the store of documents. A stream that
 * is shorter than it was, or of which nobody knows how long it was, is left for a new one: to write on would be to sign two
 * different blocks at one place.
 */
export class OwnStreams {
  readonly #parts: OwnStreamsParts
  /** By name of the document. */
  readonly #own = new Map<string, OwnStream>()
  /** The same by stream. */
  readonly #names = new Map<StreamKey, string>()
  /** Those that this process wrote to. */
  readonly #written = new Set<StreamKey>()
  /** Streams on their way into the log. */
  readonly #announced = new Set<StreamKey>()
  #isQuiet = false
  #timer: Timer | null = null
  #stored: Promise<void> = Promise.resolve()

  constructor(parts: OwnStreamsParts) {
    this.#parts = parts
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    const stored = await this.#parts.store.read<Record<string, OwnStream>>(STORED)
    for (const [name, own] of Object.entries(stored ?? {})) this.#put(name, own)
  }

  /** Tells the mesh of the streams that it has not heard of: this node may have been killed before it could. */
  announceAll(): void {
    for (const [name, { stream, blocks }] of this.#own) if (stream !== null && blocks > 0) this.announce(name, stream)
  }

  /**
   * Begins another stream with what the one of now has left, and goes on with that one. Resolves to it once that is durable; null:
   * `isSound` said no. `id`: of the document.
   */
  async continue(name: string, id: string, { blocks, former, isSound }: OwnBeginning): Promise<StreamKey | null> {
    const { documents, ids } = this.#parts
    const { stream: from, times } = this.#of(name)
    if (from === null) throw new NodeError('INTERNAL', 'there is no stream to continue')
    const next = { times: times + 1, mark: ids.next('core') }
    const { stream } = await documents.own(coreName(id, next))
    if (!(await isSound(stream))) return null
    await documents.append(stream, blocks)
    const hash = await documents.hashOf(stream, blocks.length)
    if (hash === null || this.#of(name).stream !== from)
      throw new NodeError('CONFLICT', 'this node goes on with another stream of the document')
    await this.#set(name, { ...next, stream, blocks: blocks.length, continues: { from, blocks: blocks.length, hash, former } })
    return stream
  }

  /** The stream of now as the log will have it, if it continues another and the log does not have it yet; else null. */
  pending(name: string): DocumentStreamRecord | null {
    const { stream, continues } = this.#of(name)
    if (stream === null || !continues || this.#isKnown(name, stream)) return null
    return { nodeKey: this.#parts.self, coreKey: stream, continues }
  }

  /** Tells the mesh nothing more. */
  quieten(): void {
    this.#isQuiet = true
  }

  /** Stores what is not stored yet. */
  async close(): Promise<void> {
    if (this.#timer !== null) await this.#store()
  }

  /** The stream to write: that of before when it is whole, else a new one. `id`: of the document. */
  async open(name: string, id: string): Promise<StreamKey> {
    for (;;) {
      const known = this.#of(name)
      const { stream, blocks, isWhole } = await this.#parts.documents.own(coreName(id, known))
      const expected = known.stream === stream ? known.blocks : 0
      // One that the log names and this home does not know was written by a later state of it.
      const isKnown = known.stream === stream || (blocks === 0 && !this.#isNamed(name, stream))
      if (this.#of(name).times !== known.times) continue
      if (isWhole && isKnown && blocks >= expected && !this.#isContinued(name, stream)) {
        if (known.stream !== stream) this.#announceLeft(name)
        if (known.stream !== stream) await this.#set(name, { times: known.times, stream, blocks })
        else this.#own.set(name, { ...known, blocks })
        return stream
      }
      await this.leave(name)
    }
  }

  /** Whose stream of this node it is that is written now: name of the document, or null. */
  nameOf(stream: StreamKey): string | null {
    return this.#names.get(stream) ?? null
  }

  /** Did this process write to it? */
  hasWritten(stream: StreamKey): boolean {
    return this.#written.has(stream)
  }

  /** Blocks that the stream has; of one that is left, none. */
  blocksOf(stream: StreamKey): number {
    const name = this.nameOf(stream)
    return name === null ? 0 : this.#of(name).blocks
  }

  /**
   * A stream has so many blocks now. That it has any is stored when this resolves, how many soon after. Never rejects: the blocks
   * are in the stream whatever becomes of their mark.
   */
  async wrote(name: string, stream: StreamKey, blocks: number): Promise<void> {
    if (this.nameOf(stream) !== name) return
    this.#written.add(stream)
    const before = this.#of(name)
    this.#own.set(name, { ...before, blocks })
    if (before.blocks === 0 && (await this.#isStored())) return
    this.#timer ??= this.#parts.clock.after(MARK_MS, () => void this.#store().catch(this.#parts.onError))
  }

  /** What follows goes into another stream. At once nothing is this node's stream of the document any more, until it is opened. */
  leave(name: string): Promise<void> {
    this.#announceLeft(name)
    return this.#set(name, { ...NONE, times: this.#of(name).times + 1 })
  }

  /** @throws NodeError CONFLICT when the mesh takes no further stream, so that nobody else would ever see what is written to this one */
  mustHavePlace(name: string, own: StreamKey): void {
    const record = this.#parts.log.view().documents.get(name)
    const { self } = this.#parts
    if (record === undefined || this.#isKnown(name, own) || hasPlaceFor(record, self, this.#continued(name, own)?.from)) return
    throw new NodeError('CONFLICT', 'the mesh takes no further stream of this node in the document: go on in a new document', {
      next: [`a2a-node doc export ${shellWord(name)}`, 'a2a-node doc set <new document>']
    })
  }

  /** Tells the mesh of a stream, until it knows. Others see nothing of it before. */
  announce(name: string, own: StreamKey, continues = this.#continued(name, own)): void {
    const { clock, log, telemetry } = this.#parts
    const { mesh } = log.view()
    if (this.#isKnown(name, own) || mesh === null || this.#announced.has(own)) return
    this.#announced.add(own)
    const again = (error: unknown): void => {
      if (this.#isQuiet) return
      telemetry.log('warn', 'a stream of a document is not in the log yet', { document: shown(name), reason: messageOf(error) })
      clock.after(LOG_TIMEOUT_MS, () => {
        this.#announced.delete(own)
        if (!this.#isQuiet) this.announce(name, own, continues)
      })
    }
    const body = { kind: 'document-stream', mesh: mesh.id, name, coreKey: own, ...(continues === null ? {} : { continues }) } as const
    log.submit(body, LOG_TIMEOUT_MS).then(() => void this.#announced.delete(own), again)
  }

  /** What is left and the log does not know yet continues another all the same: what it holds is nowhere else. */
  #announceLeft(name: string): void {
    const pending = this.pending(name)
    if (pending !== null) this.announce(name, pending.coreKey)
  }

  #isNamed(name: string, stream: StreamKey): boolean {
    return (
      this.#parts.log
        .view()
        .documents.get(name)
        ?.streams.some(({ coreKey }) => coreKey === stream) === true
    )
  }

  /** Does another stream go on in its place? Then it was so in a home that this one is a former state of. */
  #isContinued(name: string, own: StreamKey): boolean {
    return isContinued(this.#parts.log.view().documents.get(name)?.streams ?? [], own)
  }

  #continued(name: string, own: StreamKey): StreamContinuation | null {
    const { stream, continues } = this.#of(name)
    return stream === own ? (continues ?? null) : null
  }

  #isKnown(name: string, own: StreamKey): boolean {
    return this.#parts.log.view().documents.get(name)?.streams.some(isStreamOf(this.#parts.self, own)) === true
  }

  #of(name: string): OwnStream {
    return this.#own.get(name) ?? NONE
  }

  #set(name: string, own: OwnStream): Promise<void> {
    this.#put(name, own)
    return this.#store()
  }

  #put(name: string, own: OwnStream): void {
    const before = this.#of(name).stream
    if (before !== null) this.#names.delete(before)
    this.#own.set(name, own)
    if (own.stream !== null) this.#names.set(own.stream, name)
  }

  async #isStored(): Promise<boolean> {
    try {
      await this.#store()
      return true
    } catch (error) {
      this.#parts.onError(error)
      return false
    }
  }

  #store(): Promise<void> {
    const { clock, store } = this.#parts
    clock.clear(this.#timer)
    this.#timer = null
    const done = this.#stored.then(() => store.write(STORED, Object.fromEntries(this.#own)))
    this.#stored = done.catch(() => {})
    return done
  }
}
