import type { Clock } from '../../../kit/clock.js'
import { concatBytes } from '../../../kit/bytes.js'
import { NodeError } from '../../../kit/errors.js'
import { keyToText } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { shown } from '../../../kit/text.js'
import type { StreamKey } from '../../../domain/document/client-ids.js'
import { SNAPSHOT_LIMITS } from '../../../domain/document/snapshot-limits.js'
import { lengthOf } from '../../../domain/membership/fold/document.js'
import type { DocumentRecord, DocumentSnapshot } from '../../../domain/membership/types.js'
import type { DocumentStreams } from '../../../ports/documents.js'
import type { MemberLog } from '../../../ports/mesh.js'
import type { NodeStore } from '../../../ports/storage.js'

/** Name of the stored list of snapshots. */
const STORED = 'document-snapshots'

/** Dependencies of {@link ActiveSnapshots}. */
export interface ActiveSnapshotsDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly hash: Hash
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: DocumentStreams
  idOf(name: string): string
}

/** Snapshots of one document. */
interface StoredSnapshot {
  readonly used: DocumentSnapshot | null
  /** When this node began to use it, in Unix milliseconds; absent for one of an earlier build. */
  readonly since?: number
  /** Cores of snapshots that may be in the store. */
  readonly cores: readonly StreamKey[]
}

const NONE: StoredSnapshot = { used: null, cores: [] }

/** The snapshot of each document that this node uses, and its bytes, kept apart from the core that goes to others. */
export class ActiveSnapshots {
  readonly #deps: ActiveSnapshotsDeps
  readonly #stored = new Map<string, StoredSnapshot>()
  /** Cores of own snapshots that are being brought into the log. */
  readonly #pending = new Set<StreamKey>()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ActiveSnapshotsDeps) {
    this.#deps = deps
  }

  /** Reads the stored snapshots. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<Record<string, StoredSnapshot>>(STORED)
    for (const [name, one] of Object.entries(stored ?? {})) this.#stored.set(name, one)
  }

  /** Resolves once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** The used snapshot of a document; null when its streams are needed from their first block. */
  of(name: string): DocumentSnapshot | null {
    return this.#at(name).used
  }

  /** Stored bytes of the used snapshot of a document. */
  bytesOf(name: string): number {
    const used = this.of(name)
    return used === null ? 0 : this.#deps.documents.size(used.coreKey).bytes
  }

  /** When this node began to use the snapshot of {@link of}, in Unix milliseconds; null: not known. */
  sinceOf(name: string): number | null {
    return this.#at(name).since ?? null
  }

  /** True when a list ended the used snapshot: its content is wrong, and it is used only until there is another one. */
  isEnded({ name, ended }: DocumentRecord): boolean {
    return ended?.includes(this.of(name)?.coreKey ?? '') === true
  }

  /** Documents with a stream that does not begin behind the snapshot yet. */
  unbegun(): string[] {
    return [...this.#stored.keys()].filter((name) => !this.isBegun(name))
  }

  /** True when all streams of a document begin behind the used snapshot. */
  isBegun(name: string): boolean {
    const lengths = Object.entries(this.of(name)?.lengths ?? {})
    return lengths.every(([stream, length]) => this.#deps.documents.size(stream).from >= length)
  }

  /** The cores to keep: of the snapshot in force and the one before it, and of the used one until then. */
  coresOf({ name, snapshot }: DocumentRecord): StreamKey[] {
    const cores = [snapshot?.coreKey, snapshot?.before?.coreKey, this.of(name)?.coreKey]
    return [...new Set(cores.filter((core) => core !== undefined))]
  }

  /**
   * The snapshot behind which the streams of a document begin here; null for none.
   * @throws NodeError PEER_OFFLINE when the streams begin later and the snapshot is not here, or no longer
   */
  async base({ name, streams }: Pick<DocumentRecord, 'name' | 'streams'>): Promise<Uint8Array | null> {
    const used = this.of(name)
    const bytes = used === null ? null : await this.#kept(name, used)
    const isBehind = ({ coreKey }: { readonly coreKey: StreamKey }): boolean =>
      this.#deps.documents.size(coreKey).from > lengthOf(used?.lengths ?? {}, coreKey)
    if (bytes !== null && !streams.some(isBehind)) return bytes
    // The snapshot may have been replaced meanwhile.
    if (this.of(name) !== used) return await this.base({ name, streams })
    const isLater = await Promise.all(streams.map(({ coreKey }) => this.#beginsLater(coreKey)))
    if (used === null && !isLater.includes(true)) return null
    throw new NodeError('PEER_OFFLINE', `the snapshot behind which the document ${shown(name)} goes on is not here yet`)
  }

  /** The bytes of a snapshot whose core is here; null when their hash differs from the log. */
  async read({ coreKey, blocks, hash }: DocumentSnapshot): Promise<Uint8Array | null> {
    const { documents } = this.#deps
    if (documents.size(coreKey).bytes > SNAPSHOT_LIMITS.maxHeadBytes + SNAPSHOT_LIMITS.maxDocumentBytes) return null
    const bytes = concatBytes(await documents.read(coreKey, 0, blocks))
    return keyToText(this.#deps.hash(bytes)) === hash ? bytes : null
  }

  /** Records cores before they are stored: else nothing would remove them once others are in force. */
  async note(name: string, more: readonly StreamKey[]): Promise<void> {
    const stored = this.#at(name)
    const fresh = more.filter((core) => !stored.cores.includes(core))
    if (fresh.length > 0) await this.#set(name, { ...stored, cores: [...stored.cores, ...fresh] })
  }

  /**
   * Protects an own core from {@link tidy} until the returned function is called: a snapshot in force may name it at
   * any time.
   */
  spare(core: StreamKey): () => void {
    this.#pending.add(core)
    return () => void this.#pending.delete(core)
  }

  /** Makes this the used snapshot. */
  async use(name: string, used: DocumentSnapshot, bytes: Uint8Array): Promise<void> {
    const { documents, idOf } = this.#deps
    await documents.keep(keptAs(idOf(name)), bytes)
    await this.#set(name, { ...this.#at(name), used, since: this.#deps.clock.now() })
  }

  /** Lets the streams of a document begin behind its snapshot. A repeated call completes an interrupted one. */
  async begin(name: string): Promise<void> {
    const lengths = Object.entries(this.of(name)?.lengths ?? {})
    for (const [stream, blocks] of lengths) await this.#deps.documents.begin(stream, blocks)
  }

  /** Removes cores of snapshots that are neither in force nor used. */
  async tidy(name: string): Promise<void> {
    const { cores } = this.#at(name)
    const { documents, removedDocuments } = this.#deps.log.view()
    // The log may still undo the removal.
    if (removedDocuments.has(name)) return
    const record = documents.get(name)
    const wanted = new Set(
      record === undefined ? [] : [...this.coresOf(record), ...record.streams.map(({ coreKey }) => coreKey)]
    )
    const gone = cores.filter((core) => !wanted.has(core) && !this.#pending.has(core))
    if (gone.length === 0) return
    await this.#deps.documents.remove(gone)
    await this.#set(name, this.#without(name, gone))
  }

  /** Removes all snapshots of a document. */
  async forget(name: string): Promise<void> {
    const { cores, used } = this.#at(name)
    if (cores.length === 0) return
    // Clear `used` first: after a kill in between, this node would believe that it still has the snapshot.
    await this.#set(name, { ...NONE, cores })
    await this.#deps.documents.remove(cores)
    if (used !== null) await this.#deps.documents.keep(keptAs(this.#deps.idOf(name)), null)
    await this.#set(name, this.#without(name, cores))
  }

  /** The bytes kept by this node; a restored home has only the core. */
  async #kept(name: string, used: DocumentSnapshot): Promise<Uint8Array | null> {
    const { documents, hash, idOf } = this.#deps
    const kept = await documents.kept(keptAs(idOf(name)))
    return kept !== null && keyToText(hash(kept)) === used.hash ? kept : await this.read(used)
  }

  async #beginsLater(stream: StreamKey): Promise<boolean> {
    const { documents } = this.#deps
    // The stream may be just being opened.
    await documents.read(stream, 0, 0)
    return documents.size(stream).from > 0
  }

  #at(name: string): StoredSnapshot {
    return this.#stored.get(name) ?? NONE
  }

  /** Others may have been added meanwhile. */
  #without(name: string, gone: readonly StreamKey[]): StoredSnapshot {
    const stored = this.#at(name)
    return { ...stored, cores: stored.cores.filter((core) => !gone.includes(core)) }
  }

  #set(name: string, one: StoredSnapshot): Promise<void> {
    this.#stored.set(name, one)
    const done = this.#writing.then(() => this.#deps.store.write(STORED, Object.fromEntries(this.#stored)))
    this.#writing = done.catch(() => {})
    return done
  }
}

function keptAs(id: string): string {
  return `${id}/base`
}
