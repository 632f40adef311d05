import { asNodeError, NodeError, passingConflict } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { DocumentReplica, FormerReplica, WrittenSnapshot } from './document-replica.js'
import type { DocumentChange } from './replica-feed.js'

/** The number of blocks missing in the cached snapshot that makes a new one due. */
const KEEP_BLOCKS = 256

/** Dependencies of {@link OpenDocument}. */
export interface OpenDocumentDeps {
  readonly replica: DocumentReplica
  /** Appends blocks to the own stream. */
  append(own: StreamKey, blocks: readonly Uint8Array[]): Promise<unknown>
  /** The number of blocks of the own stream, as far as this node knows. */
  written(own: StreamKey): number
  /** Throws when no other member would ever see writes to the own stream. */
  mustHavePlace(own: StreamKey): void
  /** The own stream has its first block. */
  onWritten(own: StreamKey): void
  /** Called when blocks could not be taken. */
  onError(error: unknown): void
}

/**
 * A document in memory. Its edits go into the own stream. Reads, edits and updates of the replica run one after the
 * other.
 */
export class OpenDocument {
  readonly #deps: OpenDocumentDeps
  readonly #replica: DocumentReplica
  readonly #programs = new ProgramIds()
  #isFeeding = false
  #tail: Promise<unknown> = Promise.resolve()
  #hasWritten = false
  #isClosed = false

  constructor(deps: OpenDocumentDeps) {
    this.#deps = deps
    this.#replica = deps.replica
  }

  /** The ended streams, with block and reason. */
  get stops(): DocumentReplica['stops'] {
    return this.#replica.stops
  }

  /** Calls back for each change. */
  onChange(listener: (change: DocumentChange) => void): Unsubscribe {
    return this.#replica.onChange(listener)
  }

  /** Sets the counted blocks of each stream. Resolves when the document has all of them that are stored here. */
  async follow(counted: ReadonlyMap<StreamKey, number>): Promise<void> {
    await this.#inTurn(async () => {
      await this.#replica.follow(counted)
      this.#tellWritten()
    })
  }

  /** More of a stream is here. */
  onBlocks(stream: StreamKey): void {
    this.#replica.offer(stream)
    if (this.#isFeeding) return
    this.#isFeeding = true
    this.#inTurn(async () => {
      this.#isFeeding = false
      await this.#replica.feed()
    }).catch(this.#deps.onError)
  }

  /**
   * The streams begin later here: the replica takes missing blocks from the snapshot, or all when the replica is wrong
   * (`isOther`).
   */
  onBegun(isOther = false): void {
    this.#inTurn(() => this.#replica.beginLater(isOther)).catch(this.#deps.onError)
  }

  /** Two branches of a stream were found: none of its blocks counts. */
  onForked(stream: StreamKey, reason: string): void {
    if (this.stops.get(stream)?.at === 0) return
    this.#inTurn(() => this.#replica.exclude(stream, reason)).catch(this.#deps.onError)
  }

  /** Reads the document after all earlier work. Rejects when the streams cannot be read. */
  read<T>(look: (replica: Replica) => T): Promise<T> {
    return this.#inTurn(async () => {
      await this.#replica.beWhole()
      return look(this.#replica.current)
    })
  }

  /** The document before its first block, to take its blocks again; later blocks are not included. */
  former(): Promise<FormerReplica> {
    return this.#inTurn(async () => {
      await this.#replica.beWhole()
      return await this.#replica.former()
    })
  }

  /**
   * Edits the document as this node. Resolves when the edit is durable here, before others receive it. A refused edit
   * changes nothing.
   * @throws NodeError FORBIDDEN, OVERLOADED, CONFLICT while another own stream is made; PAYLOAD_TOO_LARGE for a single
   * value too large to send; the errors of `change`
   */
  edit<T>(change: (doc: Replica['doc']) => T): Promise<T> {
    return this.#inTurn(async () => {
      await this.#checkCapacity()
      const { current } = this.#replica
      const { doc } = current
      doc.clientID = current.sessions.clientId()
      return await this.#replica.edit(
        null,
        () => doc.transact(() => change(doc)),
        () => this.#publish()
      )
    })
  }

  /**
   * Reserves a clientID for a program until {@link closeSession}. `wanted`: its former one, given again if no other
   * program had it since.
   * @throws NodeError FORBIDDEN, OVERLOADED
   */
  openSession(wanted: number | null = null): Promise<number> {
    return this.#inTurn(async () => {
      await this.#mustWrite()
      const { current } = this.#replica
      const clientId =
        this.#programs.choose(wanted, (one) => current.sessions.isOfPrograms(one)) ?? current.sessions.open()
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
      this.#hasWritten = false
      this.#programs.clear()
      await this.#replica.goOn(own)
    })
  }

  /**
   * Writes an update of a session, as {@link edit}. A refused update may be written again.
   * @throws NodeError INVALID_INPUT, FORBIDDEN, OVERLOADED, CONFLICT, PAYLOAD_TOO_LARGE
   */
  write(update: Uint8Array, session: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#checkCapacity()
      const edit = (): void => {
        const fault = this.#replica.current.write(update)
        if (fault !== null) throw new NodeError('INVALID_INPUT', `the update is not taken: ${fault}`)
      }
      await this.#replica.edit(session, edit, () => this.#publish())
    })
  }

  /** Caches the document, if the cached snapshot lacks at least `blocks` blocks. */
  keep(blocks = KEEP_BLOCKS): Promise<void> {
    return this.#inTurn(() => this.#replica.keep(blocks))
  }

  /**
   * A snapshot of the document for others. null while it is rebuilt, when it has gaps, and when `isWorth` is false for
   * its lengths.
   */
  snapshot(isWorth: (stored: Pick<WrittenSnapshot, 'lengths'>) => boolean): Promise<WrittenSnapshot | null> {
    return this.#inTurn(() => Promise.resolve(this.#replica.snapshot(isWorth)))
  }

  /** Closes the document after pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#replica.close(this.#tail)
  }

  async #checkCapacity(): Promise<void> {
    await this.#mustWrite()
    if (this.#replica.current.isFull()) throw new NodeError('OVERLOADED', 'the document is full')
  }

  /** The right to write may be lost since the caller was checked. */
  async #mustWrite(): Promise<void> {
    const replica = this.#replica
    await replica.beWhole()
    const { own } = replica
    if (own === null) throw new NodeError('FORBIDDEN', 'this node may not write the document')
    if (replica.stops.has(own)) throw passingConflict('this node goes on with another stream of the document')
    if (replica.isLimited(own)) throw new NodeError('FORBIDDEN', 'this node may not write the document any more')
    this.#deps.mustHavePlace(own)
    // Else clocks would be used twice, and others would end the stream.
    if (replica.lengthOf(own) < this.#deps.written(own))
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

  /**
   * Appends the edits to the own stream. An edit that fails to get there leaves a wrong replica, so a rebuild follows.
   */
  async #publish(): Promise<void> {
    const { own, current } = this.#replica
    const taken = current.takeBlocks()
    if (!taken.ok) {
      this.#replica.undo()
      const code = taken.isFull === true ? 'OVERLOADED' : 'PAYLOAD_TOO_LARGE'
      throw new NodeError(code, `the edit cannot be sent to others: ${taken.reason}`, {
        next: ['a2a-node doc set --help']
      })
    }
    if (own === null || taken.blocks.length === 0) return
    try {
      await this.#deps.append(own, taken.blocks)
    } catch (error) {
      this.#replica.undo()
      throw asNodeError(error)
    }
    this.#replica.appended(own, taken.blocks.length)
    this.#tellWritten()
  }

  #tellWritten(): void {
    const { own } = this.#replica
    if (this.#hasWritten || own === null || this.#replica.lengthOf(own) === 0) return
    this.#hasWritten = true
    this.#deps.onWritten(own)
  }
}

/**
 * The clientIDs of programs with this document open. A clientID of a closed program goes to the next one, which begins
 * with the whole document. So programs that come and go do not use up a stream's sessions.
 */
class ProgramIds {
  /** Of open programs. */
  readonly #given = new Set<number>()
  /** Of closed programs. */
  readonly #free: number[] = []
  /** The clientIDs that were given to a second program. */
  readonly #reused = new Set<number>()

  /**
   * The `wanted` clientID, if it belongs to programs and no other program had it since; else a free one; null for none.
   * After a restart no program is open: a clientID that was not given since belongs to the caller that wants it.
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
