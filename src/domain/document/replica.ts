import * as Y from 'yjs'
import { NodeError } from '../../kit/errors.js'
import type { Hash } from '../../kit/sign.js'
import type { CheckedBlock } from './block.js'
import { BlockApplier, FROM_STREAMS, REVERSED } from './block-applier.js'
import { type ClientIdClash, ClientIds, clientIdOf, MAX_SESSIONS, type StreamKey } from './client-ids.js'
import { DocumentSize } from './document-size.js'
import { LocalEdits, type LocalBlocks } from './local-edits.js'
import { type OwnSnapshot, snapshotOf } from './own-snapshot.js'
import { decodeSnapshot, encodeSnapshot, headOf, pastOf, type SnapshotHead } from './snapshot.js'
import { isSameDocument } from './same-document.js'
import { DocumentStream, isSameBeginning, type StreamBeginning, type StreamEnd } from './stream.js'
import { readUpdate } from './update.js'

/** Largest document in bytes, as one update of Yjs. */
export const MAX_DOCUMENT_BYTES = 16_777_216
/** Streams that one document may have. */
export const MAX_STREAMS = 4096

/** The session of a stream under which its node edits by itself; those behind it are of programs. */
const OWN_SESSION = 0

/** What a replica is made of. */
export interface ReplicaOptions {
  /** The document's id. */
  readonly guid: string
  readonly hash: Hash
  /** The key of this node's own stream; null for one that only reads. */
  readonly own: StreamKey | null
  /** In bytes; {@link MAX_DOCUMENT_BYTES} unless told otherwise. */
  readonly maxBytes?: number
}

/** One block of a stream as it arrived; `index` is its place, from 0 on. */
export interface StreamBlock {
  readonly stream: StreamKey
  readonly index: number
  readonly bytes: Uint8Array
}

/** A stream ended: what follows in it counts nowhere. */
export interface StreamStop {
  readonly stream: StreamKey
  /** Blocks of it that count. */
  readonly at: number
  /** In words of this node. */
  readonly reason: string
  /** Is something in this replica that no longer counts? Then make a new one, tell it of this stop first, and give it all streams again. */
  readonly needsRebuild: boolean
}

/**
 * What became of a block. `taken`: applied, or kept until what it stands on is there. `known`: it was taken before. `early`:
 * blocks before it are missing. `later`: too much waits, the document is full, or this
 * replica must be made anew; offer it again. `ended`: its stream has.
 */
export interface Receipt {
  readonly outcome: 'taken' | 'known' | 'early' | 'later' | 'ended'
  /** Streams that this block brought to their end. */
  readonly stops: readonly StreamStop[]
}

/** Numbers of a replica, as they are now. */
export interface ReplicaCounts {
  readonly streams: number
  /** Blocks that are applied, and those that wait for what they stand on. */
  readonly applied: number
  readonly waiting: number
  readonly waitingBytes: number
  /** Size of the document as one update, in bytes. */
  readonly bytes: number
  readonly isFull: boolean
  /** How often something that waits was looked at. */
  readonly looks: number
}

const CLASH = 'its clientID is that of another'

/**
 * One node's copy of a document: the Y.Doc and how far it follows each member's stream. Blocks are checked before Yjs sees
 * them, and applied in the order of their stream, once what they stand on is there. Its state depends on the blocks that it
 * was given and on which streams ended where, never on the order in which streams arrived.
 */
export class Replica {
  /** The live document. Programs of this node edit it under the clientID of a session (see {@link openSession}). */
  readonly doc: Y.Doc
  readonly #ids: ClientIds
  readonly #streams = new Map<StreamKey, DocumentStream>()
  readonly #options: ReplicaOptions
  readonly #edits = new LocalEdits()
  readonly #size: DocumentSize
  readonly #applier: BlockApplier
  readonly #beginnings = new Map<StreamKey, StreamBeginning>()
  /** The clientID that stands in for that of the first session. */
  #ownMeanwhile: number | null = null
  /** Holds something that no longer counts, or that nobody else can take. */
  #isVoid = false

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#ids = new ClientIds(options.hash)
    this.doc = new Y.Doc({ guid: options.guid, gc: true })
    this.#size = new DocumentSize(options.maxBytes ?? MAX_DOCUMENT_BYTES, () => Y.encodeStateAsUpdate(this.doc).byteLength)
    this.#applier = new BlockApplier({ doc: this.doc, ids: this.#ids, streams: this.#streams, isFull: () => this.isFull() })
    // No session yet: what is written now belongs to nobody, and is refused.
    this.doc.clientID = 0
    this.doc.on('update', (update: Uint8Array, origin: unknown) => {
      this.#size.grow(update.byteLength)
      if (origin !== FROM_STREAMS) this.#edits.add(update)
    })
    // Yjs removes marks of formatting that mean nothing any more, after what came from elsewhere. Which these are depends on
    // what came first, so replicas would differ; who writes may do so, and then it is an edit like any other.
    this.doc.on('afterTransaction', (transaction: Y.Transaction) => {
      if (transaction.origin === FROM_STREAMS) Object.assign(transaction, { _needFormattingCleanup: false })
    })
  }

  /** Blocks applied of each stream; of those without any nothing. */
  vectorClock(): Record<StreamKey, number> {
    const lengths = [...this.#streams.values()].map(({ key, applied }) => [key, applied] as const)
    return Object.fromEntries(lengths.filter(([, applied]) => applied > 0))
  }

  /** See {@link ReplicaCounts}. Measures the document: not for a hot path. */
  counts(): ReplicaCounts {
    const streams = [...this.#streams.values()]
    const sum = (of: (stream: DocumentStream) => number): number => streams.reduce((total, stream) => total + of(stream), 0)
    return {
      streams: streams.length,
      applied: sum(({ applied }) => applied),
      waiting: sum(({ waitingBlocks }) => waitingBlocks),
      waitingBytes: sum(({ waitingBytes }) => waitingBytes),
      bytes: this.#size.exact(),
      isFull: this.isFull(),
      looks: this.#applier.looks
    }
  }

  /** Has the document reached its size? It then takes no further block, nor should its node let anybody edit. */
  isFull(): boolean {
    return this.#size.isFull()
  }

  /**
   * Says that a stream goes on where others of the same member ended: before any block of it, or of these, is received. Returns the streams that this brings to their end. Saying it again changes nothing.
   * @throws NodeError CONFLICT when it comes too late, or another stream continues one of these
   */
  continues(key: StreamKey, beginning: StreamBeginning): readonly StreamStop[] {
    const known = this.#beginnings.get(key)
    if (known !== undefined && isSameBeginning(known, beginning)) return []
    const isGiven = (stream: StreamKey): boolean => (this.#streams.get(stream)?.length ?? 0) > 0
    const former = beginning.former.map(({ stream }) => stream)
    const isTaken = [key, ...former].some((stream) => isGiven(stream) || this.#ids.heirOf(stream) !== stream)
    if (known !== undefined || isTaken || former.includes(key)) throw new NodeError('CONFLICT', 'the stream cannot continue these')
    this.#beginnings.set(key, beginning)
    this.#streams.get(key)?.beginsWith(beginning.blocks)
    const stops = this.#ids.inherit(key, beginning.former).flatMap((clash) => this.#lose(clash))
    this.#applier.wakeAll()
    return [...stops, ...this.#drain()]
  }

  /** Takes one block of a stream: of another member, or an own one when it is read back. Never throws. */
  receive({ stream: key, index, bytes }: StreamBlock): Receipt {
    const stream = this.#streamOf(key)
    if (stream === null) return { outcome: 'later', stops: [] }
    if (stream.end !== null && index >= stream.end.at) return { outcome: 'ended', stops: [] }
    if (index < stream.length) return { outcome: 'known', stops: [] }
    if (index > stream.length) return { outcome: 'early', stops: [] }
    if (this.#isVoid || stream.isFull || this.isFull()) return { outcome: 'later', stops: [] }
    const reading = stream.check(bytes)
    if (!reading.ok) return this.#ended(stream, reading.reason)
    if (!stream.hasRoomFor(reading.block, () => this.#applier.isWhole(reading.block))) return { outcome: 'later', stops: [] }
    const clash = this.#ids.open(key, reading.block.sessions)
    if (clash?.loser === key) return this.#ended(stream, CLASH)
    const stops = clash === null ? [] : this.#lose(clash)
    const fault = stream.fault(reading.block)
    if (fault !== null) return this.#ended(stream, fault)
    this.#applier.push(stream, reading.block)
    return { outcome: 'taken', stops: [...stops, ...this.#drain()] }
  }

  /**
   * Ends a stream: of it only the first `at` blocks count, here as everywhere. For what a replica cannot see itself, such as
   * two tales of one stream, and for stops that a rebuilt replica is told of first.
   */
  stop(key: StreamKey, at: number, reason: string): readonly StreamStop[] {
    const stream = this.#streamOf(key)
    return stream === null ? [] : [this.#end(stream, { at, reason }), ...this.#drain()]
  }

  /**
   * Writes an update (v1) of a program of this node into the document, as if it had been edited here. It must have the
   * clientID of a session of this node, and what was written before must have been taken. Returns why it is refused, or null.
   */
  write(bytes: Uint8Array): string | null {
    const reading = readUpdate(bytes)
    if (!reading.ok) return reading.reason
    const { writes, needs } = reading.update
    const clockOf = (client: number): number => Y.getState(this.doc.store, client)
    if (writes !== null && !this.#isOwn(writes.client)) return 'an update with the clientID of another'
    if (writes !== null && writes.clock > clockOf(writes.client)) return 'an update that leaves out clocks'
    if ([...needs].some(([client, end]) => clockOf(client) < end)) return 'an update that stands on what is not there'
    if (this.#applier.isReversed(reading.update)) return REVERSED
    if (this.isFull()) return 'the document is full'
    Y.applyUpdate(this.doc, bytes)
    return null
  }

  /**
   * The clientID to edit with as this node: that of the first session of its stream, always, so that a node never runs out of them.
   * As long as something that was written with it waits for what it stands on, one of a session for that.
   * @throws NodeError as {@link openSession}
   */
  ownClientId(): number {
    const own = this.#mustOwn()
    this.#ids.open(own, 1)
    const first = this.#firstClientId(own)
    const isWhole = this.#streamOf(own)?.clockOf(first) === Y.getState(this.doc.store, first)
    return isWhole ? first : (this.#ownMeanwhile ??= this.openSession())
  }

  /**
   * Opens a session for a program of this node. Returns the clientID to write with. The own stream must have been read back
   * whole; call {@link takeBlocks} before a program gets the clientID.
   * @throws NodeError FORBIDDEN without a stream of its own, OVERLOADED beyond 4,096 sessions
   */
  openSession(): number {
    const own = this.#mustOwn()
    const number = Math.max(OWN_SESSION + 1, this.#ids.sessionsOf(own))
    if (number >= MAX_SESSIONS) throw new NodeError('OVERLOADED', `this node has had ${MAX_SESSIONS} sessions of the document`)
    this.#ids.open(own, number + 1)
    return clientIdOf({ stream: own, number }, this.#options.hash)
  }

  /** Is it the clientID of a session that programs of this node may have? */
  isOfPrograms(clientId: number): boolean {
    const { own } = this.#options
    if (own === null || clientId === this.#ownMeanwhile || clientId === this.#firstClientId(own)) return false
    return this.#isOwn(clientId)
  }

  /** The edits of this node since the last call, as blocks to append to its own stream, in order. They count as appended. */
  takeBlocks(): LocalBlocks {
    const { own } = this.#options
    const stream = own === null ? null : this.#streamOf(own)
    if (stream === null) return { ok: true, blocks: [] }
    const faultOf = (block: CheckedBlock): string | null => (this.#applier.hasReversed(block) ? REVERSED : null)
    const taken = this.#edits.take(stream, { sessions: this.#ids.sessionsOf(stream.key), faultOf })
    if (!taken.ok) this.#isVoid = true
    return taken
  }

  /** The whole document as one update (v1). */
  state(): Uint8Array {
    return Y.encodeStateAsUpdate(this.doc)
  }

  /** Streams that ended, as far as this replica knows. */
  ends(): ReadonlyMap<StreamKey, StreamEnd> {
    return new Map([...this.#streams.values()].flatMap(({ key, end }) => (end === null ? [] : [[key, end] as const])))
  }

  /**
   * The document and what its streams have left here, as bytes (format v2 of Yjs inside). Blocks that wait are not in it. Not of a
   * replica that is to be made anew. Null while a part of what a stream begins with is in the document, and a part not.
   */
  snapshot(): Uint8Array | null {
    const streams = [...this.#streams.values()]
    if (streams.some(({ isPartial }) => isPartial)) return null
    const clockOf = (client: number): number => Y.getState(this.doc.store, client)
    const heads = streams.map((stream) => headOf(stream, clockOf, this.#beginnings.get(stream.key)))
    const isFilled = this.#applier.hasFilled ? { isFilled: true } : {}
    return encodeSnapshot({ guid: this.doc.guid, streams: heads.sort((a, b) => (a.key < b.key ? -1 : 1)), ...isFilled }, this.doc)
  }

  /**
   * All that this node's own stream wrote, as blocks to begin another stream with, and the streams with whose clientIDs.
   * Null when that cannot be told, or not now: without a stream that goes on, while something of it waits or was not taken yet,
   * while a part of what any stream begins with is applied, when something was filled with nothing, cannot be cut to size, or is of too many streams.
   */
  ownSnapshot(): OwnSnapshot | null {
    const stream = this.#streams.get(this.#options.own ?? '')
    if (stream === undefined || stream.end !== null || !stream.isIdle || stream.isBeginning) return null
    const isSettled = this.#edits.isEmpty && [...this.#streams.values()].every(({ isPartial }) => !isPartial)
    if (this.#isVoid || this.#applier.hasFilled || !isSettled) return null
    return snapshotOf({ doc: this.doc, ids: this.#ids, stream, former: this.#beginnings.get(stream.key)?.former ?? [] })
  }

  /** Does another replica hold the same document? So a node proves a snapshot before it goes on with it. See {@link isSameDocument}. */
  isSameAs(other: Replica): boolean {
    return isSameDocument(this.doc, other.doc)
  }

  /**
   * Begins with a snapshot instead of nothing; for a replica that was given no block yet. Returns why it cannot, or null. A
   * snapshot is believed: take none but of this node or of a member who may write the document.
   */
  load(bytes: Uint8Array): string | null {
    if (this.#streams.size > 0) return 'the replica has begun already'
    const snapshot = decodeSnapshot(bytes)
    if (!snapshot.ok) return snapshot.reason
    if (snapshot.head.guid !== this.doc.guid) return 'a snapshot of another document'
    const scratch = snapshot.open()
    if (scratch === null) return 'a snapshot whose document cannot be read'
    return this.#follow(snapshot.head, scratch)
  }

  #follow(head: SnapshotHead, state: { readonly clocks: ReadonlyMap<number, number>; readonly update: Uint8Array }): string | null {
    const { streams } = head
    if (!this.#inherit(streams)) return 'a snapshot in which other streams go on'
    if (head.isFilled === true) for (const { key, end } of streams) this.#ids[end === null ? 'endFormer' : 'end'](key)
    if ([...state.clocks.keys()].some((client) => this.#ids.onceOwnerOf(client) === null)) return 'a snapshot with a clientID of nobody'
    for (const one of streams) {
      const stream = new DocumentStream(one.key, this.#ids, pastOf(one))
      stream.end = one.end
      if (one.beginning !== undefined) stream.beginsWith(one.beginning.blocks)
      this.#streams.set(one.key, stream)
    }
    this.#applier.hasFilled = head.isFilled === true
    Y.applyUpdateV2(this.doc, state.update, FROM_STREAMS)
    return null
  }

  /** Takes over which streams continue which, and whose clientIDs are known; false when this replica was told something else, or a former one has blocks. */
  #inherit(streams: SnapshotHead['streams']): boolean {
    for (const { key, beginning, length } of streams) {
      const known = this.#beginnings.get(key)
      if (
        known === undefined
          ? beginning?.former.some(({ stream }) => this.#ids.heirOf(stream) !== stream)
          : !isSameBeginning(known, beginning)
      )
        return false
      if (length > 0 && this.#ids.heirOf(key) !== key) return false
    }
    for (const { key, beginning, opened } of streams) {
      if (beginning !== undefined) this.#beginnings.set(key, beginning)
      this.#ids.inherit(key, beginning?.former ?? [])
      this.#ids.open(key, opened.length)
    }
    return true
  }

  #isOwn(clientId: number): boolean {
    const { own } = this.#options
    return own !== null && this.#ids.ownerOf(clientId) === own && this.#ids.streamOf(clientId) === own
  }

  #firstClientId(own: StreamKey): number {
    return clientIdOf({ stream: own, number: OWN_SESSION }, this.#options.hash)
  }

  #mustOwn(): StreamKey {
    if (this.#options.own === null) throw new NodeError('FORBIDDEN', 'this node may not write the document')
    return this.#options.own
  }

  #streamOf(key: StreamKey): DocumentStream | null {
    const known = this.#streams.get(key)
    if (known !== undefined) return known
    if (this.#streams.size >= MAX_STREAMS) return null
    const stream = new DocumentStream(key, this.#ids)
    const beginning = this.#beginnings.get(key)
    if (beginning !== undefined) stream.beginsWith(beginning.blocks)
    this.#streams.set(key, stream)
    return stream
  }

  #ended(stream: DocumentStream, reason: string, at = stream.length): Receipt {
    return { outcome: 'ended', stops: [this.#end(stream, { at, reason }), ...this.#drain()] }
  }

  /** The stream with the larger key never had that session; when it was heard of first it is taken back. */
  #lose({ loser, session }: ClientIdClash): StreamStop[] {
    const stream = this.#streamOf(loser)
    return stream === null ? [] : [this.#end(stream, { at: session === null ? 0 : stream.openedAt(session), reason: CLASH })]
  }

  #end(stream: DocumentStream, { at, reason }: StreamEnd): StreamStop {
    const end = { at: stream.countingOf(at), reason }
    if (stream.end === null || end.at < stream.end.at) stream.end = end
    this.#applier.wakeAll()
    const needsRebuild = stream.length > stream.end.at
    this.#isVoid ||= needsRebuild
    return { stream: stream.key, ...stream.end, needsRebuild }
  }

  /** Applies all that can be applied, and ends the streams that this brings to their end. */
  #drain(): StreamStop[] {
    const stops: StreamStop[] = []
    while (!this.#isVoid) {
      const fault = this.#applier.run()
      if (fault === null) break
      stops.push(this.#end(fault.stream, fault.end))
    }
    return stops
  }
}
