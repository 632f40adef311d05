import * as Y from 'yjs'
import type { CheckedBlock } from './block.js'
import type { ClientIds, StreamKey } from './client-ids.js'
import type { Lane } from './lane.js'
import { gapFilling, type Missing, missingOf } from './needs.js'
import type { DocumentStream, StreamEnd } from './stream.js'
import type { UpdateContents } from './update.js'
import { type WaitingLane, WaitingLanes } from './waiting-lanes.js'

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
  /** Did emptiness take the place of something that was never written, or of which its stream no longer says so? */
  hasFilled = false
  /** How often a lane was looked at: numbers of a test. */
  looks = 0
  readonly #parts: BlockApplierParts
  readonly #waiting = new WaitingLanes()

  constructor(parts: BlockApplierParts) {
    this.#parts = parts
    parts.doc.on('afterTransaction', ({ beforeState, afterState }: Y.Transaction) => {
      if (this.#waiting.isEmpty) return
      for (const [client, clock] of afterState) if (beforeState.get(client) !== clock) this.#moved(client, clock)
    })
  }

  /** Puts a block that was checked behind those of its stream that wait. */
  push(stream: DocumentStream, block: CheckedBlock): void {
    const { isBeginning } = stream
    for (const lane of stream.push(block)) this.#begin(stream, lane)
    // How far its former clientIDs get is known now.
    if (isBeginning && !stream.isBeginning) this.wakeAll()
  }

  /** What waits may be filled now: a stream ended, or all of its snapshot is here. */
  wakeAll(): void {
    this.#waiting.wakeAll()
  }

  /** Applies all that waits for nothing any more, until nothing of that kind is left or a stream must end. */
  run(): Fault | null {
    while (!this.#parts.isFull()) {
      const waiting = this.#waiting.next()
      if (waiting === undefined) return null
      const fault = this.#advance(waiting)
      if (fault !== null) return fault
    }
    return null
  }

  /** Does a block stand on nothing that is missing? */
  isWhole(block: CheckedBlock): boolean {
    return missingOf(block, this.#clockOf).length === 0
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
      return stream?.isReversed(crossing, crossing.client === writes?.client ? breaks : null) === true
    })
  }

  readonly #clockOf = (client: number): number => Y.getState(this.#parts.doc.store, client)

  #begin(stream: DocumentStream, lane: Lane): void {
    this.#waiting.push({ stream, lane, missing: null })
  }

  /** A clock has come further. */
  #moved(client: number, clock: number): void {
    if (!this.#waiting.isAwaited(client)) return
    this.#waiting.wake(client, this.#isFinal(client) ? Number.POSITIVE_INFINITY : clock)
  }

  /** Applies what it can of a lane, and keeps it until more can be. */
  #advance(waiting: WaitingLane): Fault | null {
    this.looks++
    const { stream, lane } = waiting
    while (lane.length > 0) {
      // Full: it goes on once there is room.
      if (this.#parts.isFull()) {
        this.#waiting.push(waiting)
        return null
      }
      const block = this.#headOf(waiting)
      if (block !== null) {
        const fault = this.#faultOf(stream, block)
        if (fault !== null) return fault
        waiting.missing = null
        this.#shift(stream, lane)
      } else if (!this.#filled(waiting)) return null
    }
    return null
  }

  /** The first one of a lane; null while something is missing that it stands on. */
  #headOf(waiting: WaitingLane): CheckedBlock | null {
    const { lane, missing } = waiting
    // Clocks never go back, so that each is looked at until it has come once.
    while (missing !== null && missing.length > 0 && this.#clockOf(missing.at(-2) ?? 0) >= (missing.at(-1) ?? 0)) missing.length -= 2
    if (missing !== null && missing.length > 0) return null
    const block = lane.head ?? null
    if (block === null || missing !== null) return block
    waiting.missing = missingOf(block, this.#clockOf)
    return waiting.missing.length === 0 ? block : null
  }

  /** Puts emptiness where something is missing that is not coming, the same on every replica; else keeps the lane until it comes. */
  #filled(waiting: WaitingLane): boolean {
    const missing: Missing = { client: waiting.missing?.at(-2) ?? 0, end: waiting.missing?.at(-1) ?? 0 }
    if (!this.#isFinal(missing.client)) {
      this.#waiting.keep(waiting, missing)
      return false
    }
    this.hasFilled = true
    Y.applyUpdate(this.#parts.doc, gapFilling(missing, this.#clockOf(missing.client)), FROM_STREAMS)
    return true
  }

  /** Does nobody write any more with a clientID, here or elsewhere? */
  #isFinal(client: number): boolean {
    const { ids, streams } = this.#parts
    const stream = streams.get(this.#onceOwnerOf(client) ?? '')
    if (stream === undefined) return false
    if (stream.end !== null && stream.applied >= stream.end.at) return true
    // Of a former stream only that counts which the snapshot has.
    return ids.streamOf(client) !== stream.key && !stream.isBeginning && this.#clockOf(client) >= stream.clockOf(client)
  }

  /** The first one of a lane is applied; what that ends or begins may go on. */
  #shift(stream: DocumentStream, lane: Lane): void {
    const { isSettled } = stream
    stream.shift(lane)
    if (!isSettled && stream.isSettled && stream.waiting.length > 0) this.#begin(stream, stream.waiting)
    if (stream.end !== null && stream.applied >= stream.end.at) this.wakeAll()
  }

  /** Applies it, or says why its stream ends. */
  #faultOf(stream: DocumentStream, block: CheckedBlock): Fault | null {
    if (this.hasReversed(block)) {
      // Behind it nothing counts, but what waits of a snapshot has a part in the document.
      stream.drop()
      return { stream, end: { at: stream.applied, reason: REVERSED } }
    }
    return this.#apply(block) ? null : { stream, end: { at: stream.applied, reason: 'Yjs refuses an update' } }
  }

  #onceOwnerOf(client: number): StreamKey | null {
    const { ids, streams } = this.#parts
    if (ids.onceOwnerOf(client) !== null) return ids.onceOwnerOf(client)
    for (const stream of streams.values()) {
      if (stream.end !== null) ids.end(stream.key)
      else if (!stream.isBeginning) ids.endFormer(stream.key)
    }
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
