import * as Y from 'yjs'
import type { CheckedBlock } from './block.js'
import type { ClientIds, StreamKey } from './client-ids.js'
import { blocker, gapFilling } from './needs.js'
import type { DocumentStream, StreamEnd } from './stream.js'
import type { UpdateContents } from './update.js'

/** Why a stream ends at an update that nobody who writes with Yjs makes. */
export const REVERSED = 'an update whose left and right are the wrong way round'
/** Marks what comes from streams, so that it is not taken for an edit of this node. */
export const FROM_STREAMS = Symbol('from streams')

interface BlockApplierParts {
  readonly doc: Y.Doc
  readonly ids: ClientIds
  readonly streams: ReadonlyMap<StreamKey, DocumentStream>
  isFull(): boolean
}

/** A stream that is to end, and how. */
interface Fault {
  readonly stream: DocumentStream
  readonly end: StreamEnd
}

/** Puts blocks of streams into a document once what they stand on is there. */
export class BlockApplier {
  /** Did emptiness take the place of something that an ended stream never wrote? */
  hasFilled = false
  readonly #parts: BlockApplierParts

  constructor(parts: BlockApplierParts) {
    this.#parts = parts
  }

  /** Applies all that waits for nothing any more, until nothing of that kind is left or a stream must end. */
  run(): Fault | null {
    let isMoving = true
    while (isMoving) {
      isMoving = false
      for (const stream of this.#parts.streams.values()) {
        for (const lane of stream.lanes) {
          for (let block = lane.head; block !== undefined && this.#isReady(block); block = lane.head) {
            const fault = this.#faultOf(stream, block)
            if (fault !== null) return fault
            stream.shift(lane)
            isMoving = true
          }
        }
      }
    }
    return null
  }

  /** Does a block stand on nothing that is missing? */
  isWhole(block: CheckedBlock): boolean {
    return blocker(block, this.#clockOf) === null
  }

  /** Is something in a block put between two of one clientID that are the wrong way round? */
  hasReversed({ updates }: CheckedBlock): boolean {
    return updates.some(({ contents }) => this.isReversed(contents))
  }

  /** The same of one update. */
  isReversed({ crossings, breaks, writes }: UpdateContents): boolean {
    const { ids, streams } = this.#parts
    return crossings.some((crossing) => {
      const stream = streams.get(ids.ownerOf(crossing.client) ?? '')
      return stream?.isReversed(crossing, crossing.client === writes?.client ? breaks : []) === true
    })
  }

  readonly #clockOf = (client: number): number => Y.getState(this.#parts.doc.store, client)

  /** Applies it, or says why its stream ends. */
  #faultOf(stream: DocumentStream, block: CheckedBlock): Fault | null {
    if (this.hasReversed(block)) {
      // Behind it nothing counts, but what waits of a snapshot has a part in the document.
      stream.drop()
      return { stream, end: { at: stream.applied, reason: REVERSED } }
    }
    return this.#apply(block) ? null : { stream, end: { at: stream.applied, reason: 'Yjs refuses an update' } }
  }

  #isReady(block: CheckedBlock): boolean {
    const { doc, streams } = this.#parts
    while (!this.#parts.isFull()) {
      const missing = blocker(block, this.#clockOf)
      if (missing === null) return true
      const owner = this.#onceOwnerOf(missing.client)
      const stream = owner === null ? undefined : streams.get(owner)
      // What an ended stream never wrote is not coming: emptiness takes its place, the same on every replica.
      if (stream === undefined || stream.end === null || stream.applied < stream.end.at) return false
      this.hasFilled = true
      Y.applyUpdate(doc, gapFilling(missing, this.#clockOf(missing.client)), FROM_STREAMS)
    }
    return false
  }

  #onceOwnerOf(client: number): StreamKey | null {
    const { ids, streams } = this.#parts
    if (ids.onceOwnerOf(client) === null) for (const stream of streams.values()) if (stream.end !== null) ids.end(stream.key)
    return ids.onceOwnerOf(client)
  }

  /** False when Yjs threw or kept something back: with updates that passed the checks it does neither. */
  #apply({ updates }: CheckedBlock): boolean {
    const { doc } = this.#parts
    let isWhole = false
    try {
      doc.transact(() => {
        for (const { bytes } of updates) Y.applyUpdate(doc, bytes, FROM_STREAMS)
        isWhole = true
      }, FROM_STREAMS)
    } catch {
      // Thrown before the end of the work it is Yjs; after it, an observer of some program, which is no fault of the stream.
    }
    return isWhole && doc.store.pendingStructs === null && doc.store.pendingDs === null
  }
}
