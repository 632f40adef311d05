import { asNodeError, NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentStreams } from '../../ports/documents.js'
import { NOT_ALLOWED } from './access.js'
import { ReplicaFeed, type DocumentChange, ReplicaRebuild } from './replica-feed.js'
import { type KeptDocument, replicaOfKept } from './local-cache.js'

/** A document is kept once it has so many blocks that what is kept of it does not have. */
const KEEP_BLOCKS = 256

/** What an open document needs. */
export interface OpenDocumentDeps {
  /** A replica that has seen nothing yet. */
  make(own: StreamKey | null): Replica
  readonly streams: Pick<DocumentStreams, 'read' | 'size'> & { append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<unknown> }
  /** Key of this node's own stream at first; null when it may not write. */
  readonly own: StreamKey | null
  /** Blocks that the own stream has, as far as this node knows. */
  written(own: StreamKey): number
  /** Throws when nobody else would ever see what is written to the own stream. */
  mustHavePlace(own: StreamKey): void
  /** A block as the own stream holds it, and back; null for what is none. */
  seal(block: Uint8Array): Uint8Array
  open(bytes: Uint8Array): Uint8Array | null
  /** The snapshot behind which the streams begin here; null when they are here from their first block on. */
  base(): Promise<Uint8Array | null>
  /** The document as it was kept once. */
  readonly kept: KeptDocument
  /** A stream ended at a block, and why. */
  onStop(stop: StreamStop): void
  /** The first block of the own stream is there. */
  onWritten(own: StreamKey): void
  onError(error: unknown): void
}

/** A snapshot of a document, and how many blocks of each stream are in it. */
export interface WrittenSnapshot {
  readonly lengths: Readonly<Record<StreamKey, number>>
  readonly bytes: Uint8Array
}

type Stop = Pick<StreamStop, 'at' | 'reason'>

/**
 * A document whose replica is in memory: fed with every block of the streams that count, its edits put into the own stream.
 * What changes it is done one after the other. A replica that took what counts no more is made anew.
 */
export class OpenDocument {
  readonly #deps: OpenDocumentDeps
  readonly #changes: Emitter<DocumentChange>
  #fed: ReplicaFeed
  /** How many blocks of each stream count. */
  #counted: ReadonlyMap<StreamKey, number> = new Map()
  readonly #stops = new Map<StreamKey, Stop>()
  readonly #programs = new ProgramIds()
  #own: StreamKey | null
  #hasBegun = false
  readonly #renewal = new ReplicaRebuild()
  /** Not all that is here was read: that goes on, or failed. */
  #isBehind = false
  #isFeeding = false
  /** What an edit that goes on changed. */
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

  /** Told of each change. */
  onChange(listener: (change: DocumentChange) => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /** Streams and how many blocks of each count. Resolves when all that is here of them is in the document. */
  async follow(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    await this.#inTurn(async () => {
      if (!this.#hasBegun) await this.#begin(counted)
      this.#hasBegun = true
      const before = this.#counted
      this.#counted = counted
      for (const [stream, at] of counted) {
        const was = before.get(stream) ?? Number.POSITIVE_INFINITY
        if (at < was) this.#limit(stream, at)
        // What was refused counts after all.
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

  /** Its streams begin later here: what it has not taken of what was before, it takes of the snapshot. All of it, if what it has is wrong. */
  onBegun(isOther = false): void {
    this.#inTurn(async () => {
      if (isOther) this.#renewal.need('void', this.#fed)
      for (const stream of this.#counted.keys()) this.#fed.offer(stream)
      await this.#feed()
    }).catch(this.#deps.onError)
  }

  /** Two branches of a stream were found: none of it counts. */
  onForked(stream: StreamKey, reason: string): void {
    if (this.#stops.get(stream)?.at === 0) return
    this.#inTurn(async () => {
      this.#noteStops(this.#replica.stop(stream, 0, reason))
      await this.#feed()
    }).catch(this.#deps.onError)
  }

  /** Reads the document once everything before is done. Rejects when the streams cannot be read. */
  read<T>(look: (replica: Replica) => T): Promise<T> {
    return this.#inTurn(async () => {
      await this.#beWhole()
      return look(this.#replica)
    })
  }

  /**
   * Edits the document as this node. Resolves when the edit is durable here; others hear of it then. One that is refused changes nothing.
   * @throws NodeError FORBIDDEN, OVERLOADED, CONFLICT while another own stream is made; PAYLOAD_TOO_LARGE for a single value that is too large to be told to others; what `change` throws
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
   * A clientID for a program; nobody else has it until it is given back. `wish`: the one that it had once, if nobody else had
   * it since. @throws NodeError FORBIDDEN, OVERLOADED
   */
  openSession(wanted: number | null = null): Promise<number> {
    return this.#inTurn(async () => {
      await this.#mustWrite()
      const isOfPrograms = (clientId: number): boolean => this.#replica.isOfPrograms(clientId)
      const clientId = this.#programs.choose(wanted, isOfPrograms) ?? this.#replica.openSession()
      // Announced before anybody writes with it.
      await this.#publish()
      this.#programs.give(clientId)
      return clientId
    })
  }

  /** The program of a session is gone. */
  closeSession(clientId: number): void {
    this.#programs.giveBack(clientId)
  }

  /** What is written from now on goes into another own stream. */
  goOn(own: StreamKey): Promise<void> {
    return this.#inTurn(async () => {
      this.#own = own
      this.#hasWritten = false
      this.#programs.clear()
      this.#renewal.need('moved', this.#fed)
      await this.#feed()
    })
  }

  /** Writes an update of a session, as {@link edit}: one that is refused may be written again. @throws NodeError INVALID_INPUT, FORBIDDEN, OVERLOADED, CONFLICT, PAYLOAD_TOO_LARGE */
  write(update: Uint8Array, session: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#checkCapacity()
      await this.#change(session, () => {
        const fault = this.#replica.write(update)
        if (fault !== null) throw new NodeError('INVALID_INPUT', `the update is not taken: ${fault}`)
      })
    })
  }

  /** Streams that ended, and why. */
  stops(): ReadonlyMap<StreamKey, Stop> {
    return this.#stops
  }

  /** Keeps it as it is, if what is kept lacks so many blocks. */
  keep(blocks = KEEP_BLOCKS): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#fed.unkept < blocks || this.#renewal.isDue || this.#isBehind) return
      await this.#deps.kept.write(this.#replica.snapshot())
      this.#fed.unkept = 0
    })
  }

  /** It as it is, for others; null while it is being made anew, has gaps, or one of so many blocks of each stream is not worth it. */
  snapshot(isWorth: (stored: Pick<WrittenSnapshot, 'lengths'>) => boolean): Promise<WrittenSnapshot | null> {
    return this.#inTurn(() => {
      const lengths = this.#replica.vectorClock()
      const isWhole = !this.#renewal.isDue && !this.#isBehind && this.#replica.isWritable
      return Promise.resolve(isWhole && isWorth({ lengths }) ? { lengths, bytes: this.#replica.snapshot() } : null)
    })
  }

  /** Lets it go, once what was begun is done. */
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

  /** What changes in it is news. What this node writes is so once it is durable, and what is read anew once that is whole. */
  #onDocumentMessage(replica: Replica): Replica {
    replica.doc.on('update', (update: Uint8Array) => {
      if (this.#untold !== null) this.#untold.push(update)
      else if (!this.#renewal.isUntold) this.#changes.emit({ type: 'update', update, by: null })
    })
    return replica
  }

  /** Goes on from what was kept, if that counts still; else it is made of the streams. */
  async #begin(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    const { kept, streams, make } = this.#deps
    const replica = (await replicaOfKept(kept, { counted, streams, make: () => make(this.#own) })) ?? (await this.#made())
    this.#replica.doc.destroy()
    this.#fed = this.#fedOne(replica)
    // What was heard before it began counts for this replica too.
    for (const [stream, { at, reason }] of this.#stops) this.#noteStops(replica.stop(stream, at, reason))
    for (const [stream, end] of replica.ends()) if (end.reason !== NOT_ALLOWED && !this.#stops.has(stream)) this.#stops.set(stream, end)
  }

  /** A limit of the access list may be lifted again, so it is no stop for good. */
  #limit(stream: StreamKey, at: number): void {
    const stops = this.#replica.stop(stream, at, NOT_ALLOWED)
    if (stops.some(({ needsRebuild }) => needsRebuild)) this.#renewal.need('void', this.#fed)
    this.#noteStops(stops.filter((stop) => stop.stream !== stream))
  }

  async #checkCapacity(): Promise<void> {
    await this.#mustWrite()
    if (this.#replica.isFull()) throw new NodeError('OVERLOADED', 'the document is full')
  }

  /** The right to write may have been lost since somebody asked for it. */
  async #mustWrite(): Promise<void> {
    await this.#beWhole()
    const own = this.#own
    if (own === null) throw new NodeError('FORBIDDEN', 'this node may not write the document')
    if (this.#stops.has(own)) throw new NodeError('CONFLICT', 'this node goes on with another stream of the document: try again')
    if (Number.isFinite(this.#counted.get(own))) throw new NodeError('FORBIDDEN', 'this node may not write the document any more')
    this.#deps.mustHavePlace(own)
    // Else clocks that were used already would be used again, and others would end the stream.
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

  /** Does an edit of this node or a session, tells it to others once it is durable, and forgets what is refused. */
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

  /** Puts what was edited into the own stream. What fails to get there is in the replica, and will never be in the stream. */
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

  /** What holds something that does not count, or was not read to its end, nobody reads or edits. */
  async #beWhole(): Promise<void> {
    if (this.#renewal.isDue || this.#isBehind) await this.#feed()
  }

  /** Takes all that can be taken of the streams that may have more. When they cannot be read, the next one who needs it goes on. */
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

  /** A new replica: told what ended first, then to be fed with all streams. */
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

  /** A replica that has seen nothing, but for the snapshot behind which the streams begin. */
  async #made(): Promise<Replica> {
    const base = await this.#deps.base()
    const replica = this.#deps.make(this.#own)
    const fault = base === null ? null : replica.load(base, true)
    if (fault !== null) throw new NodeError('STORE_DAMAGED', `a snapshot of the document cannot be read: ${fault}`)
    return replica
  }
}

/**
 * Which clientIDs the programs have that hold a document. One whose program is gone goes to the next one, which begins with the
 * whole document; so a stream's sessions are not used up by programs that come and go.
 */
class ProgramIds {
  /** Of programs that go on. */
  readonly #given = new Set<number>()
  /** Of programs that are gone. */
  readonly #free: number[] = []
  /** Those of them that were given to another program than the first. */
  readonly #reused = new Set<number>()

  /**
   * The one that a program had once, if it is one of programs and nobody else had it since; else one that is over; null when
   * there is none. After a restart no program goes on: what was not given since belongs to who asks for it.
   */
  choose(wanted: number | null, isOfPrograms: (clientId: number) => boolean): number | null {
    const mayHave = wanted !== null && !this.#given.has(wanted) && !this.#reused.has(wanted) && isOfPrograms(wanted)
    return mayHave ? this.#again(wanted) : this.#another(wanted)
  }

  /** Nobody else has it until it is given back. */
  give(clientId: number): void {
    this.#given.add(clientId)
  }

  /** Its program is gone. */
  giveBack(clientId: number): void {
    if (this.#given.delete(clientId)) this.#free.push(clientId)
  }

  /** They are those of a stream that is written no more. */
  clear(): void {
    this.#free.length = 0
    this.#given.clear()
  }

  #again(wanted: number): number {
    const place = this.#free.indexOf(wanted)
    if (place !== -1) this.#free.splice(place, 1)
    return wanted
  }

  /** Not the one that was wished for: who asks would take it for its own still. */
  #another(wanted: number | null): number | null {
    const place = this.#free.findLastIndex((clientId) => clientId !== wanted)
    const [clientId = null] = place === -1 ? [] : this.#free.splice(place, 1)
    if (clientId !== null) this.#reused.add(clientId)
    return clientId
  }
}
