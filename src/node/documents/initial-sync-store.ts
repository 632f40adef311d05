import type { StreamKey } from '../../domain/document/client-ids.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import { countedStreams } from './access.js'
import type { ActiveSnapshots } from './snapshots/active.js'

/** Name of the stored document of what arrived. */
export const DOCUMENTS_ARRIVED = 'documents-arrived'

/** It as stored: names of documents. */
export interface StoredArrivals {
  readonly names: readonly string[]
}

/** What {@link ArrivedDocuments} needs. */
export interface ArrivedDocumentsDeps {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'size' | 'extent'>
  readonly used: Pick<ActiveSnapshots, 'of' | 'isBegun'>
  /** Has this node written into a document what the mesh has not heard of yet? */
  hasUnheard(name: string): boolean
  /** Does nothing of a stream count, as it has two tales? */
  isForked(stream: StreamKey): boolean
  onError(error: unknown): void
}

/**
 * Which documents were whole here once. From then on this node reads and edits what it has of them, whoever is away; before, a part
 * of one must not be taken for all of it.
 */
export class ArrivedDocuments {
  readonly #deps: ArrivedDocumentsDeps
  readonly #names = new Set<string>()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ArrivedDocumentsDeps) {
    this.#deps = deps
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredArrivals>(DOCUMENTS_ARRIVED)
    for (const name of stored?.names ?? []) this.#names.add(name)
  }

  /** Once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** Was it whole here once? */
  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** It is whole here. */
  note(name: string): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    this.#store()
  }

  /** It is kept here no longer. */
  forget(name: string): void {
    if (this.#names.delete(name)) this.#store()
  }

  /** Is nothing here of a document into which somebody wrote? */
  isMissing(record: DocumentRecord): boolean {
    const { documents, used, hasUnheard } = this.#deps
    if (used.of(record.name) !== null) return !used.isBegun(record.name)
    // What others wrote behind a snapshot that is not here waits for it.
    const stored = Object.entries(record.snapshot?.lengths ?? {}).filter(([, length]) => length > 0)
    if (stored.some(([stream]) => documents.size(stream).blocks === 0)) return true
    const sizes = this.#counted(record).map(([stream]) => documents.size(stream))
    if (hasUnheard(record.name)) return false
    // Those that begin behind a snapshot that is not here say nothing.
    return sizes.length > 0 && sizes.every(({ blocks, from }) => blocks === 0 || from > 0)
  }

  /** Its streams of which something is not here. The log names a stream once it has a block, so none is empty. */
  lacking(record: DocumentRecord): StreamKey[] {
    const { documents } = this.#deps
    const isLacking = ([stream, counted]: readonly [StreamKey, number]): boolean => {
      const { blocks, from } = documents.size(stream)
      const known = documents.extent(stream).blocks
      return Math.max(blocks, from) < Math.min(counted, Math.max(known, 1))
    }
    return this.streams(record)
      .filter(isLacking)
      .map(([stream]) => stream)
  }

  /** Its streams of which something counts, and how many blocks. */
  streams(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return this.#counted(record).filter(([stream]) => !this.#deps.isForked(stream))
  }

  #counted(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return [...countedStreams(this.#deps.log.view(), record)].filter(([, blocks]) => blocks > 0)
  }

  #store(): void {
    const { store, log, onError } = this.#deps
    this.#writing = this.#writing
      .then(() => store.write(DOCUMENTS_ARRIVED, { names: [...this.#names].filter((name) => log.view().documents.has(name)) }))
      .catch(onError)
  }
}
