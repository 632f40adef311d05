import type { Clock, Timer } from '../../kit/clock.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { DocumentMarks } from './marks.js'
import type { DocumentShares } from './shares.js'
import type { ReplicationSet } from './replication-set.js'

/** How long a document must be abandoned before its blocks are removed, in milliseconds: the log may still undo a revocation. */
const RECLAIM_MS = 600_000

/** What {@link AbandonedDocuments} needs. */
export interface AbandonedDocumentsDeps {
  readonly clock: Clock
  readonly log: Pick<MemberLog, 'view'>
  readonly followed: Pick<ReplicationSet, 'isAbandoned' | 'removeAbandoned'>
  readonly shares: Pick<DocumentShares, 'isStored'>
  readonly marks: Pick<DocumentMarks, 'has'>
  /** Does somebody want a document now? */
  isInUse(name: string): boolean
  /** Removes what is here of a document that is followed no longer, these streams among it. */
  remove(name: string, streams: readonly StreamKey[]): Promise<void>
  onError(error: unknown): void
}

/** Gives back the disk that documents take whose only writers were revoked and that nobody uses here. */
export class AbandonedDocuments {
  readonly #deps: AbandonedDocumentsDeps
  #timer: Timer | null = null
  #removing: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: AbandonedDocumentsDeps) {
    this.#deps = deps
  }

  /** What is abandoned may have changed. */
  review(): void {
    if (this.#isClosed || this.#timer !== null || this.#stored().length === 0) return
    this.#timer = this.#deps.clock.after(RECLAIM_MS, () => {
      this.#removing = this.#remove().catch(this.#deps.onError)
    })
  }

  /** Once what was begun is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
    await this.#removing
  }

  /** Abandoned documents of which something is here. */
  #stored(): DocumentRecord[] {
    const { log, followed, shares, marks } = this.#deps
    const isStored = ({ name, streams }: DocumentRecord): boolean =>
      marks.has(name) || streams.some(({ coreKey }) => shares.isStored(coreKey))
    return [...log.view().documents.values()].filter((record) => followed.isAbandoned(record) && isStored(record))
  }

  async #remove(): Promise<void> {
    const { followed, isInUse, remove } = this.#deps
    try {
      for (const record of this.#stored()) {
        const { name, streams } = record
        // Somebody may have opened it while another one was removed.
        if (this.#isClosed || isInUse(name) || !followed.isAbandoned(record)) continue
        const cores = streams.map(({ coreKey }) => coreKey)
        await followed.removeAbandoned(name, () => remove(name, cores))
      }
    } finally {
      this.#timer = null
    }
    this.review()
  }
}
