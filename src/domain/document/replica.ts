import * as Y from 'yjs'
import type { Hash } from '../../kit/sign.js'
import type { StreamKey } from './client-ids.js'
import { DocumentSize } from './document-size.js'
import { LocalEdits, type LocalBlocks } from './local-edits.js'
import { OwnSessions } from './own-sessions.js'
import {
  decodeSnapshot,
  encodeSnapshot,
  hasWritten,
  headInForce,
  type SnapshotHead,
  type SnapshotState
} from './snapshot.js'
import {
  type CheckedBlock,
  type DocumentStream,
  onlyDeletes,
  type StreamEnd,
  type StreamPast,
  type StreamStop
} from './stream.js'
import { CLASH, StreamTable } from './stream-table.js'
import { EDIT_LIMITS, readUpdate } from './update/update.js'
import { blocker, gapFilling } from './needs.js'

/** Largest document in bytes, as one update of Yjs. */
export const MAX_DOCUMENT_BYTES = 16_777_216

/** Dependencies of a replica. */
export interface ReplicaOptions {
  /** The document's id. */
  readonly guid: string
  readonly hash: Hash
  /** The key of this node's own stream; null for one that only reads. */
  readonly own: StreamKey | null
  /** In bytes; default {@link MAX_DOCUMENT_BYTES}. */
  readonly maxBytes?: number
}

/** One block of a stream as it arrived; `index` is its place, from 0 on. */
export interface StreamBlock {
  readonly stream: StreamKey
  readonly index: number
  readonly bytes: Uint8Array
}

/**
 * Outcome of a block. `taken`: applied, or stored until its dependencies arrive. `known`: it was taken before. `early`:
 * blocks before it are missing. `later`: the waiting area or the document is full, or this replica must be rebuilt;
 * offer it again. `ended`: its stream has.
 */
export interface Receipt {
  readonly outcome: 'taken' | 'known' | 'early' | 'later' | 'ended'
  /** Streams that this block brought to their end. */
  readonly stops: readonly StreamStop[]
}

const REVERSED = 'an update whose left and right are the wrong way round'
/** Origin of transactions from streams, so that they are not taken for edits of this node. */
const FROM_STREAMS = Symbol('from streams')

/**
 * One node's copy of a document: the Y.Doc and its position in each member's stream. Blocks are checked before Yjs sees
 * them, and applied in the order of their stream once their dependencies are there. Its state depends on the given
 * blocks and on the ends of streams, never on the order in which streams arrived.
 */
export class Replica {
  /** The live document. Programs of this node edit it under the clientID of a session. */
  readonly doc: Y.Doc
  /** The sessions of this node. */
  readonly sessions: OwnSessions
  readonly #streams: StreamTable
  readonly #options: ReplicaOptions
  readonly #edits = new LocalEdits()
  readonly #size: DocumentSize
  /** Contains a change that no longer counts, or that no other node can apply. */
  #isVoid = false
  /** Contains gaps in place of the unwritten part of an ended stream. */
  #hasGaps = false

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#streams = new StreamTable(options.hash)
    this.doc = new Y.Doc({ guid: options.guid, gc: true })
    this.sessions = new OwnSessions(options, { streams: this.#streams, doc: this.doc })
    this.#size = new DocumentSize(
      options.maxBytes ?? MAX_DOCUMENT_BYTES,
      () => Y.encodeStateAsUpdate(this.doc).byteLength
    )
    // Without a session a change has no owner and is refused.
    this.doc.clientID = 0
    this.doc.on('update', (update: Uint8Array, origin: unknown) => {
      this.#size.grow(update.byteLength)
      if (origin !== FROM_STREAMS) this.#edits.add(update)
    })
    // Yjs removes meaningless formatting marks after a remote change. Which marks these are depends on the order of
    // arrival, so replicas would differ. A writer may remove them, and then it is an edit like any other.
    this.doc.on('afterTransaction', (transaction: Y.Transaction) => {
      this.#size.shrink(transaction)
      if (transaction.origin === FROM_STREAMS) Object.assign(transaction, { _needFormattingCleanup: false })
    })
  }

  /** Blocks applied of each stream; of those without any nothing. */
  vectorClock(): Record<StreamKey, number> {
    return this.#streams.lengths()
  }

  /** The number of blocks that wait for dependencies. */
  get waiting(): number {
    return [...this.#streams].reduce((sum, { waiting }) => sum + waiting.length, 0)
  }

  /**
   * Has the document reached its size? It then takes no further block but such that only delete, nor should its node
   * let anybody edit.
   */
  isFull(): boolean {
    return this.#size.isFull()
  }

  /** Takes one block of a stream: of another member, or an own one when it is read back. Never throws. */
  receive({ stream: key, index, bytes }: StreamBlock): Receipt {
    const stream = this.#streams.of(key)
    if (stream === null) return { outcome: 'later', stops: [] }
    if (stream.end !== null && index >= stream.end.at) return { outcome: 'ended', stops: [] }
    if (index < stream.length) return { outcome: 'known', stops: [] }
    if (index > stream.length) return { outcome: 'early', stops: [] }
    if (this.#isVoid || stream.isFull) return { outcome: 'later', stops: [] }
    const reading = stream.check(bytes)
    if (!reading.ok) return this.#ended(stream, reading.reason)
    if (this.#size.isFull(onlyDeletes(reading.block))) return { outcome: 'later', stops: [] }
    const clash = this.#streams.open(key, reading.block.sessions)
    if (clash?.stream === stream) return this.#ended(stream, CLASH)
    const stops = clash === null ? [] : [this.#end(clash.stream, clash.end)]
    const fault = stream.fault(reading.block)
    if (fault !== null) return this.#ended(stream, fault)
    stream.push(reading.block)
    return { outcome: 'taken', stops: [...stops, ...this.#drain()] }
  }

  /**
   * Ends a stream: only its first `at` blocks count, here as everywhere. For facts that a replica cannot see, such as a
   * fork, and for stops that a rebuilt replica must know first.
   */
  stop(key: StreamKey, at: number, reason: string): readonly StreamStop[] {
    const stream = this.#streams.of(key)
    return stream === null ? [] : [this.#end(stream, { at, reason }), ...this.#drain()]
  }

  /**
   * Applies an update (v1) of a local program as a local edit. It needs the clientID of a session of this node, and
   * earlier edits must have been taken. {@link takeBlocks} cuts a large one. Returns why it is refused, or null.
   */
  write(bytes: Uint8Array): string | null {
    const reading = readUpdate(bytes, EDIT_LIMITS)
    if (!reading.ok) return reading.reason
    const { writes, needs } = reading.update
    const clockOf = (client: number): number => Y.getState(this.doc.store, client)
    if (writes !== null && this.#streams.ids.ownerOf(writes.client) !== this.#options.own)
      return 'an update with the clientID of another'
    if (writes !== null && writes.clock > clockOf(writes.client)) return 'an update that leaves out clocks'
    if ([...needs].some(([client, end]) => clockOf(client) < end)) return 'an update depends on missing items'
    if (this.#streams.isReversed(reading.update)) return REVERSED
    if (this.isFull()) return 'the document is full'
    Y.applyUpdate(this.doc, bytes)
    return null
  }

  /**
   * The edits of this node since the last call, as blocks to append to its own stream, in order. They count as
   * appended.
   */
  takeBlocks(): LocalBlocks {
    const { own } = this.#options
    const stream = own === null ? null : this.#streams.of(own)
    if (stream === null) return { ok: true, blocks: [] }
    const faultOf = (block: CheckedBlock): string | null => (this.#streams.hasReversed(block) ? REVERSED : null)
    const taken = this.#edits.take(stream, {
      sessions: this.#streams.ids.sessionsOf(stream.key),
      isFull: () => this.isFull(),
      faultOf
    })
    if (!taken.ok) this.#isVoid = true
    return taken
  }

  /** The whole document as one update (v1). */
  state(): Uint8Array {
    return Y.encodeStateAsUpdate(this.doc)
  }

  /** Streams that ended, as far as this replica knows. */
  ends(): ReadonlyMap<StreamKey, StreamEnd> {
    return this.#streams.ends()
  }

  /**
   * The document and the past of its streams, as bytes (format v1 of Yjs inside). Waiting blocks are not included. Not
   * for a replica that must be rebuilt.
   */
  snapshot(): Uint8Array {
    const streams = this.pasts().map(({ key, past, end }) => ({ key, ...past, end }))
    return encodeSnapshot({ guid: this.doc.guid, hasGaps: this.#hasGaps, streams }, this.doc)
  }

  /**
   * Could others make it of the blocks that it holds alone? Not with gaps: these follow from blocks behind, or from
   * access lists.
   */
  get isWritable(): boolean {
    return !this.#hasGaps
  }

  /** The past of its streams, in the order of their keys. */
  pasts(): { readonly key: StreamKey; readonly past: StreamPast; readonly end: StreamEnd | null }[] {
    return this.#streams.pasts((client) => Y.getState(this.doc.store, client))
  }

  /**
   * Starts from a snapshot; for a replica without any block. Returns why it cannot, or null. A snapshot is trusted:
   * take it only from this node or from a member who may write the document. `isInForce`: its content counts for good,
   * wherever its streams end.
   */
  load(bytes: Uint8Array, isInForce = false): string | null {
    if (this.#streams.size > 0) return 'the replica has begun already'
    const snapshot = decodeSnapshot(bytes)
    if (!snapshot.ok) return snapshot.reason
    if (snapshot.head.guid !== this.doc.guid) return 'a snapshot of another document'
    const head = isInForce ? headInForce(snapshot.head) : snapshot.head
    if (head === null) return 'a snapshot that says more of a stream than its blocks can have left'
    const scratch = snapshot.open()
    if (scratch === null) return 'a snapshot whose document cannot be read'
    return this.#follow(head, scratch, isInForce)
  }

  #follow({ streams, hasGaps }: SnapshotHead, { clocks, update }: SnapshotState, isInForce: boolean): string | null {
    this.#streams.restore(streams, isInForce)
    this.#hasGaps = hasGaps
    const isOf = (client: number): boolean =>
      (isInForce ? this.#streams.ids.ownerOf(client) : this.#streams.onceOwnerOf(client)) !== null
    if (![...clocks.keys()].every(isOf)) return 'a snapshot has an unowned clientID'
    if (isInForce && (hasGaps || !hasWritten(streams, { clocks, ids: this.#streams.ids })))
      return 'a snapshot with gaps'
    Y.applyUpdate(this.doc, update, FROM_STREAMS)
    return null
  }

  #ended(stream: DocumentStream, reason: string): Receipt {
    return { outcome: 'ended', stops: [this.#end(stream, { at: stream.length, reason }), ...this.#drain()] }
  }

  #end(stream: DocumentStream, end: StreamEnd): StreamStop {
    const stop = stream.endAt(end)
    this.#isVoid ||= stop.needsRebuild
    return stop
  }

  /** Applies every block without missing dependencies, until none is left. */
  #drain(): StreamStop[] {
    const stops: StreamStop[] = []
    let isMoving = !this.#isVoid
    while (isMoving) {
      isMoving = false
      for (const stream of this.#streams) {
        for (let block = stream.waiting[0]; block !== undefined && this.#isReady(block); block = stream.waiting[0]) {
          if (this.#streams.hasReversed(block)) {
            stream.drop()
            stops.push(this.#end(stream, { at: stream.applied, reason: REVERSED }))
            isMoving = true
            break
          }
          if (!apply(this.doc, block)) {
            stops.push(this.#end(stream, { at: stream.applied, reason: 'Yjs refuses an update' }))
            return stops
          }
          stream.shift()
          isMoving = true
        }
      }
    }
    return stops
  }

  #isReady(block: CheckedBlock): boolean {
    while (!this.#size.isFull(onlyDeletes(block))) {
      const missing = blocker(block, (client) => Y.getState(this.doc.store, client))
      if (missing === null) return true
      const stream = this.#streams.find(this.#streams.onceOwnerOf(missing.client))
      // The unwritten part of an ended stream never arrives: a gap takes its place, the same on every replica.
      if (stream === undefined || stream.end === null || stream.applied < stream.end.at) return false
      this.#hasGaps = true
      Y.applyUpdate(this.doc, gapFilling(missing, Y.getState(this.doc.store, missing.client)), FROM_STREAMS)
    }
    return false
  }
}

/** False when Yjs threw or kept something back: with updates that passed the checks it does neither. */
function apply(doc: Y.Doc, { updates }: CheckedBlock): boolean {
  let isWhole = false
  try {
    doc.transact(() => {
      for (const { bytes } of updates) Y.applyUpdate(doc, bytes, FROM_STREAMS)
      isWhole = true
    }, FROM_STREAMS)
  } catch {
    // Thrown before the end of the work it is Yjs; after it, an observer of some program, which is no fault of the
    // stream.
  }
  return isWhole && doc.store.pendingStructs === null && doc.store.pendingDs === null
}
