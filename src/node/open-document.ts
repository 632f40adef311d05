import { asNodeError, NodeError } from '../kit/errors.js'
import { Emitter, type Unsubscribe } from '../kit/events.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import type { Replica, StreamStop } from '../domain/document/replica.js'
import type { DocumentStreams } from '../ports/documents.js'
import type { KeptDocument } from './kept-documents.js'

/** Blocks that are read at once. */
const READ_BLOCKS = 256
/** A document is kept once it has so many blocks that what is kept of it does not have. */
const KEEP_BLOCKS = 256
const NOTHING = new Uint8Array()
const NOT_ALLOWED = 'its member may not write'

/** What an open document needs. */
export interface OpenDocumentParts {
  /** A replica that has seen nothing yet. */
  make(own: StreamKey | null): Replica
  readonly streams: Pick<DocumentStreams, 'read'> & { append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<unknown> }
  /** Key of this node's own stream at first; null when it may not write. */
  readonly own: StreamKey | null
  /** A block as the own stream holds it, and back; null for what is none. */
  seal(block: Uint8Array): Uint8Array
  open(bytes: Uint8Array): Uint8Array | null
  /** The document as it was kept once. */
  readonly kept: KeptDocument
  /** A stream ended at a block, and why. */
  onStop(stop: StreamStop): void
  /** The first block of the own stream is there. */
  onWritten(own: StreamKey): void
  onError(error: unknown): void
}

/** What those who hold a document are told. */
export type DocumentNews =
  /** `by`: the session that wrote it; null for this node and for others. */
  | { readonly type: 'update'; readonly update: Uint8Array; readonly by: string | null }
  /** Something was taken back: begin anew. `isMoved`: with another own stream, so sessions need other clientIDs. */
  | { readonly type: 'reset'; readonly isMoved: boolean }

type Stop = Pick<StreamStop, 'at' | 'reason'>

/**
 * A document whose replica is in memory: fed with every block of the streams that count, its edits put into the own stream.
 * What changes it is done one after the other. A replica that took what counts no more is made anew.
 */
export class OpenDocument {
  readonly #parts: OpenDocumentParts
  readonly #news: Emitter<DocumentNews>
  #replica: Replica
  /** How many blocks of each stream count. */
  #counted: ReadonlyMap<StreamKey, number> = new Map()
  readonly #stops = new Map<StreamKey, Stop>()
  /** The next block of each stream, and the streams that may have one. */
  readonly #next = new Map<StreamKey, number>()
  readonly #due = new Set<StreamKey>()
  /** ClientIDs of sessions that go on. */
  readonly #given = new Set<number>()
  /** ClientIDs of sessions that are over: a new one that begins with the whole document may go on with one. */
  readonly #free: number[] = []
  /** Those of them that were given to another program than the first. */
  readonly #reused = new Set<number>()
  #clientId: number | null = null
  #own: StreamKey | null
  #hasBegun = false
  /** Blocks that what is kept does not have. */
  #unkept = 0
  #isStale = false
  #isFeeding = false
  #isBuilding = false
  #writer: string | null = null
  #tail: Promise<unknown> = Promise.resolve()
  #hasWritten = false
  #isClosed = false

  constructor(parts: OpenDocumentParts) {
    this.#parts = parts
    this.#own = parts.own
    this.#news = new Emitter(parts.onError)
    this.#replica = this.#fresh()
  }

  /** Told of each change. */
  onNews(listener: (news: DocumentNews) => void): Unsubscribe {
    return this.#news.on(listener)
  }

  /** Streams and how many blocks of each count. Resolves when all that is here of them is in the document. */
  async follow(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    await this.#inTurn(async () => {
      if (!this.#hasBegun) await this.#begin(counted)
      const before = this.#counted
      this.#counted = counted
      for (const [stream, at] of counted) {
        const was = before.get(stream) ?? Number.POSITIVE_INFINITY
        if (at < was) this.#limit(stream, at)
        // What was refused counts after all.
        else if (at > was) this.#isStale = true
        this.#due.add(stream)
      }
      await this.#feed()
      this.#tellWritten()
    })
  }

  /** More of a stream is here. */
  onBlocks(stream: StreamKey): void {
    this.#due.add(stream)
    if (this.#isFeeding) return
    this.#isFeeding = true
    this.#inTurn(async () => {
      this.#isFeeding = false
      await this.#feed()
    }).catch(this.#parts.onError)
  }

  /** Two tales of a stream were told: none of it counts. */
  onForked(stream: StreamKey, reason: string): void {
    if (this.#stops.get(stream)?.at === 0) return
    this.#inTurn(async () => {
      this.#noteStops(this.#replica.stop(stream, 0, reason))
      await this.#feed()
    }).catch(this.#parts.onError)
  }

  /** Reads the document once everything before is done. */
  read<T>(look: (replica: Replica) => T): Promise<T> {
    return this.#inTurn(async () => look(this.#replica))
  }

  /**
   * Edits the document as this node. Resolves when the edit is durable here.
   * @throws NodeError FORBIDDEN, OVERLOADED, CONFLICT while another own stream is made; PAYLOAD_TOO_LARGE for what is too large to be told to others; what `change` throws
   */
  edit<T>(change: (doc: Replica['doc']) => T): Promise<T> {
    return this.#inTurn(async () => {
      this.#mustHaveRoom()
      this.#clientId ??= this.#replica.openSession()
      const { doc } = this.#replica
      doc.clientID = this.#clientId
      const result = doc.transact(() => change(doc))
      await this.#publish()
      return result
    })
  }

  /**
   * A clientID for a program; nobody else has it until it is given back. `wish`: the one that it had once, if nobody else had
   * it since. @throws NodeError FORBIDDEN, OVERLOADED
   */
  openSession(wish: number | null = null): Promise<number> {
    return this.#inTurn(async () => {
      this.#mustWrite()
      const clientId = this.#again(wish) ?? this.#another(wish) ?? this.#replica.openSession()
      // Announced before anybody writes with it.
      await this.#publish()
      this.#given.add(clientId)
      return clientId
    })
  }

  /** The program of a session is gone. */
  closeSession(clientId: number): void {
    if (this.#given.delete(clientId)) this.#free.push(clientId)
  }

  /** What is written from now on goes into another own stream. */
  goOn(own: StreamKey): Promise<void> {
    return this.#inTurn(async () => {
      this.#own = own
      this.#hasWritten = false
      this.#forgetSessions()
      await this.#anew(true)
    })
  }

  /** Writes an update of a session. Resolves when it is durable here. @throws NodeError INVALID_INPUT, FORBIDDEN, OVERLOADED, CONFLICT, PAYLOAD_TOO_LARGE */
  write(update: Uint8Array, session: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#mustHaveRoom()
      this.#writer = session
      const fault = this.#replica.write(update)
      this.#writer = null
      if (fault !== null) throw new NodeError('INVALID_INPUT', `the update is not taken: ${fault}`)
      await this.#publish()
    })
  }

  /** Streams that ended, and why. */
  stops(): ReadonlyMap<StreamKey, Stop> {
    return this.#stops
  }

  /** Keeps it as it is, if what is kept lacks so many blocks. */
  keep(blocks = KEEP_BLOCKS): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#unkept < blocks || this.#isStale) return
      await this.#parts.kept.write(this.#replica.snapshot())
      this.#unkept = 0
    })
  }

  /** Lets it go, once what was begun is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#tail
    this.#replica.doc.destroy()
  }

  #fresh(): Replica {
    return this.#heard(this.#parts.make(this.#own))
  }

  /** What changes in it is news. */
  #heard(replica: Replica): Replica {
    replica.doc.on('update', (update: Uint8Array) => {
      if (!this.#isBuilding) this.#news.emit({ type: 'update', update, by: this.#writer })
    })
    return replica
  }

  /** Goes on from what was kept, if all of that counts still and is in the streams; else it is made of the streams. */
  async #begin(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    this.#hasBegun = true
    const snapshot = await this.#parts.kept.read()
    if (snapshot === null) return
    const replica = this.#parts.make(this.#own)
    if (replica.load(snapshot) !== null || !(await this.#holds(replica, counted))) return replica.doc.destroy()
    this.#replica.doc.destroy()
    this.#replica = this.#heard(replica)
    for (const [stream, length] of Object.entries(replica.vectorClock())) this.#next.set(stream, length)
    // What was heard before it began counts for this replica too.
    for (const [stream, { at, reason }] of this.#stops) this.#noteStops(replica.stop(stream, at, reason))
    for (const [stream, end] of replica.ends()) if (end.reason !== NOT_ALLOWED && !this.#stops.has(stream)) this.#stops.set(stream, end)
  }

  async #holds(replica: Replica, counted: ReadonlyMap<StreamKey, number>): Promise<boolean> {
    for (const [stream, { at, reason }] of replica.ends()) if (reason === NOT_ALLOWED && counted.get(stream) !== at) return false
    for (const [stream, length] of Object.entries(replica.vectorClock())) {
      if ((counted.get(stream) ?? 0) < length) return false
      if ((await this.#parts.streams.read(stream, length - 1, 1)).length === 0) return false
    }
    return true
  }

  /** A limit of the access list may be lifted again, so it is no stop for good. */
  #limit(stream: StreamKey, at: number): void {
    const stops = this.#replica.stop(stream, at, NOT_ALLOWED)
    this.#isStale ||= stops.some(({ needsRebuild }) => needsRebuild)
    this.#noteStops(stops.filter((stop) => stop.stream !== stream))
  }

  #mustHaveRoom(): void {
    this.#mustWrite()
    if (this.#replica.isFull()) throw new NodeError('OVERLOADED', 'the document is full')
  }

  /** The right to write may have been lost since somebody asked for it. */
  #mustWrite(): void {
    const own = this.#own ?? ''
    if (this.#stops.has(own)) throw new NodeError('CONFLICT', 'this node goes on with another stream of the document: try again')
    if (Number.isFinite(this.#counted.get(own))) throw new NodeError('FORBIDDEN', 'this node may not write the document any more')
  }

  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(() => {
      if (this.#isClosed) throw new NodeError('CANCELED', 'the document was closed')
      return job()
    })
    this.#tail = done.catch(() => {})
    return done
  }

  /** Puts what was edited into the own stream. */
  async #publish(): Promise<void> {
    const own = this.#own
    const taken = this.#replica.takeBlocks()
    if (!taken.ok) {
      await this.#undo()
      throw new NodeError('PAYLOAD_TOO_LARGE', `the edit cannot be told to others: ${taken.reason}`)
    }
    if (own === null || taken.blocks.length === 0) return
    try {
      await this.#parts.streams.append(own, taken.blocks.map(this.#parts.seal))
    } catch (error) {
      // It is in the replica and will never be in the stream.
      await this.#undo()
      throw asNodeError(error)
    }
    this.#next.set(own, (this.#next.get(own) ?? 0) + taken.blocks.length)
    this.#unkept += taken.blocks.length
    this.#tellWritten()
  }

  /** After a restart no session goes on: a clientID of this node that was not given since belongs to who asks for it. */
  #again(wish: number | null): number | null {
    if (wish === null || wish === this.#clientId || this.#given.has(wish) || this.#reused.has(wish) || !this.#replica.isOwn(wish))
      return null
    const place = this.#free.indexOf(wish)
    if (place !== -1) this.#free.splice(place, 1)
    return wish
  }

  /** Not the one that was wished for: who asks would take it for its own still. */
  #another(wish: number | null): number | null {
    const place = this.#free.findLastIndex((clientId) => clientId !== wish)
    const [clientId = null] = place === -1 ? [] : this.#free.splice(place, 1)
    if (clientId !== null) this.#reused.add(clientId)
    return clientId
  }

  #tellWritten(): void {
    const own = this.#own
    if (this.#hasWritten || own === null || (this.#next.get(own) ?? 0) === 0) return
    this.#hasWritten = true
    this.#parts.onWritten(own)
  }

  /** Goes back to what the streams hold. A session that they do not tell of is lost with it. */
  async #undo(): Promise<void> {
    this.#forgetSessions()
    await this.#anew()
  }

  #forgetSessions(): void {
    this.#clientId = null
    this.#free.length = 0
    this.#given.clear()
  }

  #noteStops(stops: readonly StreamStop[]): void {
    for (const stop of stops) {
      this.#isStale ||= stop.needsRebuild
      const known = this.#stops.get(stop.stream)
      if (known !== undefined && known.at <= stop.at) continue
      this.#stops.set(stop.stream, stop)
      this.#parts.onStop(stop)
    }
  }

  /** Takes all that can be taken of the streams that may have more. */
  async #feed(): Promise<void> {
    let isMoving = true
    while (isMoving && !this.#isClosed) {
      if (this.#isStale) await this.#anew()
      isMoving = false
      for (const stream of [...this.#due]) {
        if (await this.#feedFrom(stream)) isMoving = true
        if (this.#isStale) break
      }
      isMoving ||= this.#isStale
    }
  }

  /** True: something was taken. A stream that was read to its end is due no more. */
  async #feedFrom(stream: StreamKey): Promise<boolean> {
    let isTaken = false
    for (;;) {
      const from = this.#next.get(stream) ?? 0
      const counted = Math.min(this.#counted.get(stream) ?? 0, this.#stops.get(stream)?.at ?? Number.POSITIVE_INFINITY)
      const blocks = await this.#parts.streams.read(stream, from, Math.min(READ_BLOCKS, counted - from))
      if (blocks.length === 0) {
        this.#due.delete(stream)
        return isTaken
      }
      for (const [place, bytes] of blocks.entries()) {
        if (!this.#take(stream, from + place, bytes)) return isTaken
        isTaken = true
        if (this.#isStale) return true
      }
    }
  }

  /** False: it is to be offered again. */
  #take(stream: StreamKey, index: number, bytes: Uint8Array): boolean {
    const { outcome, stops } = this.#replica.receive({ stream, index, bytes: this.#parts.open(bytes) ?? NOTHING })
    this.#noteStops(stops)
    if (outcome === 'later') return false
    if (outcome === 'taken') this.#unkept++
    this.#next.set(stream, index + 1)
    return true
  }

  /** A new replica: told what ended first, then fed with all streams. */
  async #anew(isMoved = false): Promise<void> {
    this.#isStale = false
    this.#isBuilding = true
    this.#replica.doc.destroy()
    this.#replica = this.#fresh()
    this.#next.clear()
    for (const [stream, { at, reason }] of this.#stops) this.#replica.stop(stream, at, reason)
    for (const [stream, at] of this.#counted) {
      if (Number.isFinite(at)) this.#replica.stop(stream, at, NOT_ALLOWED)
      this.#due.add(stream)
    }
    await this.#feed()
    this.#isBuilding = false
    this.#news.emit({ type: 'reset', isMoved })
  }
}
