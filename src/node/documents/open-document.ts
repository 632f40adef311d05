import { asNodeError, NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentStreams } from '../../ports/documents.js'
import { NOT_ALLOWED } from './access.js'
import { ReplicaFeed, type DocumentChange, ReplicaRebuild } from './replica-feed.js'
import { type KeptDocument, replicaOfKept } from './local-cache.js'

/** The number of blocks missing in the cached snapshot that makes a new one due. */
const KEEP_BLOCKS = 256

/** Dependencies of {@link OpenDocument}. */
export interface OpenDocumentDeps {
  /** Makes an empty replica. */
  make(own: StreamKey | null): Replica
  readonly streams: Pick<DocumentStreams, 'read' | 'size'> & { append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<unknown> }
  /** Key of this node's own stream at first; null when it may not write. */
  readonly own: StreamKey | null
  /** The number of blocks of the own stream, as far as this node knows. */
  written(own: StreamKey): number
  /** Throws when no other member would ever see writes to the own stream. */
  mustHavePlace(own: StreamKey): void
  /** Packs a block for the own stream, and unpacks one; null for bytes that are no block. */
  seal(block: Uint8Array): Uint8Array
  open(bytes: Uint8Array): Uint8Array | null
  /** The snapshot behind which the streams begin here; null when their first blocks are here. */
  base(): Promise<Uint8Array | null>
  /** The cached snapshot of the document. */
  readonly kept: KeptDocument
  /** Called when a stream ends at a block, with the reason. */
  onStop(stop: StreamStop): void
  /** The own stream has its first block. */
  onWritten(own: StreamKey): void
  onError(error: unknown): void
}

/** A snapshot of a document, and the number of blocks of each stream in it. */
export interface WrittenSnapshot {
  readonly lengths: Readonly<Record<StreamKey, number>>
  readonly bytes: Uint8Array
}

type Stop = Pick<StreamStop, 'at' | 'reason'>

/**
 * A document with its replica in memory. The replica takes every block of the counted streams; its edits go into the own stream. Changes
 * run one after the other. A replica with blocks that no longer count is rebuilt.
 */
export class OpenDocument {
  readonly #deps: OpenDocumentDeps
  readonly #changes: Emitter<DocumentChange>
  #fed: ReplicaFeed
  /** The number of counted blocks of each stream. */
  #counted: ReadonlyMap<StreamKey, number> = new Map()
  readonly #stops = new Map<StreamKey, Stop>()
  readonly #programs = new ProgramIds()
  #own: StreamKey | null
  #hasBegun = false
  readonly #renewal = new ReplicaRebuild()
  /** True while stored blocks are unread: reading goes on, or failed. */
  #isBehind = false
  #isFeeding = false
  /** The updates of a running edit. */
  #untold: Uint8Array[] | null = null
  #tail: Promise<unknown> = Promise.resolve()
  #hasWritten = false
  #isClosed = false

  constructor(deps: OpenDocumentDeps) {
    this.#deps = deps
    this.#own = deps.own
    this.#changes = new Emitter(deps.onError)
    this.#fed = this.#fedOne(deps.make(deps.own))
  }

  /** Calls back for each change. */
  onChange(listener: (change: DocumentChange) => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** Sets the counted blocks of each stream. Resolves when the document has all of them that are stored here. */
  async follow(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    await this.#inTurn(async () => {
      if (!this.#hasBegun) await this.#begin(counted)
      this.#hasBegun = true
      const before = this.#counted
      this.#counted = counted
      for (const [stream, at] of counted) {
        const was = before.get(stream) ?? Number.POSITIVE_INFINITY
        if (at < was) this.#limit(stream, at)
        // Refused blocks count after all.
        else if (at > was) this.#renewal.need('void', this.#fed)
        this.#fed.offer(stream)
      }
      await this.#feed()
      this.#tellWritten()
    })
  }

  /** More of a stream is here. */
  onBlocks(stream: StreamKey): void {
    this.#fed.offer(stream)
    if (this.#isFeeding) return
    this.#isFeeding = true
    this.#inTurn(async () => {
      this.#isFeeding = false
      await this.#feed()
    }).catch(this.#deps.onError)
  }

  /** The streams begin later here: the replica takes missing blocks from the snapshot, or all when the replica is wrong (`isOther`). */
  onBegun(isOther = false): void {
    this.#inTurn(async () => {
      if (isOther) this.#renewal.need('void', this.#fed)
      for (const stream of this.#counted.keys()) this.#fed.offer(stream)
      await this.#feed()
    }).catch(this.#deps.onError)
  }

  /** Two branches of a stream were found: none of its blocks counts. */
  onForked(stream: StreamKey, reason: string): void {
    if (this.#stops.get(stream)?.at === 0) return
    this.#inTurn(async () => {
      this.#noteStops(this.#replica.stop(stream, 0, reason))
      await this.#feed()
    }).catch(this.#deps.onError)
  }

  /** Reads the document after all earlier work. Rejects when the streams cannot be read. */
  read<T>(look: (replica: Replica) => T): Promise<T> {
    return this.#inTurn(async () => {
      await this.#beWhole()
      return look(this.#replica)
    })
  }

  /**
   * Edits the document as this node. Resolves when the edit is durable here, before others receive it. A refused edit changes nothing.
   * @throws NodeError FORBIDDEN, OVERLOADED, CONFLICT while another own stream is made; PAYLOAD_TOO_LARGE for a single value too large to
   * send; the errors of `change`
   */
  edit<T>(change: (doc: Replica['doc']) => T): Promise<T> {
    return this.#inTurn(async () => {
      await this.#checkCapacity()
      const { doc } = this.#replica
      doc.clientID = this.#replica.ownClientId()
      return await this.#change(null, () => doc.transact(() => change(doc)))
    })
  }

  /**
   * Reserves a clientID for a program until {@link closeSession}. `wanted`: its former one, given again if no other program had it since.
   * @throws NodeError FORBIDDEN, OVERLOADED
   */
  openSession(wanted: number | null = null): Promise<number> {
    return this.#inTurn(async () => {
      await this.#mustWrite()
      const isOfPrograms = (clientId: number): boolean => this.#replica.isOfPrograms(clientId)
      const clientId = this.#programs.choose(wanted, isOfPrograms) ?? this.#replica.openSession()
      // Announce it before the first write with it.
      await this.#publish()
      this.#programs.give(clientId)
      return clientId
    })
  }

  /** Frees the clientID of a closed session. */
  closeSession(clientId: number): void {
    this.#programs.giveBack(clientId)
  }

  /** Later blocks go into another own stream. */
  goOn(own: StreamKey): Promise<void> {
    return this.#inTurn(async () => {
      this.#own = own
      this.#hasWritten = false
      this.#programs.clear()
      this.#renewal.need('moved', this.#fed)
      await this.#feed()
    })
  }

  /** Writes an update of a session, as {@link edit}. A refused update may be written again. @throws NodeError INVALID_INPUT, FORBIDDEN, OVERLOADED, CONFLICT, PAYLOAD_TOO_LARGE */
  write(update: Uint8Array, session: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#checkCapacity()
      await this.#change(session, () => {
        const fault = this.#replica.write(update)
        if (fault !== null) throw new NodeError('INVALID_INPUT', `the update is not taken: ${fault}`)
      })
    })
  }

  /** The ended streams, with block and reason. */
  stops(): ReadonlyMap<StreamKey, Stop> {
    return this.#stops
  }

  /** Caches the document, if the cached snapshot lacks at least `blocks` blocks. */
  keep(blocks = KEEP_BLOCKS): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#fed.unkept < blocks || this.#renewal.isDue || this.#isBehind) return
      await this.#deps.kept.write(this.#replica.snapshot())
      this.#fed.unkept = 0
    })
  }

  /** A snapshot of the document for others. null while it is rebuilt, when it has gaps, and when `isWorth` is false for its lengths. */
  snapshot(isWorth: (stored: Pick<WrittenSnapshot, 'lengths'>) => boolean): Promise<WrittenSnapshot | null> {
    return this.#inTurn(() => {
      const lengths = this.#replica.vectorClock()
      const isWhole = !this.#renewal.isDue && !this.#isBehind && this.#replica.isWritable
      return Promise.resolve(isWhole && isWorth({ lengths }) ? { lengths, bytes: this.#replica.snapshot() } : null)
    })
  }

  /** Closes the document after pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#tail
    this.#replica.doc.destroy()
  }

  get #replica(): Replica {
    return this.#fed.replica
  }

  #fedOne(replica: Replica): ReplicaFeed {
    return new ReplicaFeed(this.#onDocumentMessage(replica), {
      ...this.#deps,
      limitOf: (stream) => Math.min(this.#counted.get(stream) ?? 0, this.#stops.get(stream)?.at ?? Number.POSITIVE_INFINITY),
      onStops: (stops) => this.#noteStops(stops),
      onLater: () => this.#renewal.need('begun', this.#fed),
      isOver: () => this.#renewal.isDue || this.#isClosed
    })
  }

  /** Reports each update of the replica: an edit of this node once it is durable, a rebuilt replica once it is complete. */
  #onDocumentMessage(replica: Replica): Replica {
    replica.doc.on('update', (update: Uint8Array) => {
      if (this.#untold !== null) this.#untold.push(update)
      else if (!this.#renewal.isUntold) this.#changes.emit({ type: 'update', update, by: null })
    })
    return replica
  }

  /** Starts from the cached snapshot if that still counts; else builds the replica from the streams. */
  async #begin(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    const { kept, streams, make } = this.#deps
    const replica = (await replicaOfKept(kept, { counted, streams, make: () => make(this.#own) })) ?? (await this.#made())
    this.#replica.doc.destroy()
    this.#fed = this.#fedOne(replica)
    // Earlier stops count for this replica, too.
    for (const [stream, { at, reason }] of this.#stops) this.#noteStops(replica.stop(stream, at, reason))
    for (const [stream, end] of replica.ends()) if (end.reason !== NOT_ALLOWED && !this.#stops.has(stream)) this.#stops.set(stream, end)
  }

  /** Limits a stream by the access list. A later list may lift the limit, so it is no final stop. */
  #limit(stream: StreamKey, at: number): void {
    const stops = this.#replica.stop(stream, at, NOT_ALLOWED)
    if (stops.some(({ needsRebuild }) => needsRebuild)) this.#renewal.need('void', this.#fed)
    this.#noteStops(stops.filter((stop) => stop.stream !== stream))
  }

  async #checkCapacity(): Promise<void> {
    await this.#mustWrite()
    if (this.#replica.isFull()) throw new NodeError('OVERLOADED', 'the document is full')
  }

  /** The right to write may be lost since the caller was checked. */
  async #mustWrite(): Promise<void> {
    await this.#beWhole()
    const own = this.#own
    if (own === null) throw new NodeError('FORBIDDEN', 'this node may not write the document')
    if (this.#stops.has(own)) throw new NodeError('CONFLICT', 'this node goes on with another stream of the document: try again')
    if (Number.isFinite(this.#counted.get(own))) throw new NodeError('FORBIDDEN', 'this node may not write the document any more')
    this.#deps.mustHavePlace(own)
    // Else clocks would be used twice, and others would end the stream.
    if (this.#fed.lengthOf(own) < this.#deps.written(own))
      throw new NodeError('OVERLOADED', 'what this node wrote into the document is not read back yet: try again')
  }

  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(() => {
      if (this.#isClosed) throw new NodeError('CANCELED', 'the document was closed')
      return job()
    })
    this.#tail = done.catch(() => {})
    return done
  }

  /** Runs an edit of this node or a session and reports it once it is durable. A refused edit is undone. */
  async #change<T>(by: string | null, edit: () => T): Promise<T> {
    const updates: Uint8Array[] = []
    this.#untold = updates
    try {
      const result = edit()
      await this.#publish()
      for (const update of updates) this.#changes.emit({ type: 'update', update, by })
      return result
    } catch (error) {
      if (updates.length > 0) this.#renewal.need('refused', this.#fed)
      throw error
    } finally {
      this.#untold = null
    }
  }

  /** Appends the edits to the own stream. An edit that fails to get there leaves a wrong replica, so a rebuild follows. */
  async #publish(): Promise<void> {
    const own = this.#own
    const taken = this.#replica.takeBlocks()
    if (!taken.ok) {
      this.#renewal.need('refused', this.#fed)
      const code = taken.isFull === true ? 'OVERLOADED' : 'PAYLOAD_TOO_LARGE'
      throw new NodeError(code, `the edit cannot be sent to others: ${taken.reason}`, { next: ['a2a-node doc set --help'] })
    }
    if (own === null || taken.blocks.length === 0) return
    try {
      await this.#deps.streams.append(own, taken.blocks.map(this.#deps.seal))
    } catch (error) {
      this.#renewal.need('refused', this.#fed)
      throw asNodeError(error)
    }
    this.#fed.appended(own, taken.blocks.length)
    this.#tellWritten()
  }

  #tellWritten(): void {
    const own = this.#own
    if (this.#hasWritten || own === null || this.#fed.lengthOf(own) === 0) return
    this.#hasWritten = true
    this.#deps.onWritten(own)
  }

  #noteStops(stops: readonly StreamStop[]): void {
    for (const stop of stops) {
      if (stop.needsRebuild) this.#renewal.need('void', this.#fed)
      const known = this.#stops.get(stop.stream)
      if (known !== undefined && known.at <= stop.at) continue
      this.#stops.set(stop.stream, stop)
      this.#deps.onStop(stop)
    }
  }

  /** Reading and editing wait until the replica has no invalid and no unread blocks. */
  async #beWhole(): Promise<void> {
    if (this.#renewal.isDue || this.#isBehind) await this.#feed()
  }

  /** Takes all available blocks of the streams that may have more. After a read error the next caller goes on. */
  async #feed(): Promise<void> {
    this.#isBehind = true
    do {
      if (this.#renewal.isDue) await this.#beginAnew()
      await this.#fed.feed()
    } while (this.#renewal.isDue && !this.#isClosed)
    this.#isBehind = false
    const change = this.#isClosed ? null : this.#renewal.change(this.#fed)
    if (change !== null) this.#changes.emit(change)
  }

  /** Makes a new replica with the known stops, to be fed with all streams. */
  async #beginAnew(): Promise<void> {
    const replica = await this.#made()
    this.#renewal.isDue = false
    this.#replica.doc.destroy()
    this.#fed = this.#fedOne(replica)
    for (const [stream, { at, reason }] of this.#stops) this.#replica.stop(stream, at, reason)
    for (const [stream, at] of this.#counted) {
      if (Number.isFinite(at)) this.#replica.stop(stream, at, NOT_ALLOWED)
      this.#fed.offer(stream)
    }
  }

  /** A replica with nothing but the snapshot behind which the streams begin. */
  async #made(): Promise<Replica> {
    const base = await this.#deps.base()
    const replica = this.#deps.make(this.#own)
    const fault = base === null ? null : replica.load(base, true)
    if (fault !== null) throw new NodeError('STORE_DAMAGED', `a snapshot of the document cannot be read: ${fault}`)
    return replica
  }
}

/**
 * The clientIDs of programs with this document open. A clientID of a closed program goes to the next one, which begins with the whole
 * document. So programs that come and go do not use up a stream's sessions.
 */
class ProgramIds {
  /** Of open programs. */
  readonly #given = new Set<number>()
  /** Of closed programs. */
  readonly #free: number[] = []
  /** The clientIDs that were given to a second program. */
  readonly #reused = new Set<number>()

  /**
   * The `wanted` clientID, if it belongs to programs and no other program had it since; else a free one; null for none. After a restart no
   * program is open: a clientID that was not given since belongs to the caller that wants it.
   */
  choose(wanted: number | null, isOfPrograms: (clientId: number) => boolean): number | null {
    const mayHave = wanted !== null && !this.#given.has(wanted) && !this.#reused.has(wanted) && isOfPrograms(wanted)
    return mayHave ? this.#again(wanted) : this.#another(wanted)
  }

  /** Reserves a clientID until it is given back. */
  give(clientId: number): void {
    this.#given.add(clientId)
  }

  /** Frees the clientID of a closed program. */
  giveBack(clientId: number): void {
    if (this.#given.delete(clientId)) this.#free.push(clientId)
  }

  /** Forgets the clientIDs of a former stream. */
  clear(): void {
    this.#free.length = 0
    this.#given.clear()
  }

  #again(wanted: number): number {
    const place = this.#free.indexOf(wanted)
    if (place !== -1) this.#free.splice(place, 1)
    return wanted
  }

  /** Not `wanted`: the caller would still take it for its own. */
  #another(wanted: number | null): number | null {
    const place = this.#free.findLastIndex((clientId) => clientId !== wanted)
    const [clientId = null] = place === -1 ? [] : this.#free.splice(place, 1)
    if (clientId !== null) this.#reused.add(clientId)
    return clientId
  }
}
