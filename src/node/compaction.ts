import type { NodeId } from '../kit/ids.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import type { CountedStream } from '../domain/document/counted.js'
import { hasPlaceFor, mayContinue } from '../domain/membership/fold-document.js'
import type { DocumentRecord, MembershipView } from '../domain/membership/types.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { MemberLog } from '../ports/mesh.js'
import { memberAccess } from './document-access.js'
import type { OpenDocument } from './open-document.js'
import type { OwnStreams } from './own-streams.js'

/** A stream is compacted once it has so many blocks. */
const MIN_BLOCKS = 1024
/** And when what it left is at most one of so many parts of it, in bytes. */
const PARTS = 2

/** What {@link Compaction} needs. */
export interface CompactionParts {
  readonly log: Pick<MemberLog, 'view' | 'isStreamSigned'>
  readonly documents: Pick<DocumentStreams, 'size' | 'holders'>
  readonly own: Pick<OwnStreams, 'nameOf' | 'hasWritten' | 'continue'>
  readonly self: NodeId
  /** A block as a stream of a document (its id) holds it. */
  seal(document: string, block: Uint8Array): Uint8Array
  /** An own stream begins: it is followed from now on. Resolves to what counts then. */
  onBegun(name: string, own: StreamKey): Promise<ReadonlyMap<StreamKey, CountedStream>>
}

/** An open document and the stream that this node writes into it. */
export interface WrittenDocument {
  readonly document: Pick<OpenDocument, 'compact' | 'goOn'>
  own: StreamKey | null
}

/** Goes on with another stream that begins with what the one of now has left, when that is worth it. */
export class Compaction {
  readonly #parts: CompactionParts
  /** Streams that are looked at again once they have so many bytes: their documents hold most of what was ever written. */
  readonly #notBefore = new Map<StreamKey, number>()

  constructor(parts: CompactionParts) {
    this.#parts = parts
  }

  /** `id`: of the document. Does nothing when it is not worth it, or cannot be done now. */
  async run(name: string, id: string, opened: WrittenDocument): Promise<void> {
    const { own: before, document } = opened
    const { own, seal, onBegun } = this.#parts
    if (before === null || own.nameOf(before) !== name || !(await this.#isDue(name, before))) return
    try {
      await document.compact(async ({ blocks, former }, isSound) => {
        if (own.nameOf(before) !== name || !this.#isWorth(before, blocks)) return null
        const next = await own.continue(name, id, { blocks: blocks.map((block) => seal(id, block)), former, isSound })
        if (next === null) this.#notBefore.set(before, PARTS * this.#parts.documents.size(before).bytes)
        if (next === null) return null
        opened.own = next
        return { own: next, counted: await onBegun(name, next) }
      })
    } catch (error) {
      // What is written from now on belongs into the next one all the same.
      if (opened.own !== null && opened.own !== before) await document.goOn(opened.own)
      throw error
    }
  }

  /** Is it time to look at what an own stream has left? */
  async #isDue(name: string, own: StreamKey): Promise<boolean> {
    const { documents, log, self } = this.#parts
    const { blocks, bytes } = documents.size(own)
    const view = log.view()
    const record = view.documents.get(name)
    if (record === undefined || !memberAccess(view, record, self).mayWrite) return false
    // A node may continue a bounded number of streams, so the later it does so again the more of them there are.
    const times = record.streams.filter(({ nodeKey, continues }) => nodeKey === self && continues !== undefined).length
    if (blocks < MIN_BLOCKS * (1 + times) || bytes < (this.#notBefore.get(own) ?? 0)) return false
    if (!mayContinue(record, self, own) || !hasPlaceFor(record, self, own)) return false
    // A home that was put back learns what it wrote once it meets somebody who has that, or by what it writes itself.
    if (!this.#parts.own.hasWritten(own)) return false
    if (hasOthers(view, record, self) && documents.holders(own) === 0) return false
    return await log.isStreamSigned(own)
  }

  /** Is what a stream left worth to begin another one with it? */
  #isWorth(own: StreamKey, blocks: readonly Uint8Array[]): boolean {
    const { bytes } = this.#parts.documents.size(own)
    const left = blocks.reduce((sum, { byteLength }) => sum + byteLength, 0)
    const isWorth = left * PARTS <= bytes
    if (isWorth) this.#notBefore.delete(own)
    else this.#notBefore.set(own, left * PARTS)
    return isWorth
  }
}

function hasOthers(view: MembershipView, record: DocumentRecord, self: NodeId): boolean {
  return [...view.members.keys()].some((node) => node !== self && memberAccess(view, record, node).maySee)
}
