import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { type IdSource, type NodeId, keyToText } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { shellWord, shown } from '../../../kit/text.js'
import { countedBlocks } from '../../../domain/document/counted.js'
import type { StreamKey } from '../../../domain/document/client-ids.js'
import type { DocumentRecord, DocumentSnapshot, StreamLengths } from '../../../domain/membership/types.js'
import type { DocumentStreams } from '../../../ports/documents.js'
import type { MemberLog } from '../../../ports/mesh.js'
import type { Problem } from '../../../ports/node-api.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { WrittenSnapshot } from '../document-replica.js'
import type { OpenDocument } from '../open-document.js'
import { ActiveSnapshots } from './active.js'
import { isFurther, lengthOf, SNAPSHOT_BLOCKS } from '../../../domain/membership/fold/document.js'
import { memberAccess } from '../access.js'

/**
 * How long a node with some of a snapshot's blocks waits for the rest, to compare them, before it believes the
 * snapshot.
 */
const GRACE_MS = 30_000
/** Delay before the next look at incomplete streams, in milliseconds. */
const AGAIN_MS = 1000
/** How long the log may take to answer whether the owner signed an entry, in milliseconds. */
const SIGNED_MS = 5000

/** Dependencies of {@link DocumentSnapshots}. */
export interface DocumentSnapshotsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly log: MemberLog
  readonly documents: DocumentStreams
  readonly self: NodeId
  idOf(name: string): string
  isFollowed(name: string): boolean
  /** Unpacks a block of a stream of the document; null for bytes that are no block. */
  open(name: string, bytes: Uint8Array): Uint8Array | null
  /** The streams of a document begin later here. `isOther`: the replica built so far was wrong. */
  onBegun(name: string, isOther: boolean): void
}

/** `same`: the snapshot may be used. `other`: never. `early`: not now. */
type SnapshotVerdict = 'same' | 'other' | 'early'

/**
 * Snapshots of documents, so that nodes need not keep their first blocks. A member with the right to write makes one,
 * and the log puts it in force. Every node uses it once it is stored there and the owner signed the entry. A node
 * compares its own blocks with it before it removes them.
 */
export class DocumentSnapshots {
  readonly used: ActiveSnapshots
  readonly #deps: DocumentSnapshotsDeps
  readonly #maker: SnapshotMaker
  /** Cores of snapshots with wrong content. */
  readonly #wrong = new Set<StreamKey>()
  /** Monotonic time until which a node waits before it believes a snapshot that it cannot compare. */
  readonly #patience = new Map<StreamKey, number>()
  /** Cores of snapshots in force that are not used here yet, with the names of their documents. */
  readonly #wanted = new Map<StreamKey, string>()
  readonly #jobs: DocumentJobs
  /** Functions that end open questions to the log. */
  readonly #asked = new Set<() => void>()
  #isClosed = false

  constructor(deps: DocumentSnapshotsDeps) {
    this.#deps = deps
    this.used = new ActiveSnapshots(deps)
    this.#jobs = new DocumentJobs({
      clock: deps.clock,
      look: (name) => this.#take(name),
      onError: (name, error) => this.#failed(name, error)
    })
    this.#maker = new SnapshotMaker({
      ...deps,
      used: this.used,
      onError: (name, error) => this.#failed(name, error),
      onSettled: (name) => void this.#jobs.run(name, () => this.used.tidy(name))
    })
  }

  /** Resolves once pending work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    const done = this.#jobs.close()
    for (const end of this.#asked) end()
    await done
    await this.used.close()
  }

  /** The problems for `status`: one for each document whose snapshot in force is refused. */
  problems(): Problem[] {
    const documents = [...this.#deps.log.view().documents.values()]
    return documents
      .filter(({ snapshot }) => snapshot !== undefined && this.#wrong.has(snapshot.coreKey))
      .map(({ name }) => ({
        code: 'CONFLICT',
        message: `a member wrote a snapshot of the document ${shown(name)} that is not what is in it; this node keeps its own`,
        next: `a2a-node doc export ${shellWord(name)}`
      }))
  }

  /** Records the cores to keep, before they are followed, so that a core that is replaced early is removed, too. */
  note(): void {
    for (const record of this.#deps.log.view().documents.values()) {
      if (record.snapshot === undefined || !this.#deps.isFollowed(record.name)) continue
      this.used.note(record.name, this.used.coresOf(record)).catch((error: unknown) => this.#failed(record.name, error))
    }
  }

  /** Uses each snapshot in force that can be used now, and completes interrupted work. */
  review(): void {
    this.#wanted.clear()
    for (const { name, snapshot } of this.#deps.log.view().documents.values()) {
      if (
        snapshot === undefined ||
        snapshot.coreKey === this.used.of(name)?.coreKey ||
        this.#wrong.has(snapshot.coreKey)
      )
        continue
      this.#wanted.set(snapshot.coreKey, name)
      if (snapshot.before !== undefined) this.#wanted.set(snapshot.before.coreKey, name)
      this.#jobs.look(name)
    }
    for (const name of this.used.unbegun())
      if (this.#deps.isFollowed(name)) void this.#jobs.run(name, () => this.#begin(name))
  }

  /** More of a core is here. */
  onBlocks(core: StreamKey): void {
    const name = this.#wanted.get(core)
    if (name !== undefined) this.#jobs.look(name)
  }

  /** Makes a snapshot of an open document that has grown enough, and submits it to the log. Never rejects. */
  offer(name: string, document: OpenDocument): Promise<void> {
    return this.#jobs.run(name, () => this.#maker.offer(name, document))
  }

  /** Removes all snapshots of a document. */
  forget(name: string): Promise<void> {
    return this.#jobs.run(name, () => this.used.forget(name))
  }

  /** The core of a stored snapshot in force with wrong content; undefined for none. */
  async wrongOf({ name, snapshot }: DocumentRecord): Promise<StreamKey | undefined> {
    if (snapshot === undefined || this.used.of(name)?.coreKey === snapshot.coreKey) return undefined
    const isTooLong = this.#isWhole(snapshot) && !(await this.#hasLengths(snapshot))
    return this.#wrong.has(snapshot.coreKey) || isTooLong ? snapshot.coreKey : undefined
  }

  #failed(name: string, error: unknown): void {
    if (!this.#isClosed)
      this.#deps.telemetry.log('warn', 'a snapshot of a document', { document: shown(name), reason: messageOf(error) })
  }

  async #take(name: string): Promise<void> {
    const { isFollowed, log } = this.#deps
    const record = log.view().documents.get(name)
    if (record?.snapshot === undefined || !isFollowed(name)) return
    // Refused and incomplete snapshots are removed, too, once another one is in force.
    await this.used.tidy(name)
    const snapshot = this.#candidate(record, record.snapshot)
    if (snapshot === null) return
    const patienceMs = this.#patienceLeft(snapshot)
    if (patienceMs > 0) return this.#jobs.lookIn(name, patienceMs)
    // Until then the log may still put another snapshot in its place.
    if (!(await this.#isSigned(snapshot))) return
    if (!(await this.#hasLengths(snapshot))) return this.#jobs.lookIn(name, AGAIN_MS)
    const bytes = await this.used.read(snapshot)
    const verdict = bytes === null ? 'other' : await this.#verdict(record, snapshot, bytes)
    const now = log.view().documents.get(name)?.snapshot
    const isInForce = snapshot.coreKey === now?.coreKey || snapshot.coreKey === now?.before?.coreKey
    if (this.#isClosed || !isInForce || verdict === 'early') return
    if (verdict === 'other' || bytes === null) return this.#refuse(name, snapshot)
    await this.#use(name, snapshot, bytes)
  }

  /**
   * The snapshot to use next: the one in force when it is here, else the one before it, unless that is used already.
   */
  #candidate(
    { name }: DocumentRecord,
    { before, ...inForce }: NonNullable<DocumentRecord['snapshot']>
  ): DocumentSnapshot | null {
    const used = this.used.of(name)
    if (used?.coreKey === inForce.coreKey) return null
    if (this.#isWhole(inForce) && !this.#wrong.has(inForce.coreKey)) return inForce
    if (before === undefined || used?.coreKey === before.coreKey || this.#wrong.has(before.coreKey)) return null
    return this.#isWhole(before) ? before : null
  }

  #isWhole({ coreKey, blocks }: DocumentSnapshot): boolean {
    return this.#deps.documents.size(coreKey).blocks >= blocks
  }

  /** False, too, when the log does not answer in time, or this node closes. */
  async #isSigned({ coreKey }: DocumentSnapshot): Promise<boolean> {
    const { clock, log } = this.#deps
    let end = (): void => {}
    const ended = new Promise<false>((resolve) => (end = () => resolve(false)))
    const timer = clock.after(SIGNED_MS, end)
    this.#asked.add(end)
    try {
      return await Promise.race([log.isCoreSigned(coreKey), ended])
    } finally {
      clock.clear(timer)
      this.#asked.delete(end)
    }
  }

  /**
   * True when each stream is as long as the snapshot says: a longer snapshot would remove blocks that it does not hold.
   */
  async #hasLengths({ lengths }: DocumentSnapshot): Promise<boolean> {
    for (const [stream, length] of Object.entries(lengths))
      if ((await this.#deps.documents.length(stream)) < length) return false
    return true
  }

  async #verdict(record: DocumentRecord, snapshot: DocumentSnapshot, bytes: Uint8Array): Promise<SnapshotVerdict> {
    const { documents, hash, idOf, log, open } = this.#deps
    const { name } = record
    const counted = ([stream, length]: readonly [StreamKey, number]): boolean =>
      length <= countedBlocks(log.view(), record, stream)
    if (!Object.entries(snapshot.lengths).every(counted)) return 'other'
    const { Replica } = await import('../../../domain/document/replica.js')
    const { compareSnapshot } = await import('./verify.js')
    // A snapshot that a list ended is no base for the next one.
    const base = this.used.isEnded(record) ? null : await this.used.base(record).catch(() => undefined)
    const result = await compareSnapshot(bytes, {
      lengths: snapshot.lengths,
      base: base ?? null,
      make: () => new Replica({ guid: idOf(name), hash, own: null }),
      streams: documents,
      open: (block) => open(name, block),
      isOver: () => this.#isClosed
    })
    if (result !== 'incomplete') return result
    // The snapshot must hold the blocks that are no longer stored here.
    if (Object.entries(snapshot.lengths).some(([stream, length]) => length < documents.size(stream).from))
      return 'early'
    return base === undefined || this.#isPatienceOver(name, snapshot) ? 'same' : 'early'
  }

  #refuse(name: string, { coreKey }: DocumentSnapshot): void {
    this.#wrong.add(coreKey)
    this.#deps.telemetry.log('error', 'a snapshot of a document is not what is in it', {
      document: shown(name),
      core: coreKey
    })
  }

  #patienceLeft({ coreKey }: DocumentSnapshot): number {
    return (this.#patience.get(coreKey) ?? 0) - this.#deps.clock.monotonic()
  }

  /**
   * A node with none of a snapshot's blocks has nothing to compare and nothing to lose. Any other node waits for the
   * rest, once.
   */
  #isPatienceOver(name: string, { coreKey, lengths }: DocumentSnapshot): boolean {
    const { clock, documents } = this.#deps
    const hasSome = Object.keys(lengths).some((stream) => documents.size(stream).blocks > documents.size(stream).from)
    if (!hasSome || this.#patience.has(coreKey)) return true
    this.#patience.set(coreKey, clock.monotonic() + GRACE_MS)
    this.#jobs.lookIn(name, GRACE_MS)
    return false
  }

  async #use(name: string, snapshot: DocumentSnapshot, bytes: Uint8Array): Promise<void> {
    const { documents, idOf, log } = this.#deps
    const record = log.view().documents.get(name)
    const isOther = record !== undefined && this.used.isEnded(record)
    // Else the cached document would bring the wrong content back.
    if (isOther) await documents.keep(idOf(name), null)
    await this.used.use(name, snapshot, bytes)
    this.#patience.delete(snapshot.coreKey)
    await this.#begin(name, isOther)
  }

  async #begin(name: string, isOther = false): Promise<void> {
    await this.used.begin(name).finally(() => this.#deps.onBegun(name, isOther))
    await this.used.tidy(name)
  }
}

interface JobsDeps {
  readonly clock: Clock
  /** Looks whether there is work on a document. */
  look(name: string): Promise<void>
  onError(name: string, error: unknown): void
}

/** The pending work on documents: for each one job after the other. */
class DocumentJobs {
  readonly #deps: JobsDeps
  readonly #tails = new Map<string, Promise<void>>()
  /** Documents whose next look waits for its turn. */
  readonly #due = new Set<string>()
  /** The timer of the next look at each document. */
  readonly #timers = new Map<string, Timer>()
  #isClosed = false

  constructor(deps: JobsDeps) {
    this.#deps = deps
  }

  /** Runs a job in turn; a failed one is tried again later. */
  run(name: string, job: () => Promise<void>): Promise<void> {
    const before = this.#tails.get(name) ?? Promise.resolve()
    const done = before
      .then(async () => (this.#isClosed ? undefined : await job()))
      .catch((error: unknown) => this.#deps.onError(name, error))
    this.#tails.set(name, done)
    void done.then(() => this.#tails.get(name) === done && this.#tails.delete(name))
    return done
  }

  /** Looks at a document in turn, once. */
  look(name: string): void {
    if (this.#due.has(name)) return
    this.#due.add(name)
    void this.run(name, async () => {
      this.#due.delete(name)
      await this.#deps.look(name)
    })
  }

  /** Looks at a document after a delay, in the place of an earlier one. */
  lookIn(name: string, delayMs: number): void {
    const { clock } = this.#deps
    clock.clear(this.#timers.get(name) ?? null)
    const look = (): void => {
      this.#timers.delete(name)
      this.look(name)
    }
    if (!this.#isClosed) this.#timers.set(name, clock.after(delayMs, look))
  }

  /** Starts no further job. Resolves when those under way are done. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers.values()) this.#deps.clock.clear(timer)
    await Promise.all(this.#tails.values())
  }
}

/** Bytes per block of a snapshot's core. */
const CHUNK_BYTES = 65_536
/** Time limit for bringing a snapshot into the log, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000
/** How much later an entry may come into force that the log did not take in time, in milliseconds. */
const LATE_MS = 300_000
/** The shortest time between two attempts to make a snapshot of a document, in milliseconds. */
const PAUSE_MS = 600_000

/** Dependencies of {@link SnapshotMaker}. */
interface SnapshotMakerDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  readonly log: MemberLog
  readonly documents: DocumentStreams
  readonly used: ActiveSnapshots
  readonly self: NodeId
  idOf(name: string): string
  onError(name: string, error: unknown): void
  /** Called when cores that are not in force may be removed. */
  onSettled(name: string): void
}

/** Makes snapshots of open documents that have grown enough, and submits them to the log. */
class SnapshotMaker {
  readonly #deps: SnapshotMakerDeps
  /** Time of the last attempt for each document. */
  readonly #triedAt = new Map<string, number>()

  constructor(deps: SnapshotMakerDeps) {
    this.#deps = deps
  }

  /** Makes a snapshot of a document if it is due. */
  async offer(name: string, document: OpenDocument): Promise<void> {
    const { clock, log, self, used } = this.#deps
    const record = log.view().documents.get(name)
    const now = clock.monotonic()
    if (record === undefined || now - (this.#triedAt.get(name) ?? Number.NEGATIVE_INFINITY) < PAUSE_MS) return
    // A snapshot built on a wrong one would be wrong, too.
    if (used.isEnded(record) || !this.#isDue(record) || !memberAccess(log.view(), record, self).mayWrite) return
    this.#triedAt.set(name, now)
    const known = new Set(record.streams.map(({ coreKey }) => coreKey))
    const isWorth = ({ lengths }: StreamLengths): boolean =>
      isFurther(record, { lengths }) && Object.keys(lengths).every((stream) => known.has(stream))
    const written = await document.snapshot(isWorth)
    if (written !== null && (await isReadable(written))) await this.#publish(record, written)
  }

  /** True when the streams have enough new blocks for a snapshot to replace the one in force. */
  #isDue({ streams, snapshot }: DocumentRecord): boolean {
    const { documents } = this.#deps
    const more = streams.map(
      ({ coreKey }) => documents.size(coreKey).blocks - lengthOf(snapshot?.lengths ?? {}, coreKey)
    )
    return more.reduce((sum, blocks) => sum + Math.max(blocks, 0), 0) >= SNAPSHOT_BLOCKS
  }

  async #publish({ name, access }: DocumentRecord, { lengths, bytes }: WrittenSnapshot): Promise<void> {
    const { clock, documents, hash, idOf, ids, log, used } = this.#deps
    await used.tidy(name)
    // A random name: a restored home must never write the same core twice.
    const { stream: coreKey } = await documents.own(`${idOf(name)}/${ids.next('snapshot')}`)
    await used.note(name, [coreKey])
    const count = Math.ceil(bytes.byteLength / CHUNK_BYTES)
    const chunks = Array.from({ length: count }, (_, at) => bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES))
    await documents.append(coreKey, chunks)
    const mesh = log.view().mesh?.id ?? ''
    const entry = {
      coreKey,
      blocks: chunks.length,
      hash: keyToText(hash(bytes)),
      lengths,
      serial: access?.access.serial ?? 0
    }
    // If another snapshot comes into force first, keep this core: other nodes use it once it is in force, too.
    const release = used.spare(coreKey)
    // Nothing waits for the result: after a failure a new snapshot is made later.
    const done = log.submit({ kind: 'document-snapshot', mesh, name, ...entry }, LOG_TIMEOUT_MS)
    const settled = (): void => {
      release()
      this.#deps.onSettled(name)
    }
    done.then(settled, (error: unknown) => {
      this.#deps.onError(name, error)
      clock.after(LATE_MS, settled)
    })
  }
}

/** False for a snapshot that no node could read, such as one that is too large: it is not published. */
async function isReadable({ bytes }: WrittenSnapshot): Promise<boolean> {
  const { decodeSnapshot } = await import('../../../domain/document/snapshot.js')
  const snapshot = decodeSnapshot(bytes)
  return snapshot.ok && snapshot.open() !== null
}
