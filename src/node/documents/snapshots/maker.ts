import type { Clock } from '../../../kit/clock.js'
import { type IdSource, keyToText, type NodeId } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { isFurther, lengthOf, SNAPSHOT_BLOCKS } from '../../../domain/membership/fold/document.js'
import type { DocumentRecord, StreamLengths } from '../../../domain/membership/types.js'
import type { DocumentStreams } from '../../../ports/documents.js'
import type { MemberLog } from '../../../ports/mesh.js'
import { memberAccess } from '../access.js'
import type { OpenDocument, WrittenSnapshot } from '../open-document.js'
import type { ActiveSnapshots } from './active.js'

/** Bytes of one block of a snapshot's core. */
const CHUNK_BYTES = 65_536
/** How long bringing a snapshot into the log may take, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000
/** An entry that the log did not take in time may come into force so much later, in milliseconds. */
const LATE_MS = 300_000
/** A node looks no more than once in so long whether it should make a snapshot of a document, in milliseconds. */
const PAUSE_MS = 600_000

/** What {@link SnapshotMaker} needs. */
export interface SnapshotMakerDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  readonly log: MemberLog
  readonly documents: DocumentStreams
  readonly used: ActiveSnapshots
  readonly self: NodeId
  idOf(name: string): string
  onError(name: string, error: unknown): void
  /** What is not in force now may go. */
  onSettled(name: string): void
}

/** Makes snapshots of open documents that have grown enough, and brings them into the log. */
export class SnapshotMaker {
  readonly #deps: SnapshotMakerDeps
  /** When this was tried for a document. */
  readonly #triedAt = new Map<string, number>()

  constructor(deps: SnapshotMakerDeps) {
    this.#deps = deps
  }

  /** Makes one of a document if it is due. */
  async offer(name: string, document: OpenDocument): Promise<void> {
    const { clock, log, self, used } = this.#deps
    const record = log.view().documents.get(name)
    const now = clock.monotonic()
    if (record === undefined || now - (this.#triedAt.get(name) ?? Number.NEGATIVE_INFINITY) < PAUSE_MS) return
    // What it made of a wrong one would be as wrong.
    if (used.isEnded(record) || !this.#isDue(record) || !memberAccess(log.view(), record, self).mayWrite) return
    this.#triedAt.set(name, now)
    const known = new Set(record.streams.map(({ coreKey }) => coreKey))
    const isWorth = ({ lengths }: StreamLengths): boolean =>
      isFurther(record, { lengths }) && Object.keys(lengths).every((stream) => known.has(stream))
    const written = await document.snapshot(isWorth)
    if (written !== null && (await isReadable(written))) await this.#publish(record, written)
  }

  /** Are so many blocks here that another snapshot may take the place of the one in force? */
  #isDue({ streams, snapshot }: DocumentRecord): boolean {
    const { documents } = this.#deps
    const more = streams.map(({ coreKey }) => documents.size(coreKey).blocks - lengthOf(snapshot?.lengths ?? {}, coreKey))
    return more.reduce((sum, blocks) => sum + Math.max(blocks, 0), 0) >= SNAPSHOT_BLOCKS
  }

  async #publish({ name, access }: DocumentRecord, { lengths, bytes }: WrittenSnapshot): Promise<void> {
    const { clock, documents, hash, idOf, ids, log, used } = this.#deps
    await used.tidy(name)
    // Named by chance: a home that was put back must never write it a second time.
    const { stream: coreKey } = await documents.own(`${idOf(name)}/${ids.next('snapshot')}`)
    await used.note(name, [coreKey])
    const count = Math.ceil(bytes.byteLength / CHUNK_BYTES)
    const chunks = Array.from({ length: count }, (_, at) => bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES))
    await documents.append(coreKey, chunks)
    const mesh = log.view().mesh?.id ?? ''
    const entry = { coreKey, blocks: chunks.length, hash: keyToText(hash(bytes)), lengths, serial: access?.access.serial ?? 0 }
    // Another one that comes into force first must not take it from those who go on with it once it is in force, too.
    const release = used.spare(coreKey)
    // Nobody waits for it: in vain it is made anew after a while.
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

/** What nobody could read, as it is too large, say, nobody is told of. */
async function isReadable({ bytes }: WrittenSnapshot): Promise<boolean> {
  const { decodeSnapshot } = await import('../../../domain/document/snapshot.js')
  const snapshot = decodeSnapshot(bytes)
  return snapshot.ok && snapshot.open() !== null
}
